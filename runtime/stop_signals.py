"""SIGINT and SIGTERM while a job runs: the first stops it cleanly, the second leaves at once."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

from runtime.clock import monotonic_seconds
from runtime.job_handle import JobHandle

SECOND_SIGNAL_SECONDS = 0.3
"""A second signal counts from this long after the first: terminals and process groups repeat."""

SIGNALS = (signal.SIGINT, signal.SIGTERM)

EXIT_SIGNAL_OFFSET = 128
"""A process that a signal ended has this plus the signal's number as its exit code."""


def exit_code(signal_number: int) -> int:
    """130 for SIGINT, 143 for SIGTERM."""
    return EXIT_SIGNAL_OFFSET + signal_number


class StopSignals:
    """Handlers of the main thread, in force from the first job to the end of the last.

    Plain handlers instead of the event loop's: they run also while a user function keeps the
    loop from turning, so that the second signal always works.
    """

    def __init__(
        self,
        monotonic: Callable[[], float] = monotonic_seconds,
        leave: Callable[[int], object] = os._exit,
    ) -> None:
        self._monotonic = monotonic
        self._leave = leave
        self._jobs: list[JobHandle] = []
        self._previous: dict[int, Any] = {}
        self._first_seconds: float | None = None
        self.received: int | None = None
        """The signal that asked for the stop."""

    @contextmanager
    def stopping(self, job: JobHandle) -> Iterator[None]:
        """Signals stop `job` while inside; without effect in other threads than the main one."""
        self.watch(job)
        try:
            yield
        finally:
            self.forget(job)

    def watch(self, job: JobHandle) -> None:
        """Signals stop `job` from now on."""
        self._jobs.append(job)
        if not self._previous and _in_main_thread():
            for number in SIGNALS:
                self._previous[number] = signal.signal(number, self._handle)

    def forget(self, job: JobHandle) -> None:
        """The job has ended; after the last one the handlers from before are in force again.

        In another thread than the main one they cannot be put back: then the next signal is
        passed on to them.
        """
        if job in self._jobs:
            self._jobs.remove(job)
        if not self._jobs and _in_main_thread():
            self._restore()

    def _restore(self) -> None:
        for number, previous in self._previous.items():
            signal.signal(number, signal.SIG_DFL if previous is None else previous)
        self._previous.clear()
        self._first_seconds = None

    def _handle(self, number: int, _frame: FrameType | None) -> None:
        if not self._jobs:
            self._restore()
            signal.raise_signal(number)
            return
        now = self._monotonic()
        if self._first_seconds is None:
            self._first_seconds = now
            self.received = number
            name = signal.Signals(number).name
            for job in list(self._jobs):
                job.request_stop(f"{name}: stopping; a second signal leaves at once")
        elif now - self._first_seconds >= SECOND_SIGNAL_SECONDS:
            self._leave(exit_code(number))


stop_signals = StopSignals()
"""The handlers of this process."""


def _in_main_thread() -> bool:
    return threading.current_thread() is threading.main_thread()
