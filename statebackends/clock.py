"""The seam through which time comes in: every other module asks a `Clock`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol


class ScheduledCall(Protocol):
    """A call that waits for its time."""

    def cancel(self) -> None:
        """Gives the call up; does nothing if it has run or was cancelled before."""


class Clock(Protocol):
    """Processing time, elapsed time and wake-ups of one attempt of a job.

    Processing time is the wall clock at the start of the attempt plus the monotonic time
    elapsed since then, so that it never jumps while a job runs.
    """

    def now_ms(self) -> int:
        """Processing time in milliseconds since the epoch; never falls within an attempt."""

    def monotonic(self) -> float:
        """Seconds since an arbitrary point, for measuring how long something took."""

    def call_at(self, timestamp_ms: int, callback: Callable[[], None]) -> ScheduledCall:
        """Calls `callback` once, as soon as `now_ms() >= timestamp_ms`, and never before.

        A time in the past is due at the loop's next turn, not within this call.
        """

    async def sleep(self, seconds: float) -> None:
        """Waits `seconds` of this clock's time."""
