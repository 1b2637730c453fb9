"""The operator harness: processing time, watermark generators and sources by the clock."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from runtime import KeyedProcessFunction, NumberSequenceSource, WatermarkStrategy
from runtime.clock import SystemClock
from runtime.testing import EmittedRecord, OperatorHarness, Watermark
from tests.runtime.counting_function import Counting, itself


class Ticking(KeyedProcessFunction[Any, Any, Any]):
    """A timer each 10 ms from the first record on; tells when it fired."""

    def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> None:
        timers = ctx.timer_service()
        timers.register_processing_time_timer(timers.current_processing_time() + 10)

    def on_timer(self, timestamp: int, ctx: KeyedProcessFunction.OnTimerContext) -> Iterator[Any]:
        timers = ctx.timer_service()
        timers.register_processing_time_timer(timestamp + 10)
        yield timestamp, timers.current_processing_time()


def test_a_jump_of_the_clock_comes_before_what_it_makes_due() -> None:
    """Every timer that was passed fires, and finds the clock where it is."""
    harness = OperatorHarness.of_function(Ticking(), itself)
    harness.process("a")
    harness.set_processing_time(35)
    assert harness.values() == [(10, 35), (20, 35), (30, 35)]


def test_time_that_passes_runs_everything_at_its_own_time() -> None:
    """Every timer finds the clock at its time."""
    harness = OperatorHarness.of_function(Ticking(), itself)
    harness.process("a")
    harness.pass_time(35)
    assert harness.values() == [(10, 10), (20, 20), (30, 30)]
    assert harness.processing_time == 35


def test_the_clock_never_goes_back() -> None:
    """A time in the past is refused."""
    harness = OperatorHarness.of_function(Ticking(), itself, processing_time=100)
    with pytest.raises(ValueError, match="back"):
        harness.set_processing_time(99)


def test_watermark_generators_are_asked_each_interval() -> None:
    """A watermark comes out with the tick after the record that it is for."""
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(
        lambda value, _: value
    )
    harness = OperatorHarness.of(
        lambda s: s.assign_timestamps_and_watermarks(strategy), auto_watermark_interval=50
    )
    assert harness.process(7) == [EmittedRecord(7, 7)]
    assert harness.pass_time(49) == []
    assert harness.pass_time(1) == [Watermark(6)]


def test_the_operators_last_words_come_without_final_watermark() -> None:
    """`finish_operators` has a generator put out what it has, and the input goes on."""
    strategy = WatermarkStrategy.for_monotonous_timestamps()
    harness = OperatorHarness.of(lambda s: s.assign_timestamps_and_watermarks(strategy))
    harness.process("a", timestamp=7)
    assert harness.finish_operators() == [Watermark(6)]
    assert harness.process("b", timestamp=8) == [EmittedRecord("b", 8)]


def test_a_source_reads_what_it_has() -> None:
    """The operators behind a source run to its end."""
    harness = OperatorHarness.of_source(
        NumberSequenceSource(1, 3), build=lambda numbers: numbers.map(lambda n: n * n)
    )
    assert harness.values() == [1, 4, 9]


def test_a_clock_of_the_tests_own_is_not_moved_by_the_harness() -> None:
    """The error says what to call instead."""

    class NoLoop:
        pass

    clock = SystemClock(NoLoop())  # type: ignore[arg-type]  # never asked for anything
    harness = OperatorHarness.of_function(Counting(), itself, clock=clock)
    with pytest.raises(TypeError, match="settle"):
        harness.set_processing_time(1)
