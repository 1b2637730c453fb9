"""Records behind the watermark: in lateness a window fires again, beyond it they are counted."""

from __future__ import annotations

from typing import Any

import pytest

from runtime import (
    CollectSink,
    DataStream,
    OutputTag,
    StreamExecutionEnvironment,
    TumblingEventTimeWindows,
    WatermarkStrategy,
    WindowCount,
)
from runtime.testing import OperatorHarness
from tests.integration.each_record import EachRecord

SECONDS = [1, 2, 11, 4, 16, 5]
LATE = OutputTag[int]("late")

FIRINGS = [
    WindowCount("key", 0, 10_000, 2),
    WindowCount("key", 0, 10_000, 3),
    WindowCount("key", 10_000, 20_000, 2),
]


def event_time(second: int, _: int) -> int:
    return second * 1_000


def counts(seconds: DataStream[int], *, side_output: bool) -> DataStream[WindowCount]:
    windowed = (
        seconds.key_by(lambda _: "key")
        .window(TumblingEventTimeWindows.of(10_000))
        .allowed_lateness(5_000)
    )
    return (windowed.side_output_late_data(LATE) if side_output else windowed).count()


def run_with_pauses(*, side_output: bool, **options: Any) -> OperatorHarness:
    """Two watermark intervals pass after each record."""
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(0).with_timestamp_assigner(event_time)
    harness = OperatorHarness.of(
        lambda seconds: counts(
            seconds.assign_timestamps_and_watermarks(strategy), side_output=side_output
        ),
        **options,
    )
    for second in SECONDS:
        harness.process(second)
        harness.pass_time(400)
    harness.end_input()
    return harness


def test_a_record_in_lateness_fires_its_window_again() -> None:
    """The window [0, 10) comes out with 2 and, when 4 has come, with 3."""
    assert run_with_pauses(side_output=True).values() == FIRINGS


def test_a_record_beyond_lateness_goes_to_the_side_output() -> None:
    """Only 5 comes when its window is gone; nothing is lost between windows and late records."""
    harness = run_with_pauses(side_output=True)
    late = [record.value for record in harness.side_output(LATE)]
    assert late == [5]
    contents = {(count.start, count.end): count.count for count in harness.values()}
    assert sum(contents.values()) + len(late) == len(SECONDS)


@pytest.mark.parametrize("side_output", [True, False])
def test_late_records_are_counted(side_output: bool) -> None:
    """With side output or without."""
    assert run_with_pauses(side_output=side_output).metric("num_late_records_dropped") == 1


@pytest.mark.parametrize("parallelism", [1, 2])
def test_a_job_treats_late_records_as_the_harness_does(parallelism: int) -> None:
    """Windows and side output of a whole job are the same."""
    env = StreamExecutionEnvironment.get_execution_environment()
    strategy = WatermarkStrategy.for_generator(EachRecord).with_timestamp_assigner(event_time)
    seconds = env.from_collection(SECONDS).force_non_parallel()
    seconds = seconds.assign_timestamps_and_watermarks(strategy).force_non_parallel()
    results = counts(seconds, side_output=True)
    windows, late = CollectSink[WindowCount](), CollectSink[int]()
    results.sink_to(windows)
    results.get_side_output(LATE).sink_to(late)
    env.set_parallelism(parallelism).execute()
    assert windows.results == FIRINGS
    assert late.results == [5]
