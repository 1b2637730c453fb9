"""Windows over the results of windows: a result belongs to the time of its own window."""

from __future__ import annotations

from typing import Any

import pytest

from runtime import (
    DataStream,
    StreamExecutionEnvironment,
    TumblingEventTimeWindows,
    WatermarkStrategy,
)
from runtime.testing import OperatorHarness

Click = tuple[str, int]

CLICKS = [(key, time) for time in range(0, 30_000, 100) for key in "abc"]


def stamped(clicks: DataStream[Click]) -> DataStream[Click]:
    strategy = WatermarkStrategy.for_monotonous_timestamps()
    return clicks.assign_timestamps_and_watermarks(
        strategy.with_timestamp_assigner(lambda click, _: click[1])
    )


def inner_counts(clicks: DataStream[Click]) -> DataStream[int]:
    windowed = clicks.key_by(lambda click: click[0]).window(TumblingEventTimeWindows.of(1_000))
    return windowed.count().map(lambda count: count.count)


def outer_sums(clicks: DataStream[Click]) -> DataStream[int]:
    return (
        inner_counts(stamped(clicks))
        .key_by(lambda _: "all")
        .window(TumblingEventTimeWindows.of(10_000))
        .reduce(lambda left, right: left + right)
    )


@pytest.mark.parametrize("options", [{}, {"parallelism": 3}, {"batch_records": 7}])
def test_no_result_of_a_window_is_late_for_the_next(options: dict[str, Any]) -> None:
    """30 s of records make three outer windows of all records; nothing is late in either stage."""
    harness = OperatorHarness.of(outer_sums, **options)
    for start in range(0, len(CLICKS), 30):
        harness.process_all(CLICKS[start : start + 30])
        harness.pass_time(200)
    harness.end_input()
    assert harness.values() == [300, 300, 300]
    assert harness.metric("num_late_records_dropped") == 0


def test_a_result_carries_the_last_time_of_its_window() -> None:
    """The window [0, 1000) gives a record of 999 ms."""
    harness = OperatorHarness.of(lambda clicks: inner_counts(stamped(clicks)))
    harness.process_all(CLICKS[:30])
    harness.end_input()
    assert {record.timestamp for record in harness.records()} == {999}


@pytest.mark.parametrize("parallelism", [1, 3])
def test_windows_of_windows_in_a_job(parallelism: int) -> None:
    """The same sums at any parallelism of a whole job."""
    env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(parallelism)
    with outer_sums(env.from_collection(CLICKS)).execute_and_collect() as sums:
        assert list(sums) == [300, 300, 300]
