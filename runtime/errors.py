"""The errors that users of the runtime meet."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import ParamSpec

from operators.advice import advice_about

P = ParamSpec("P")

ERROR_TEXT_MAX = 500
"""Longest text of an exception in a sentence; the traceback below has the whole of it."""

USER_FAILURES = (Exception, SystemExit, asyncio.CancelledError)
"""What a failing user function raises; one that calls `sys.exit` fails the job like any other.

A `CancelledError` comes out of one that awaits a task of its own after cancelling it. Where the
coroutine at hand may be cancelled itself, `failure_of` tells the two apart.
"""


class ConfigurationError(ValueError):
    """A setting, an argument or a job graph that cannot work; names setting, value and remedy."""


class JobExecutionError(Exception):
    """A job failed; the message says where and on what, `__cause__` is the first failure."""


class RecoveryError(Exception):
    """What a start should restore from is not usable; names the checkpoint and the remedy."""


class OperatorFailure(Exception):
    """A failure inside one operator, with the coordinates that lead there.

    Raised inside the runtime around the user's exception (`__cause__`, untouched) and turned
    into a `JobExecutionError` where the job ends.
    """

    def __init__(
        self,
        *,
        operator: str,
        uid: str,
        subtask_index: int,
        parallelism: int,
        doing: str = "",
        key: str = "",
        record: str = "",
        origin: str = "",
        function: str = "",
    ) -> None:
        self.operator = operator
        parts = [f"operator {operator!r} (uid {uid}, subtask {subtask_index + 1}/{parallelism})"]
        if function:
            parts.append(f"function {function}")
        if doing:
            parts.append(doing)
        if key:
            parts.append(f"on key {key}")
        if origin:
            parts.append(f"record from {origin}")
        if record:
            parts.append(f"record {record}")
        super().__init__(", ".join(parts))

    def describe(self) -> str:
        """The coordinates and the cause in one sentence."""
        cause = self.__cause__
        if cause is None:
            return str(self)
        advice = advice_about(cause)
        sentence = f"{self}: {type(cause).__name__}({error_text(cause)})"
        return f"{sentence}: {advice}" if advice else sentence


async def failure_of(
    call: Callable[P, Awaitable[object]], *args: P.args, **kwargs: P.kwargs
) -> BaseException | None:
    """Calls and awaits user code; what it failed with, None if it did not.

    Raises the cancellation of the coroutine at hand, which is no failure.
    """
    try:
        await call(*args, **kwargs)
    except USER_FAILURES as error:
        if isinstance(error, asyncio.CancelledError) and _is_cancelled():
            raise
        return error
    return None


def _is_cancelled() -> bool:
    try:
        task = asyncio.current_task()
    except RuntimeError:
        # No loop runs: the coroutine is driven by hand.
        return False
    return task is not None and task.cancelling() > 0


def summary(error: BaseException) -> str:
    """An error that is told beside another one: where and what it was."""
    if isinstance(error, OperatorFailure):
        return error.describe()
    return f"{type(error).__name__}: {error_text(error)}"


def error_text(error: BaseException) -> str:
    """The message of `error`, shortened; one whose `str` raises must not hide the failure."""
    try:
        text = str(error)
    except Exception as second:
        return f"its message cannot be shown: str() raised {type(second).__name__}"
    return text if len(text) <= ERROR_TEXT_MAX else text[:ERROR_TEXT_MAX] + "..."
