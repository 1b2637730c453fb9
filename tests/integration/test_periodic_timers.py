"""Periodic processing-time timers keep to their grid, whatever becomes of the wall clock."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from itertools import pairwise
from typing import Any, cast

import pytest

from runtime import KeyedProcessFunction
from runtime.clock import SystemClock
from runtime.testing import OperatorHarness

NANOS = 1_000_000_000
START_MS = 1_700_000_000_000
PERIOD_MS = 1_000
BODY_MS = 200
HOUR_NANOS = 3_600 * NANOS


class VirtualLoop:
    """The event loop of a clock: monotonic time that is moved by hand, and a wall clock."""

    def __init__(self) -> None:
        self.now_nanos = 0
        self.wall_nanos = START_MS * 1_000_000
        """What the wall clock would show at monotonic time 0."""
        self._calls: list[tuple[int, int, Callable[[], None]]] = []
        self._count = 0

    def call_later(self, seconds: float, callback: Callable[[], None]) -> VirtualLoop:
        self._count += 1
        due = self.now_nanos + round(seconds * NANOS)
        heapq.heappush(self._calls, (due, self._count, callback))
        return self

    def call_soon(self, callback: Callable[[], None]) -> VirtualLoop:
        return self.call_later(0, callback)

    def cancel(self) -> None:
        """Calls of one timer service: one that was cancelled finds nothing due."""

    def run_next(self) -> None:
        due, _, callback = heapq.heappop(self._calls)
        self.now_nanos = max(self.now_nanos, due)
        callback()

    def clock(self) -> SystemClock:
        return SystemClock(
            cast("Any", self),
            wall_ns=lambda: self.now_nanos + self.wall_nanos,
            monotonic_ns=lambda: self.now_nanos,
        )


class Periodic(KeyedProcessFunction[Any, Any, Any]):
    """Does something each second that takes a fifth of it."""

    def __init__(self, loop: VirtualLoop) -> None:
        self._loop = loop

    def __deepcopy__(self, memo: object) -> Periodic:
        return self  # The loop is the test's, there is one.

    def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> None:
        timers = ctx.timer_service()
        timers.register_processing_time_timer(timers.current_processing_time() + PERIOD_MS)

    def on_timer(self, timestamp: int, ctx: KeyedProcessFunction.OnTimerContext) -> list[int]:
        began = self._loop.now_nanos
        self._loop.now_nanos += BODY_MS * 1_000_000
        ctx.timer_service().register_processing_time_timer(timestamp + PERIOD_MS)
        return [began // 1_000_000]


@pytest.fixture(scope="module")
def firings() -> list[int]:
    """Monotonic ms of each firing in 120 s; at 40 s the wall clock goes back, at 80 s forward."""
    loop = VirtualLoop()
    clock = loop.clock()
    harness = OperatorHarness.of_function(Periodic(loop), lambda _: "key", clock=clock)
    harness.process("go")
    jumps = [(80, HOUR_NANOS), (40, -HOUR_NANOS)]
    while loop.now_nanos < 120 * NANOS:
        if jumps and loop.now_nanos >= jumps[-1][0] * NANOS:
            loop.wall_nanos += jumps.pop()[1]
            clock.check_wall_clock()
        loop.run_next()
        harness.settle()
    assert clock.wall_clock_jumps == 2
    return harness.values()


def test_a_periodic_timer_fires_once_a_period(firings: list[int]) -> None:
    """120 times in 120 s, the first time after one period."""
    assert len(firings) == 120
    assert firings[0] == PERIOD_MS


def test_a_periodic_timer_does_not_drift(firings: list[int]) -> None:
    """What the body takes is not added up."""
    assert max(firing % PERIOD_MS for firing in firings) < 150


def test_a_jump_of_the_wall_clock_changes_nothing(firings: list[int]) -> None:
    """Neither a pause after it went back nor a burst after it went forward."""
    gaps = {later - earlier for earlier, later in pairwise(firings)}
    assert gaps == {PERIOD_MS}
