"""Which windows a record lands in, through whole operators: offsets, negative times, slides."""

from __future__ import annotations

from typing import Any

import pytest

from runtime import (
    SlidingEventTimeWindows,
    StreamExecutionEnvironment,
    TumblingEventTimeWindows,
    WatermarkStrategy,
    WindowAssigner,
)
from runtime.testing import OperatorHarness

Span = tuple[int, int]

ASSIGNMENTS: list[tuple[WindowAssigner[Any, Any], list[int], list[Span]]] = [
    (
        TumblingEventTimeWindows.of(1_000),
        [-1, 0, -1_600],
        [(-2_000, -1_000), (-1_000, 0), (0, 1_000)],
    ),
    (
        TumblingEventTimeWindows.of(1_000, 300),
        [0, 299, 300],
        [(-700, 300), (-700, 300), (300, 1_300)],
    ),
    (TumblingEventTimeWindows.of(1_000, -300), [0], [(-300, 700)]),
    (
        SlidingEventTimeWindows.of(1_600, 700),
        [1_709_315_512_577],
        [(1_709_315_511_400, 1_709_315_513_000), (1_709_315_512_100, 1_709_315_513_700)],
    ),
    (
        SlidingEventTimeWindows.of(1_600, 800),
        [1_709_315_512_577],
        [(1_709_315_511_200, 1_709_315_512_800), (1_709_315_512_000, 1_709_315_513_600)],
    ),
]


@pytest.mark.parametrize(("assigner", "times", "spans"), ASSIGNMENTS)
def test_windows_of_an_operator(
    assigner: WindowAssigner[Any, Any], times: list[int], spans: list[Span]
) -> None:
    """Each record is counted in exactly the windows that contain its time, and none is dropped."""
    harness = OperatorHarness.of(lambda s: s.key_by(lambda _: 0).window(assigner).count())
    harness.process_all(times, times)
    harness.end_input()
    assert [(c.start, c.end) for c in harness.values() for _ in range(c.count)] == spans
    assert harness.metric("num_late_records_dropped") == 0


@pytest.mark.parametrize(("assigner", "times", "spans"), ASSIGNMENTS)
def test_windows_of_a_job(
    assigner: WindowAssigner[Any, Any], times: list[int], spans: list[Span]
) -> None:
    """The same in a whole job."""
    env = StreamExecutionEnvironment.get_execution_environment()
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(10_000)
    stamped = env.from_collection(times).assign_timestamps_and_watermarks(
        strategy.with_timestamp_assigner(lambda time, _: time)
    )
    with stamped.key_by(lambda _: 0).window(assigner).count().execute_and_collect() as counts:
        assert [(c.start, c.end) for c in counts for _ in range(c.count)] == spans
