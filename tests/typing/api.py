"""What the types of a job say; checked by mypy --strict, never run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, assert_type

from connectors.datagen import DataGeneratorSource
from operators.builtin import CollectSink, NumberSequenceSource
from operators.data_stream_sink import DataStreamSink
from operators.datastream import DataStream, source_stream
from operators.functions import (
    AggregateFunction,
    FlatMapFunction,
    KeySelector,
    MapFunction,
    ReduceFunction,
)
from operators.graph import StreamGraph
from operators.keyed_stream import KeyedStream
from operators.output_tag import OutputTag
from operators.process_functions import KeyedProcessFunction, ProcessFunction
from operators.result_buffer import CloseableIterator
from operators.triggers import EventTimeTrigger
from operators.watermarks import WatermarkStrategy
from operators.window_contents import WindowCount
from operators.window_functions import ProcessWindowFunction, WindowFunction
from operators.windowed_stream import WindowedStream
from operators.windows import TimeWindow, TumblingEventTimeWindows


@dataclass(frozen=True)
class Click:
    page: str
    ts: int


LATE: OutputTag[Click] = OutputTag("late")
UNTYPED = OutputTag("untyped")


class Page(MapFunction[Click, str]):
    def map(self, value: Click) -> str:
        return value.page


class Letters(FlatMapFunction[str, str]):
    def flat_map(self, value: str) -> Iterator[str]:
        yield from value


class ByPage(KeySelector[Click, str]):
    def get_key(self, value: Click) -> str:
        return value.page


class Later(ReduceFunction[Click]):
    def reduce(self, value1: Click, value2: Click) -> Click:
        return max(value1, value2, key=lambda click: click.ts)


class Mean(AggregateFunction[Click, tuple[int, int], float]):
    def create_accumulator(self) -> tuple[int, int]:
        return 0, 0

    def add(self, value: Click, accumulator: tuple[int, int]) -> tuple[int, int]:
        return accumulator[0] + value.ts, accumulator[1] + 1

    def get_result(self, accumulator: tuple[int, int]) -> float:
        return accumulator[0] / accumulator[1]


class Pages(ProcessFunction[Click, str]):
    def process_element(self, value: Click, ctx: ProcessFunction.Context) -> Iterable[str]:
        yield value.page


class Ages(KeyedProcessFunction[str, Click, int]):
    def process_element(self, value: Click, ctx: KeyedProcessFunction.Context) -> Iterable[int]:
        ctx.timer_service().register_event_time_timer(value.ts + 60_000)
        assert_type(ctx.get_current_key(), Any)
        yield value.ts


class Keys(KeyedProcessFunction[str, Click, str]):
    def process_element(
        self, value: Click, ctx: KeyedProcessFunction.Context[str]
    ) -> Iterable[str]:
        assert_type(ctx.get_current_key(), str)
        yield ctx.get_current_key()

    def on_timer(
        self, timestamp: int, ctx: KeyedProcessFunction.OnTimerContext[str]
    ) -> Iterable[str]:
        assert_type(ctx.get_current_key(), str)
        yield ctx.get_current_key()


class Named(ProcessWindowFunction[float, tuple[str, float], str, TimeWindow]):
    def process(
        self,
        key: str,
        context: ProcessWindowFunction.Context[TimeWindow],
        elements: Iterable[float],
    ) -> Iterable[tuple[str, float]]:
        yield from ((key, mean + context.window().start) for mean in elements)


class Sizes(WindowFunction[Click, int, str, TimeWindow]):
    def apply(self, key: str, window: TimeWindow, inputs: Iterable[Click]) -> Iterable[int]:
        return [len(list(inputs)) + window.end]


def make_click(number: int) -> Click:
    return Click(f"page-{number % 7}", number)


def sources(graph: StreamGraph) -> None:
    watermarks: WatermarkStrategy[Click] = (
        WatermarkStrategy.for_bounded_out_of_orderness(timedelta(seconds=2))
        .with_timestamp_assigner(lambda click, _: click.ts)
        .with_idleness(timedelta(seconds=30))
    )
    generated = DataGeneratorSource(make_click, 100, 10.0)
    assert_type(source_stream(graph, generated, watermarks, "clicks"), DataStream[Click])
    numbers = source_stream(
        graph, NumberSequenceSource(1, 9), WatermarkStrategy.no_watermarks(), "numbers"
    )
    assert_type(numbers, DataStream[int])
    inline = source_stream(
        graph,
        generated,
        WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(
            lambda click, _: click.ts
        ),
        "clicks",
    )
    assert_type(inline, DataStream[Click])


def one_by_one(clicks: DataStream[Click]) -> None:
    assert_type(clicks.map(lambda click: click.page), DataStream[str])
    assert_type(clicks.map(Page()), DataStream[str])
    assert_type(clicks.map(Page()).flat_map(Letters()), DataStream[str])
    assert_type(clicks.flat_map(lambda click: [click.ts]), DataStream[int])
    assert_type(clicks.filter(lambda click: click.ts > 3), DataStream[Click])
    assert_type(clicks.process(Pages()), DataStream[str])
    assert_type(clicks.process(Pages()).get_side_output(LATE), DataStream[Click])
    assert_type(clicks.process(Pages()).get_side_output(UNTYPED), DataStream[Any])
    assert_type(clicks.union(clicks, clicks).rebalance(), DataStream[Click])
    assert_type(clicks.name("clicks").uid("c").set_parallelism(2), DataStream[Click])


def keyed(clicks: DataStream[Click]) -> None:
    assert_type(clicks.key_by(lambda click: click.page), KeyedStream[str, Click])
    assert_type(clicks.key_by(ByPage()), KeyedStream[str, Click])
    assert_type(clicks.key_by("page"), KeyedStream[Any, Click])
    by_page = clicks.key_by(lambda click: click.page)
    assert_type(by_page.map(Page()), DataStream[str])
    assert_type(by_page.reduce(Later()), DataStream[Click])
    assert_type(by_page.reduce(lambda one, _: one), DataStream[Click])
    assert_type(by_page.max_by("ts"), DataStream[Click])
    assert_type(by_page.process(Ages()), DataStream[int])
    assert_type(by_page.process(Keys()), DataStream[str])
    clicks.map(lambda click: (click.page, 1)).key_by(lambda pair: pair[0]).reduce(
        lambda one, other: (one[0], one[1] + other[1])
    )


def windows(by_page: KeyedStream[str, Click]) -> None:
    windowed = by_page.window(TumblingEventTimeWindows.of(timedelta(seconds=10)))
    assert_type(windowed, WindowedStream[str, Click, TimeWindow])
    settings = windowed.allowed_lateness(1_000).side_output_late_data(LATE)
    settings.trigger(EventTimeTrigger.create())
    assert_type(windowed.count(), DataStream[WindowCount])
    assert_type(windowed.count().map(lambda each: each.start), DataStream[int])
    assert_type(windowed.sum("ts"), DataStream[Click])
    assert_type(windowed.reduce(Later()), DataStream[Click])
    assert_type(windowed.aggregate(Mean()), DataStream[float])
    assert_type(windowed.aggregate(Mean(), Named()), DataStream[tuple[str, float]])
    assert_type(windowed.apply(Sizes()), DataStream[int])
    assert_type(windowed.apply(lambda key, window, clicks: [key]), DataStream[str])
    total: AggregateFunction[Click, int, str] = AggregateFunction.of(
        create=lambda: 0, add=lambda click, total: total + click.ts, get_result=str
    )
    assert_type(windowed.aggregate(total).get_side_output(LATE), DataStream[Click])
    inline = windowed.aggregate(
        AggregateFunction.of(create=lambda: 0, add=lambda click, total: total + click.ts)
    )
    assert_type(inline, DataStream[int])


def ends(clicks: DataStream[Click]) -> None:
    sink: CollectSink[Click] = CollectSink()
    assert_type(clicks.sink_to(sink), DataStreamSink)
    assert_type(clicks.print().name("out"), DataStreamSink)
    assert_type(clicks.execute_and_collect(), CloseableIterator[Click])
    assert_type(clicks.execute_and_collect("job", 10), list[Click])
    assert_type(clicks.execute_and_collect(limit=10), list[Click])


def mistakes(clicks: DataStream[Click], by_page: KeyedStream[str, Click]) -> None:
    clicks.map(ByPage())  # type: ignore[arg-type]  # a key selector maps nothing
    clicks.filter(Page())  # type: ignore[arg-type]  # a map function decides nothing
    clicks.process(Ages())  # type: ignore[arg-type]  # needs a key
    by_page.process(Pages())  # type: ignore[arg-type]  # has no key
    clicks.key_by(lambda click: [click.page])  # type: ignore[type-var]  # a list is no key
    clicks.union(clicks.map(Page()))  # type: ignore[arg-type]  # of another type
