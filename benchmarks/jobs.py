"""The workloads as jobs of this project, on default settings."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import timedelta
from typing import Any

from benchmarks.data import DISORDER_MS
from operators.builtin import CollectSink
from runtime import (
    AggregateFunction,
    KeyedProcessFunction,
    RuntimeContext,
    SlidingEventTimeWindows,
    StreamExecutionEnvironment,
    TumblingEventTimeWindows,
    ValueStateDescriptor,
    WatermarkStrategy,
)

Build = Callable[[StreamExecutionEnvironment, Iterable[Any]], CollectSink[Any]]


def _timed(env: StreamExecutionEnvironment, records: Iterable[Any]) -> Any:
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(
        timedelta(milliseconds=DISORDER_MS)
    ).with_timestamp_assigner(lambda record, _: record[1])
    return env.from_collection(records).assign_timestamps_and_watermarks(strategy)


def _counting() -> AggregateFunction[Any, int, int]:
    return AggregateFunction.of(create=lambda: 0, add=lambda _, acc: acc + 1)


def _collected(stream: Any) -> CollectSink[Any]:
    sink: CollectSink[Any] = CollectSink()
    stream.sink_to(sink)
    return sink


def tumbling_count(env: StreamExecutionEnvironment, records: Iterable[Any]) -> CollectSink[Any]:
    """W1 with the built-in count."""
    windows = (
        _timed(env, records).key_by(0).window(TumblingEventTimeWindows.of(timedelta(seconds=10)))
    )
    return _collected(windows.count())


def tumbling_aggregate(env: StreamExecutionEnvironment, records: Iterable[Any]) -> CollectSink[Any]:
    """W1 with an aggregate function of lambdas."""
    windows = (
        _timed(env, records).key_by(0).window(TumblingEventTimeWindows.of(timedelta(seconds=10)))
    )
    return _collected(windows.aggregate(_counting()))


def running_reduce(env: StreamExecutionEnvironment, records: Iterable[Any]) -> CollectSink[Any]:
    """W2 with a reduce lambda."""
    ones = env.from_collection(records).map(lambda record: (record[0], 1))
    return _collected(ones.key_by(0).reduce(lambda a, b: (a[0], a[1] + b[1])))


class RunningCount(KeyedProcessFunction[str, Any, Any]):
    """Counts the records of its key in a value state."""

    def open(self, runtime_context: RuntimeContext) -> None:
        """Fetches the state."""
        self.count = runtime_context.get_state(ValueStateDescriptor("count", int))

    def process_element(self, value: Any, ctx: Any) -> Iterable[Any]:
        """One output a record."""
        count = (self.count.value() or 0) + 1
        self.count.update(count)
        yield value[0], count


def running_process(env: StreamExecutionEnvironment, records: Iterable[Any]) -> CollectSink[Any]:
    """W2 as a process function."""
    return _collected(env.from_collection(records).key_by(0).process(RunningCount()))


def stateless(env: StreamExecutionEnvironment, records: Iterable[Any]) -> CollectSink[Any]:
    """W3."""
    stream = (
        env.from_collection(records)
        .map(lambda record: record[2] * 2)
        .filter(lambda value: value % 4 != 0)
        .map(lambda value: value + 1)
    )
    return _collected(stream)


def sliding_aggregate(env: StreamExecutionEnvironment, records: Iterable[Any]) -> CollectSink[Any]:
    """W4 with an aggregate function that cannot merge."""
    assigner = SlidingEventTimeWindows.of(timedelta(seconds=10), timedelta(seconds=2))
    return _collected(_timed(env, records).key_by(0).window(assigner).aggregate(_counting()))


def word_count(env: StreamExecutionEnvironment, records: Iterable[Any]) -> CollectSink[Any]:
    """W5."""
    words = env.from_collection(records).flat_map(lambda line: line.split())
    return _collected(
        words.map(lambda word: (word, 1)).key_by(0).reduce(lambda a, b: (a[0], a[1] + b[1]))
    )
