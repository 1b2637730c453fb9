"""Checks of what the methods of sources and sinks give back."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable

from operators.errors import WrongResultError


def wrong_object(owner: object, method: str, wanted: str, made: object) -> WrongResultError:
    """What to raise where a method of the user's gave back another kind of object."""
    if inspect.iscoroutine(made):
        made.close()
        return WrongResultError(
            f"{type(owner).__name__}.{method}() has to return {wanted}, not a coroutine: write it"
            " with def"
        )
    return WrongResultError(
        f"{type(owner).__name__}.{method}() has to return {wanted}, not {type(made).__name__}"
        f" {made!r:.80}"
    )


def as_failure(error: object) -> BaseException:
    """What a connector reports as its failure; what is no exception becomes one that says so."""
    if isinstance(error, BaseException):
        return error
    return WrongResultError(f"context.fail() takes an exception object, not {error!r:.200}")


async def awaited(work: Awaitable[None], owner: object, method: str) -> None:
    """Awaits what a method of the user's returned; `WrongResultError` if it was written `def`.

    The type checker knows better, but who writes a connector may have none.
    """
    if not inspect.isawaitable(work):
        raise WrongResultError(
            f"{type(owner).__name__}.{method}() returned {type(work).__name__}, which cannot be"
            " awaited: write it with async def"
        )
    await work
