"""A failed job as text: what failed where, and below it the user's own traceback."""

from __future__ import annotations

import sys
import sysconfig
import traceback
from collections.abc import Iterable, Iterator
from itertools import dropwhile, takewhile
from pathlib import Path
from types import TracebackType

from runtime.errors import ConfigurationError, JobExecutionError, OperatorFailure, RecoveryError
from statebackends.errors import StateError

_HOME = Path(__file__).resolve().parent.parent
INTERNAL_FOLDERS = tuple(
    f"{_HOME / package}/" for package in ("statebackends", "operators", "connectors", "runtime")
)
_STANDARD_LIBRARY = f"{sysconfig.get_path('stdlib')}/"
_INSTALLED = tuple(f"{sysconfig.get_path(name)}/" for name in ("purelib", "platlib"))
_CLIENTS = tuple(f"{folder}aiokafka/" for folder in _INSTALLED)
"""Libraries that only connectors call."""
USER_CALL = "# The user's function."
"""Ends the lines of the runtime that call what the user gave."""
GENERATED_LOOPS = ("untimed", "timed")
"""The functions that `fusion.py` generates."""
SPOKEN_ERRORS = (ConfigurationError, JobExecutionError, RecoveryError, StateError)
"""Errors whose message says everything; where in the runtime they were raised says nothing."""


def format_failure(error: BaseException) -> str:
    """The message of `error` with its notes, and the traceback of the user's exception behind it.

    Frames of the runtime are left out; those that the user's code called are kept. An exception
    that the runtime raised about something the user gave has none: its message is in the sentence.
    """
    if not isinstance(error, SPOKEN_ERRORS):
        return "".join(_traceback_lines(error)).rstrip()
    lines = [f"{type(error).__name__}: {error}\n"]
    lines += [f"  ({note})\n" for note in getattr(error, "__notes__", ())]
    cause = _shown_cause(error) if isinstance(error, JobExecutionError) else None
    if cause is not None:
        lines.append("\n")
        lines += _traceback_lines(cause)
    return "".join(lines).rstrip()


def user_location(error: BaseException) -> str:
    """`file:line` of the user's code that called into the runtime, or nothing."""
    frames = traceback.extract_tb(error.__traceback__)
    theirs = dropwhile(lambda one: _internal(one.filename), frames)
    called = list(takewhile(lambda one: not _internal(one.filename), theirs))
    return f"{called[-1].filename}:{called[-1].lineno}" if called else ""


def is_refusal(error: BaseException) -> bool:
    """Whether the runtime refused what it was given: a ValueError or TypeError it raised itself."""
    if not isinstance(error, (ValueError, TypeError)):
        return False
    return _raised_here(traceback.extract_tb(error.__traceback__))


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


def _shown_cause(error: BaseException) -> BaseException | None:
    """The first cause of `error` that says more than the sentence: one with lines of the user's.

    Exceptions that the runtime itself raised, knowingly and with no line of the user's in it, are
    in the sentence. Where something else failed with none of the user's lines, it is shown whole.
    """
    cause = error.__cause__
    while isinstance(cause, OperatorFailure):
        cause = cause.__cause__
    first = cause
    while cause is not None:
        frames = traceback.extract_tb(cause.__traceback__)
        if any(_theirs(one.filename) for one in frames):
            return cause
        if _after_user_call(frames) == []:
            return None
        if cause is first and not _raised_here(frames):
            return cause
        cause = cause.__cause__
    return None


def _raised_here(frames: list[traceback.FrameSummary]) -> bool:
    last = frames[-1] if frames else None
    return last is not None and _internal(last.filename) and (last.line or "").startswith("raise ")


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
    """From the first frame of the user's on; all frames if there is none: it is our affair then.

    A library that only the runtime called is no part of it. Where the runtime refuses what the
    user's line gave it, that line is the last.
    """
    frames = list(stack)
    first = next((i for i, frame in enumerate(frames) if _theirs(frame.filename)), None)
    if first is None:
        called = _after_user_call(frames)
        return frames if called is None else called
    frames = frames[first:]
    if _raised_here(frames):
        while _internal(frames[-1].filename):
            frames.pop()
    return frames


def _after_user_call(
    frames: list[traceback.FrameSummary],
) -> list[traceback.FrameSummary] | None:
    """The frames below a call of what the user gave, where that is Python's own (`int`).

    None if there was no such call. The loops that call it are marked; a generated one, whose
    lines are nowhere to be read, is known by its name.
    """
    last = next((i for i in reversed(range(len(frames))) if _internal(frames[i].filename)), None)
    if last is None:
        return None
    generated = frames[last].name in GENERATED_LOOPS
    if generated or (frames[last].line or "").endswith(USER_CALL):
        return frames[last + 1 :]
    return None


def _internal(filename: str) -> bool:
    return filename.startswith((*INTERNAL_FOLDERS, "<frozen ", "uvloop/"))


def _theirs(filename: str) -> bool:
    """Neither the runtime nor a library under it; what else is installed may be the user's."""
    if _internal(filename) or filename.startswith(_CLIENTS):
        return False
    return not in_standard_library(filename)


def in_standard_library(filename: str) -> bool:
    """Whether a file is one of Python's own."""
    return filename.startswith(_STANDARD_LIBRARY) and not filename.startswith(_INSTALLED)
