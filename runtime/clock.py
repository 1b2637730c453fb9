"""The clocks: the system's, and one that only moves when told to.

The only module that reads the time or sleeps; everything else is handed a `Clock`.
"""

from __future__ import annotations

import asyncio
import heapq
import logging
import time
from collections.abc import Callable

NANOS_PER_MS = 1_000_000
NANOS_PER_SECOND = 1_000_000_000

LONGEST_WAIT_MS = 86_400_000
"""A call further away than a day is armed again each day: event loops bound their delays."""

WALL_CLOCK_JUMP_MS = 1_000
"""From which size on a step of the wall clock is reported."""

logger = logging.getLogger(__name__)


def wall_clock_ms() -> int:
    """Milliseconds since the epoch now, for naming a run; jobs ask their clock."""
    return time.time_ns() // NANOS_PER_MS


def monotonic_seconds() -> float:
    """Seconds since an arbitrary point, for code outside of any event loop (signal handlers)."""
    return time.monotonic()


class _SystemCall:
    """A call armed on the loop; armed again as long as the loop wakes it too early."""

    __slots__ = ("_callback", "_clock", "_due_ms", "_handle")

    def __init__(self, clock: SystemClock, due_ms: int, callback: Callable[[], None]) -> None:
        self._clock = clock
        self._due_ms = due_ms
        self._callback: Callable[[], None] | None = callback
        self._handle: asyncio.Handle | None = None
        self._arm()

    def cancel(self) -> None:
        self._callback = None
        if self._handle is not None:
            self._handle.cancel()
            self._handle = None

    def _arm(self) -> None:
        clock = self._clock
        remaining_ms = min(clock.remaining_ms(self._due_ms), LONGEST_WAIT_MS)
        if remaining_ms <= 0:
            self._handle = clock.loop.call_soon(self._wake)
        else:
            self._handle = clock.loop.call_later(remaining_ms / 1_000, self._wake)

    def _wake(self) -> None:
        callback = self._callback
        if callback is None:
            return
        # uvloop counts in milliseconds from a time that stands still within a turn, so it wakes
        # up to half a millisecond early, or earlier by the length of the turn that armed it.
        if self._clock.now_ms() < self._due_ms:
            self._arm()
            return
        self._handle = None
        self._callback = None
        callback()


turn_seconds = time.perf_counter
"""Seconds for the budget of a loop turn: read several times a batch, so without a Python call."""

THREADS_SECONDS = 50e-6
"""How long a loop sleeps so that a waiting thread surely gets the interpreter."""


def give_way_to_threads() -> None:
    """Sleeps for real, for a moment; see `thread_work.py`."""
    time.sleep(THREADS_SECONDS)


class SystemClock:
    """The wall clock at the start of an attempt plus the monotonic time elapsed since.

    A step of the wall clock (set by hand, or by time synchronisation) moves no timer: it is
    reported by `check_wall_clock` and followed when the next attempt makes its clock. `wall_ns`
    and `monotonic_ns` are replaced in tests.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop | None = None,
        *,
        wall_ns: Callable[[], int] = time.time_ns,
        monotonic_ns: Callable[[], int] = time.monotonic_ns,
    ) -> None:
        self.loop = loop if loop is not None else asyncio.get_running_loop()
        self._wall_ns = wall_ns
        self._monotonic_ns = monotonic_ns
        self._offset_ns = wall_ns() - monotonic_ns()
        self._wall_offset_ns = self._offset_ns
        self.wall_clock_jumps = 0
        """How many steps of the wall clock `check_wall_clock` has seen."""

    def now_ms(self) -> int:
        """Processing time in milliseconds since the epoch; never falls."""
        return (self._offset_ns + self._monotonic_ns()) // NANOS_PER_MS

    def monotonic(self) -> float:
        """Seconds since an arbitrary point."""
        return self._monotonic_ns() / NANOS_PER_SECOND

    def remaining_ms(self, timestamp_ms: int) -> int:
        """Whole milliseconds, rounded up, until `timestamp_ms`; not above 0 if it is due."""
        remaining_ns = timestamp_ms * NANOS_PER_MS - self._offset_ns - self._monotonic_ns()
        return -(-remaining_ns // NANOS_PER_MS)

    def call_at(self, timestamp_ms: int, callback: Callable[[], None]) -> _SystemCall:
        """Calls `callback` once `now_ms() >= timestamp_ms`, on both event loops never before."""
        return _SystemCall(self, timestamp_ms, callback)

    async def sleep(self, seconds: float) -> None:
        """Waits at least `seconds`."""
        end_ns = self._monotonic_ns() + round(seconds * NANOS_PER_SECOND)
        await asyncio.sleep(-(-seconds * 1_000 // 1) / 1_000)
        early_ns = end_ns - self._monotonic_ns()
        if early_ns > 0:
            await self.sleep(early_ns / NANOS_PER_SECOND)

    def check_wall_clock(self) -> None:
        """Logs and counts a step of the wall clock of more than a second since the last check.

        To be called about each second; what slow adjustment adds up to is no step.
        """
        offset_ns = self._wall_ns() - self._monotonic_ns()
        step_ms = (offset_ns - self._wall_offset_ns) // NANOS_PER_MS
        self._wall_offset_ns = offset_ns
        if abs(step_ms) > WALL_CLOCK_JUMP_MS:
            self.wall_clock_jumps += 1
            logger.warning(
                "the wall clock was set %s by %.1f s; processing time goes on without the step "
                "until the job is started again",
                "forward" if step_ms > 0 else "back",
                abs(step_ms) / 1_000,
            )


class _SimulatedCall:
    """A call in the queue of a simulated clock."""

    __slots__ = ("callback",)

    def __init__(self, callback: Callable[[], None]) -> None:
        self.callback: Callable[[], None] | None = callback

    def cancel(self) -> None:
        self.callback = None


class SimulatedClock:
    """A clock that stands still until it is advanced; calls run in order of time, then of age."""

    def __init__(self, start_ms: int = 0) -> None:
        self._now_ms = start_ms
        self._calls: list[tuple[int, int, _SimulatedCall]] = []
        self._sequence = 0
        self.wall_clock_jumps = 0

    def now_ms(self) -> int:
        """The simulated time in milliseconds since the epoch."""
        return self._now_ms

    def monotonic(self) -> float:
        """The simulated time in seconds."""
        return self._now_ms / 1_000

    def call_at(self, timestamp_ms: int, callback: Callable[[], None]) -> _SimulatedCall:
        """Calls `callback` when the clock is advanced to `timestamp_ms` or beyond.

        A time that is not in the future is due at the next advance, even one by nothing.
        """
        call = _SimulatedCall(callback)
        self._sequence += 1
        heapq.heappush(self._calls, (timestamp_ms, self._sequence, call))
        return call

    async def sleep(self, seconds: float) -> None:
        """Waits until the clock was advanced by `seconds`, rounded up to milliseconds."""
        woken: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        def wake() -> None:
            if not woken.done():
                woken.set_result(None)

        wait_ns = round(seconds * NANOS_PER_SECOND)
        call = self.call_at(self._now_ms - (-wait_ns // NANOS_PER_MS), wake)
        try:
            await woken
        finally:
            call.cancel()

    def next_call_ms(self) -> int | None:
        """When the earliest call that waits is due; None if none waits."""
        while self._calls and self._calls[0][2].callback is None:
            heapq.heappop(self._calls)
        return self._calls[0][0] if self._calls else None

    def advance_to(self, timestamp_ms: int) -> int:
        """Moves on to `timestamp_ms`, running what is due on the way at its own time.

        Calls that calls make run too if they are due by then. Returns how many ran; raises
        ValueError for a time in the past.
        """
        if timestamp_ms < self._now_ms:
            raise ValueError(
                f"time cannot go back from {self._now_ms} to {timestamp_ms} milliseconds"
            )
        ran = 0
        while (due_ms := self.next_call_ms()) is not None and due_ms <= timestamp_ms:
            _, _, call = heapq.heappop(self._calls)
            self._now_ms = max(self._now_ms, due_ms)
            callback = call.callback
            call.callback = None
            if callback is not None:
                callback()
                ran += 1
        self._now_ms = timestamp_ms
        return ran

    def advance_by(self, duration_ms: int) -> int:
        """Moves on by `duration_ms` as `advance_to` does."""
        return self.advance_to(self._now_ms + duration_ms)

    def check_wall_clock(self) -> None:
        """Nothing: there is no other clock to differ from."""
