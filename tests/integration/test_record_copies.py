"""What a function may do to a record that another operator gets as well."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from datetime import timedelta
from typing import Any

import pytest

from runtime import (
    CollectSink,
    DataStream,
    JobExecutionError,
    KeyedProcessFunction,
    ProcessFunction,
    ProcessWindowFunction,
    StreamExecutionEnvironment,
    TimeWindow,
    TumblingEventTimeWindows,
    WatermarkStrategy,
)

Record = dict[str, Any]


def environment(*, copies: bool) -> StreamExecutionEnvironment:
    env = StreamExecutionEnvironment.get_execution_environment()
    if copies:
        env.get_config().disable_object_reuse()
    return env


def spoil(record: Record) -> Record:
    """Changes what it was given."""
    record["n"] += 100
    record["tags"].append("spoilt")
    return record


def branches(records: DataStream[Record], edge: str) -> list[DataStream[Record]]:
    """One that changes its records, and one that reads them."""
    spoilt, read = records.map(spoil), records.map(lambda record: record)
    if edge == "channel":
        return [spoilt.start_new_chain(), read.start_new_chain()]
    return [spoilt, read]


@pytest.mark.parametrize("edge", ["chain", "channel"])
@pytest.mark.parametrize("copies", [True, False])
def test_a_change_stays_in_its_branch_if_records_are_copied(edge: str, copies: bool) -> None:
    """If not, both branches see it: they have the same object."""
    env = environment(copies=copies)
    records = env.from_collection([{"n": n, "tags": [n]} for n in range(3)])
    sinks: list[CollectSink[Record]] = [CollectSink(), CollectSink()]
    for stream, sink in zip(branches(records, edge), sinks, strict=True):
        stream.sink_to(sink)
    env.execute("branches")
    spoilt = [{"n": n + 100, "tags": [n, "spoilt"]} for n in range(3)]
    assert sinks[0].results == spoilt
    assert sinks[1].results == ([{"n": n, "tags": [n]} for n in range(3)] if copies else spoilt)


def test_operators_in_a_row_get_copies_too() -> None:
    """What a function keeps of its output is not what the next one changes."""
    env = environment(copies=True)
    kept: list[Record] = []

    def keep(record: Record) -> Record:
        kept.append(record)
        return record

    sink: CollectSink[Record] = CollectSink()
    env.from_collection([{"n": 0, "tags": []}]).map(keep).map(spoil).sink_to(sink)
    env.execute("row")
    assert [record["n"] for record in (*kept, *sink.results)] == [0, 100]


def grow(number: int) -> Iterator[Record]:
    """Puts the same object out again and again, each time with more in it."""
    record: Record = {"tags": []}
    for tag in range(number):
        record["tags"].append(tag)
        yield record


class Grow(ProcessFunction[int, Record]):
    def process_element(self, value: int, ctx: ProcessFunction.Context) -> Iterator[Record]:
        return grow(value)


class GrowByKey(KeyedProcessFunction[int, int, Record]):
    def process_element(self, value: int, ctx: KeyedProcessFunction.Context) -> Iterator[Record]:
        ctx.timer_service().register_event_time_timer(value)
        return iter(())

    def on_timer(
        self, timestamp: int, ctx: KeyedProcessFunction.OnTimerContext
    ) -> Iterator[Record]:
        return grow(timestamp)


class GrowWindow(ProcessWindowFunction[int, Record, int, TimeWindow]):
    def process(self, key: int, context: Any, elements: Iterable[int]) -> Iterator[Record]:
        return grow(key)


@pytest.mark.parametrize(
    "growing",
    [
        lambda numbers: numbers.flat_map(grow),
        lambda numbers: numbers.process(Grow()),
        lambda numbers: numbers.key_by(lambda n: n).process(GrowByKey()),
        lambda numbers: (
            numbers.assign_timestamps_and_watermarks(
                WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(
                    lambda number, _: number
                )
            )
            .key_by(lambda n: n)
            .window(TumblingEventTimeWindows.of(timedelta(seconds=1)))
            .process(GrowWindow())
        ),
    ],
    ids=["flat_map", "process", "timers", "window"],
)
def test_a_function_may_go_on_changing_what_it_has_put_out(
    growing: Callable[[DataStream[int]], DataStream[Record]],
) -> None:
    """If records are copied, each output is what it was when it was put out."""
    env = environment(copies=True)
    sink: CollectSink[Record] = CollectSink()
    growing(env.from_collection([3])).sink_to(sink)
    env.execute("growing")
    assert sink.results == [{"tags": [0]}, {"tags": [0, 1]}, {"tags": [0, 1, 2]}]


def test_a_record_that_cannot_be_copied_is_named() -> None:
    """With the setting that wants the copy."""
    env = environment(copies=True)
    env.from_sequence(7, 7).map(lambda n: (n, threading.Lock())).map(str).print()
    with pytest.raises(JobExecutionError, match=r"\(7, .*lock.*pipeline\.object-reuse=false"):
        env.execute("locks")
