"""A failed job as text: what failed where, and below it the user's own traceback."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Iterable, Iterator
from itertools import dropwhile, takewhile
from pathlib import Path
from types import TracebackType

from runtime.errors import ConfigurationError, JobExecutionError, OperatorFailure, RecoveryError

_HOME = Path(__file__).resolve().parent.parent
INTERNAL_FOLDERS = tuple(
    f"{_HOME / package}/" for package in ("statebackends", "operators", "connectors", "runtime")
)
SPOKEN_ERRORS = (ConfigurationError, JobExecutionError, RecoveryError)
"""Errors whose message says everything; where in the runtime they were raised says nothing."""


def format_failure(error: BaseException) -> str:
    """The message of `error` with its notes, and the traceback of the user's exception behind it.

    Frames of the runtime are left out; those that the user's code called are kept.
    """
    if not isinstance(error, SPOKEN_ERRORS):
        return "".join(_traceback_lines(error)).rstrip()
    lines = [f"{type(error).__name__}: {error}\n"]
    lines += [f"  ({note})\n" for note in getattr(error, "__notes__", ())]
    cause = _user_cause(error)
    if cause is not None and isinstance(error, JobExecutionError):
        lines.append("\n")
        lines += _traceback_lines(cause)
    return "".join(lines).rstrip()


def user_location(error: BaseException) -> str:
    """`file:line` of the user's code that called into the runtime, or nothing."""
    frames = traceback.extract_tb(error.__traceback__)
    theirs = dropwhile(lambda one: _internal(one.filename), frames)
    called = list(takewhile(lambda one: not _internal(one.filename), theirs))
    return f"{called[-1].filename}:{called[-1].lineno}" if called else ""


def install_failure_hook() -> None:
    """Lets a failure that nobody catches be shown as `format_failure` does.

    Only if the program has no hook of its own; other exceptions are shown as ever.
    """
    if sys.excepthook is sys.__excepthook__:
        sys.excepthook = _show


def _show(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    if isinstance(error, SPOKEN_ERRORS):
        sys.stderr.write(format_failure(error) + "\n")
    else:
        sys.__excepthook__(kind, error, trace)


def _user_cause(error: BaseException) -> BaseException | None:
    cause = error.__cause__
    while isinstance(cause, OperatorFailure):
        cause = cause.__cause__
    return cause


def _traceback_lines(error: BaseException) -> Iterator[str]:
    shown = traceback.TracebackException.from_exception(error)
    for part in _chain(shown):
        part.stack = traceback.StackSummary.from_list(_user_frames(part.stack))
    if isinstance(error, SyntaxError) and all(_internal(one.filename) for one in shown.stack):
        # The file could not be read: no line of anybody's has run.
        shown.stack = traceback.StackSummary()
    yield from shown.format()


def _chain(shown: traceback.TracebackException) -> Iterator[traceback.TracebackException]:
    yield shown
    for inner in (shown.__cause__, shown.__context__):
        if inner is not None:
            yield from _chain(inner)


def _user_frames(stack: Iterable[traceback.FrameSummary]) -> list[traceback.FrameSummary]:
    """All frames from the first of the user's on; all if there is none: then it is our affair."""
    frames = list(stack)
    first = next((i for i, f in enumerate(frames) if not _internal(f.filename)), None)
    return frames if first is None else frames[first:]


def _internal(filename: str) -> bool:
    return filename.startswith((*INTERNAL_FOLDERS, "<frozen "))
