"""Timers never fire early, steps of the wall clock move nothing, simulated time is exact."""

import asyncio
import logging
import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
import uvloop
from hypothesis import given
from hypothesis import strategies as st

from runtime.clock import SimulatedClock, SystemClock

LOOPS = {"uvloop": uvloop.new_event_loop, "asyncio": asyncio.new_event_loop}
HOUR_NS = 3_600 * 10**9


@contextmanager
def runner(loop: str) -> Iterator[asyncio.Runner]:
    """A runner on the named event loop."""
    with asyncio.Runner(loop_factory=LOOPS[loop]) as made:
        yield made


class HandSetTime:
    """A wall clock and a monotonic clock whose readings a test sets."""

    def __init__(self) -> None:
        self.wall_ns = 1_000 * 10**9
        self.elapsed_ns = 0

    def clock(self, loop: asyncio.AbstractEventLoop) -> SystemClock:
        """A clock that reads these."""
        return SystemClock(loop, wall_ns=lambda: self.wall_ns, monotonic_ns=lambda: self.elapsed_ns)


@pytest.fixture
def readings() -> HandSetTime:
    """Both clocks, set by hand."""
    return HandSetTime()


@pytest.mark.parametrize("loop", LOOPS)
def test_no_timer_fires_before_its_time(loop: str) -> None:
    """2,000 calls with random delays, some armed late in a busy turn, all fire when due."""
    dice = random.Random(7)
    early: list[int] = []
    fired = 0

    async def hammer() -> None:
        clock = SystemClock()
        done = asyncio.get_running_loop().create_future()

        def due(timestamp_ms: int) -> Callable[[], None]:
            def call() -> None:
                nonlocal fired
                fired += 1
                if clock.now_ms() < timestamp_ms:
                    early.append(timestamp_ms)
                if fired == 2_000:
                    done.set_result(None)

            return call

        for _ in range(2_000):
            timestamp_ms = clock.now_ms() + dice.randrange(-5, 150)
            clock.call_at(timestamp_ms, due(timestamp_ms))
        await done

    with runner(loop) as running:
        running.run(hammer())
    assert fired == 2_000
    assert early == []


@pytest.mark.parametrize("loop", LOOPS)
def test_a_sleep_is_never_too_short(loop: str) -> None:
    """Also of lengths that uvloop cuts off."""

    async def shortest() -> float:
        clock = SystemClock()
        least = 1.0
        for seconds in (0.0004, 0.0014, 0.0025, 0.0101) * 5:
            start = clock.monotonic()
            await clock.sleep(seconds)
            least = min(least, clock.monotonic() - start - seconds)
        return least

    with runner(loop) as running:
        assert running.run(shortest()) >= 0


def test_a_call_in_the_past_runs_at_the_next_turn() -> None:
    """Not within call_at, and before anything that waits."""
    order: list[str] = []

    async def past() -> None:
        clock = SystemClock()
        clock.call_at(clock.now_ms() - 1_000, lambda: order.append("called"))
        order.append("armed")
        await asyncio.sleep(0)

    with runner("uvloop") as running:
        running.run(past())
    assert order == ["armed", "called"]


def test_a_cancelled_call_does_not_run() -> None:
    """Cancelling twice, or after the call, is harmless."""
    ran: list[str] = []

    async def cancelling() -> None:
        clock = SystemClock()
        given_up = clock.call_at(clock.now_ms() + 1, lambda: ran.append("given up"))
        given_up.cancel()
        given_up.cancel()
        kept = clock.call_at(clock.now_ms() + 5, lambda: ran.append("kept"))
        await clock.sleep(0.02)
        kept.cancel()

    with runner("uvloop") as running:
        running.run(cancelling())
    assert ran == ["kept"]


@pytest.mark.parametrize("step_ns", [-HOUR_NS, HOUR_NS])
def test_a_step_of_the_wall_clock_moves_no_time(readings: HandSetTime, step_ns: int) -> None:
    """Processing time is the start plus what has elapsed, whatever the wall clock says later."""
    with runner("asyncio") as running:
        clock = readings.clock(running.get_loop())
        readings.elapsed_ns += 40 * 10**9
        readings.wall_ns += 40 * 10**9 + step_ns
        assert clock.now_ms() == 1_040_000
        assert clock.remaining_ms(1_050_000) == 10_000


@pytest.mark.parametrize(("step_ns", "word"), [(-HOUR_NS, "back"), (HOUR_NS, "forward")])
def test_a_step_of_the_wall_clock_is_logged_once_and_counted(
    readings: HandSetTime, caplog: pytest.LogCaptureFixture, step_ns: int, word: str
) -> None:
    """The next checks find nothing new."""
    with runner("asyncio") as running, caplog.at_level(logging.WARNING):
        clock = readings.clock(running.get_loop())
        clock.check_wall_clock()
        readings.wall_ns += step_ns
        for _ in range(3):
            clock.check_wall_clock()
    assert clock.wall_clock_jumps == 1
    assert [word in record.getMessage() for record in caplog.records] == [True]


def test_slow_adjustment_of_the_wall_clock_is_no_step(readings: HandSetTime) -> None:
    """Half a second a check is below what is reported, however it adds up."""
    with runner("asyncio") as running:
        clock = readings.clock(running.get_loop())
        for _ in range(10):
            readings.wall_ns += 10**9 // 2
            clock.check_wall_clock()
    assert clock.wall_clock_jumps == 0


def test_a_new_clock_follows_the_wall_clock(readings: HandSetTime) -> None:
    """The attempt after a step starts at the new time."""
    with runner("asyncio") as running:
        readings.clock(running.get_loop())
        readings.wall_ns += HOUR_NS
        assert readings.clock(running.get_loop()).now_ms() == 1_000_000 + 3_600_000


@given(st.lists(st.integers(0, 50), max_size=30))
def test_simulated_calls_run_in_order_of_time_then_of_age(due: list[int]) -> None:
    """Each at its own time."""
    clock = SimulatedClock()
    ran: list[tuple[int, int]] = []

    def call(index: int) -> Callable[[], None]:
        return lambda: ran.append((clock.now_ms(), index))

    for index, timestamp_ms in enumerate(due):
        clock.call_at(timestamp_ms, call(index))
    clock.advance_to(50)
    assert ran == sorted((timestamp_ms, index) for index, timestamp_ms in enumerate(due))


def test_simulated_calls_made_by_calls_run_on_the_way() -> None:
    """A chain of timers is followed to the end of the advance and no further."""
    clock = SimulatedClock()
    ran: list[int] = []

    def again() -> None:
        ran.append(clock.now_ms())
        clock.call_at(clock.now_ms() + 10, again)

    clock.call_at(10, again)
    assert clock.advance_by(35) == 3
    assert ran == [10, 20, 30]
    assert clock.now_ms() == 35
    assert clock.next_call_ms() == 40


def test_a_simulated_call_in_the_past_waits_for_the_next_advance() -> None:
    """Even an advance by nothing runs it, at the time that it is."""
    clock = SimulatedClock(100)
    ran: list[int] = []
    clock.call_at(50, lambda: ran.append(clock.now_ms()))
    assert ran == []
    clock.advance_by(0)
    assert ran == [100]


def test_a_cancelled_simulated_call_is_not_the_next() -> None:
    """It neither runs nor is waited for."""
    clock = SimulatedClock()
    clock.call_at(5, lambda: None).cancel()
    assert clock.next_call_ms() is None
    assert clock.advance_to(10) == 0


def test_simulated_time_does_not_go_back() -> None:
    """Such an advance is a mistake of the test that asks for it."""
    clock = SimulatedClock(10)
    with pytest.raises(ValueError, match="cannot go back from 10 to 9"):
        clock.advance_to(9)


async def test_a_simulated_sleep_ends_with_the_advance() -> None:
    """Not a millisecond before."""
    clock = SimulatedClock()
    sleeper = asyncio.ensure_future(clock.sleep(0.0101))
    await asyncio.sleep(0)
    clock.advance_to(10)
    await asyncio.sleep(0)
    assert not sleeper.done()
    clock.advance_to(11)
    await sleeper
