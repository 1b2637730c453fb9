"""Event-time timers end to end: once each, never when deleted, the past with the next advance."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from runtime import (
    DataStream,
    KeyedProcessFunction,
    StreamExecutionEnvironment,
    TumblingEventTimeWindows,
    WatermarkStrategy,
)
from runtime.testing import OperatorHarness
from tests.integration.each_record import EachRecord

Record = tuple[str, int]

RECORDS: list[Record] = [
    ("start", 500),
    ("tick", 1_600),
    ("past", 1_700),
    ("tick", 2_600),
]
FIRED = [1_000, 1_001, 1_200, 8_000, 8_500, 9_000]


class Registering(KeyedProcessFunction[str, Record, int]):
    """Registers timers as the records say; puts out the times at which they fire."""

    def process_element(self, value: Record, ctx: KeyedProcessFunction.Context) -> None:
        timers = ctx.timer_service()
        if value[0] == "start":
            for time in (1_000, 1_000, 1_000, 2_000, 9_000, 8_000, 8_500):
                timers.register_event_time_timer(time)
            timers.delete_event_time_timer(2_000)
        elif value[0] == "past":
            timers.register_event_time_timer(1_200)

    def on_timer(self, timestamp: int, ctx: KeyedProcessFunction.OnTimerContext) -> Iterator[int]:
        if timestamp == 1_000:
            ctx.timer_service().register_event_time_timer(1_001)
        yield timestamp


def fired(records: DataStream[Record]) -> DataStream[int]:
    strategy = WatermarkStrategy.for_generator(EachRecord)
    stamped = records.assign_timestamps_and_watermarks(
        strategy.with_timestamp_assigner(lambda record, _: record[1])
    )
    return stamped.key_by(lambda _: "key").process(Registering())


def windowed(records: DataStream[Record]) -> DataStream[tuple[int, int]]:
    windows = fired(records).key_by(lambda _: "key").window(TumblingEventTimeWindows.of(1_000))
    return windows.count().map(lambda count: (count.start, count.count))


WINDOWS = [(1_000, 3), (8_000, 2), (9_000, 1)]


@pytest.mark.parametrize(
    "options", [{}, {"restore_between_steps": True}, {"batch_records": 1}, {"chaining": False}]
)
def test_timers_fire_by_the_rules(options: dict[str, Any]) -> None:
    """Registered thrice it fires once, deleted never, chained at once, at the end in order."""
    harness = OperatorHarness.of(fired, **options)
    for record in RECORDS:
        harness.process(record)
    harness.end_input()
    assert harness.values() == FIRED


def test_a_timer_in_the_past_fires_with_the_next_watermark() -> None:
    """Not at once, and not before the watermark moves."""
    harness = OperatorHarness.of_function(Registering(), lambda _: "key")
    harness.watermark(1_500)
    assert harness.process(("past", 0), timestamp=1_700) == []
    harness.watermark(1_501)
    assert harness.values() == [1_200]


def test_records_of_timers_are_not_late_downstream() -> None:
    """They carry the timer's time, and the watermark comes behind them."""
    harness = OperatorHarness.of(windowed)
    harness.process_all(RECORDS)
    harness.end_input()
    assert harness.values() == WINDOWS
    assert harness.metric("num_late_records_dropped") == 0


@pytest.mark.parametrize("parallelism", [1, 2])
def test_a_job_fires_as_the_harness_does(parallelism: int) -> None:
    """Timers and the windows behind them come out of a whole job alike."""
    env = StreamExecutionEnvironment.get_execution_environment()
    assert fired(env.from_collection(RECORDS)).execute_and_collect(limit=100) == FIRED
    env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(parallelism)
    records = env.from_collection(RECORDS).force_non_parallel()
    assert (
        windowed(records.map(lambda r: r).force_non_parallel()).execute_and_collect(limit=100)
        == WINDOWS
    )
