"""Whole jobs: what streams say is what comes out, at parallelism 1 and 2."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from connectors.datagen import DataGeneratorSource
from operators.builtin import CollectSink
from operators.datastream import DataStream
from operators.output_tag import OutputTag
from operators.process_functions import KeyedProcessFunction, ProcessFunction
from operators.runtime_context import RuntimeContext
from operators.watermarks import WatermarkStrategy
from operators.windows import TumblingEventTimeWindows
from runtime import StreamExecutionEnvironment
from statebackends.descriptors import ListStateDescriptor

ODD: OutputTag[int] = OutputTag("odd")
LATE: OutputTag[tuple[str, int]] = OutputTag("late")


class Split(ProcessFunction[int, int]):
    def process_element(self, value: int, ctx: ProcessFunction.Context) -> Iterator[object]:  # type: ignore[override]  # also yields to a side output
        yield (ODD, value) if value % 2 else value


class Batches(KeyedProcessFunction[str, tuple[str, int], tuple[str, list[int]]]):
    """Gathers a key's values until the end of their second."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self.values = runtime_context.get_list_state(ListStateDescriptor("values", int))

    def process_element(self, value: tuple[str, int], ctx: KeyedProcessFunction.Context) -> None:
        self.values.add(value[1])
        ctx.timer_service().register_event_time_timer(value[1] // 1000 * 1000 + 999)

    def on_timer(
        self, timestamp: int, ctx: KeyedProcessFunction.OnTimerContext
    ) -> Iterator[tuple[str, list[int]]]:
        values = sorted(self.values.get() or ())
        yield str(ctx.get_current_key()), [value for value in values if value <= timestamp]
        self.values.update([value for value in values if value > timestamp])


@pytest.fixture(params=[1, 2])
def env(request: pytest.FixtureRequest) -> StreamExecutionEnvironment:
    return StreamExecutionEnvironment.get_execution_environment().set_parallelism(request.param)


def results(stream: DataStream[object]) -> list[object]:
    """All records of a stream, in order of their text."""
    return sorted(stream.execute_and_collect(), key=repr)


def timed(env: StreamExecutionEnvironment, count: int) -> DataStream[tuple[str, int]]:
    """Values 0, 1, 2, ... of two keys, which are their own timestamps."""
    source = DataGeneratorSource(lambda number: ("ab"[number % 2], number), count)
    strategy = WatermarkStrategy.for_monotonous_timestamps()
    return env.from_source(
        source, strategy.with_timestamp_assigner(lambda value, _: value[1]), "timed"
    )


def test_a_stream_united_with_itself_comes_twice(env: StreamExecutionEnvironment) -> None:
    """Two edges between the same operators are two inputs."""
    numbers = env.from_sequence(1, 3)
    assert results(numbers.union(numbers).map(str)) == ["1", "1", "2", "2", "3", "3"]


def test_side_and_main_output_part_a_stream(env: StreamExecutionEnvironment) -> None:
    """Each record comes out of exactly one of them."""
    parted = env.from_sequence(1, 6).process(Split())
    odd: CollectSink[int] = CollectSink()
    parted.get_side_output(ODD).sink_to(odd)
    assert results(parted) == [2, 4, 6]
    assert sorted(odd.results) == [1, 3, 5]


@pytest.mark.parametrize(("method", "copies"), [("rebalance", 1), ("broadcast", 2), ("shuffle", 1)])
def test_partitionings_reach_other_subtasks(method: str, copies: int) -> None:
    """Rebalancing moves records, broadcasting copies them to every subtask."""
    env = StreamExecutionEnvironment.get_execution_environment()
    numbers = env.from_sequence(1, 4).set_parallelism(1)
    stream = getattr(numbers, method)().map(lambda number: number).set_parallelism(2)
    assert results(stream) == sorted([1, 2, 3, 4] * copies)


def test_windows_see_every_record_once(env: StreamExecutionEnvironment) -> None:
    """The counts of all windows come to the number of records."""
    counts = timed(env, 5_000).key_by(0).window(TumblingEventTimeWindows.of(1_000)).count()
    assert results(counts.map(lambda each: (each.key, each.start, each.count))) == [
        (key, start, 500) for key in "ab" for start in range(0, 5_000, 1_000)
    ]


def test_timers_of_a_process_function_fire_for_their_key(env: StreamExecutionEnvironment) -> None:
    """Keyed state and event-time timers meet in `on_timer`."""
    batches = timed(env, 4_000).key_by(lambda value: value[0]).process(Batches())
    assert results(batches) == [
        (key, list(range(start + offset, start + 1_000, 2)))
        for offset, key in enumerate("ab")
        for start in range(0, 4_000, 1_000)
    ]


def test_late_records_come_out_of_the_side_output() -> None:
    """What is late for its window is not lost."""
    env = StreamExecutionEnvironment.get_execution_environment()
    strategy = WatermarkStrategy.for_monotonous_timestamps()
    stream = env.from_source(
        DataGeneratorSource(lambda number: ("a", 10_000 if number < 3_000 else 1), 3_001),
        strategy.with_timestamp_assigner(lambda value, _: value[1]),
        "mostly in time",
    )
    windowed = stream.key_by(0).window(TumblingEventTimeWindows.of(1_000))
    counts = windowed.side_output_late_data(LATE).count()
    late: CollectSink[tuple[str, int]] = CollectSink()
    counts.get_side_output(LATE).sink_to(late)
    assert results(counts.map(lambda each: each.count)) == [3_000]
    assert late.results == [("a", 1)]


def test_leaving_early_stops_an_endless_job(env: StreamExecutionEnvironment) -> None:
    """The consumer decides when it has enough."""
    endless = env.from_source(
        DataGeneratorSource(lambda number: number), WatermarkStrategy.no_watermarks(), "endless"
    )
    with endless.execute_and_collect() as numbers:
        first = [next(numbers) for _ in range(25_000)]
    assert len(set(first)) == 25_000
    assert list(numbers) == []
