"""Mistakes in a job are found at the line that makes them, with a sentence that helps."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from operators.datastream import DataStream, source_stream
from operators.functions import AggregateFunction, FilterFunction, MapFunction
from operators.keyed_stream import KeyedStream
from operators.process_functions import KeyedProcessFunction, ProcessFunction
from operators.watermarks import WatermarkStrategy
from operators.windows import TumblingEventTimeWindows
from tests.operators.graph_owner import graph, nodes, source


class Double(MapFunction[int, int]):
    def map(self, value: int) -> int:
        return 2 * value


class AsyncKeep(FilterFunction[int]):
    async def filter(self, value: int) -> bool:  # type: ignore[override]  # the mistake
        return True


class Count(AggregateFunction[object, int, int]):
    def create_accumulator(self) -> int:
        return 0

    def add(self, value: object, accumulator: int) -> int:
        return accumulator + 1

    def get_result(self, accumulator: int) -> int:
        return accumulator


class Pass(ProcessFunction[object, object]):
    def process_element(self, value: object, ctx: ProcessFunction.Context) -> list[object]:
        return [value]


class AsyncTimer(KeyedProcessFunction[object, object, object]):
    def process_element(self, value: object, ctx: KeyedProcessFunction.Context) -> list[object]:
        return [value]

    async def on_timer(  # type: ignore[override]  # the mistake
        self, timestamp: int, ctx: KeyedProcessFunction.OnTimerContext
    ) -> None:
        return None


class ShortTimer(KeyedProcessFunction[object, object, object]):
    def process_element(self, value: object, ctx: KeyedProcessFunction.Context) -> list[object]:
        return [value]

    def on_timer(self, timestamp: int) -> list[object]:  # type: ignore[override]  # the mistake
        return [timestamp]


class ShortOpen(MapFunction[int, int]):
    def open(self) -> None:  # type: ignore[override]  # the mistake
        """Takes nothing."""

    def map(self, value: int) -> int:
        return value


async def double_later(value: int) -> int:
    return 2 * value


async def several_later(value: int) -> AsyncIterator[int]:
    yield value


def keyed(stream: DataStream[Any]) -> KeyedStream[Any, Any]:
    return stream.key_by(lambda value: value)


def windowed(stream: DataStream[Any]) -> Any:
    return keyed(stream).window(TumblingEventTimeWindows.of(10))


Use = Callable[[Any], object]


@pytest.mark.parametrize(
    ("use", "message"),
    [
        (
            lambda s: s.map("upper"),
            r"map\(\) takes an object of MapFunction or a callable.*'upper'",
        ),
        (lambda s: s.filter(Double()), r"filter\(\) got a MapFunction \(Double\)"),
        (lambda s: s.map(Double), r"got the class Double; pass an object of it: map\(Double\(\)\)"),
        (lambda s: s.map(lambda a, b: a), r"map\(\) calls its function with 1 argument"),
        (lambda s: keyed(s).reduce(lambda a: a), r"with 2 arguments"),
        (lambda s: s.map(double_later), r"async function double_later.*not supported yet"),
        (lambda s: s.flat_map(several_later), r"async function several_later"),
        (lambda s: s.filter(AsyncKeep()), r"async function AsyncKeep.filter"),
        (lambda s: keyed(s).process(AsyncTimer()), r"async function AsyncTimer.on_timer"),
        (lambda s: keyed(s).process(ShortTimer()), r"2 arguments.*ShortTimer.on_timer"),
        (lambda s: s.map(ShortOpen()), r"1 argument.*ShortOpen.open"),
        (lambda s: s.process(ShortTimer()), r"\(ShortTimer\), whose.*call key_by\(\.\.\.\)"),
        (lambda s: s.print(5), r"print\(\) takes a string"),
        (lambda s: s.process(lambda value, ctx: [value]), r"takes a ProcessFunction"),
        (lambda s: keyed(s).process(Pass()), r"takes a KeyedProcessFunction, but got.*Pass"),
        (
            lambda s: s.key_by(1.5),
            r"KeySelector or a callable, or the name or index of a field, but",
        ),
        (lambda s: s.key_by(True), r"key_by\(\) takes"),
        (lambda s: s.sink_to(print), r"takes a Sink, but got .*; print\(\) shows .*, and map\(\)"),
        (lambda s: s.get_side_output("late"), r"takes an OutputTag, but got str 'late'"),
        (lambda s: s.union([s]), r"union\(\) takes a DataStream, but got list"),
        (lambda s: s.assign_timestamps_and_watermarks(None), r"takes a WatermarkStrategy"),
        (lambda s: keyed(s).window(10), r"got int 10; .* such as TumblingEventTimeWindows\.of\("),
        (lambda s: windowed(s).aggregate(max), r"aggregate\(\) takes an AggregateFunction"),
        (lambda s: windowed(s).aggregate(Count(), Double()), r"MapFunction \(Double\)"),
        (lambda s: windowed(s).process(Pass()), r"takes a ProcessWindowFunction"),
        (lambda s: windowed(s).apply(lambda key: [key]), r"with 3 arguments"),
        (lambda s: windowed(s).trigger("count"), r"takes a Trigger"),
        (lambda s: windowed(s).side_output_late_data("late"), r"takes an OutputTag"),
        (lambda s: keyed(s).name("keyed"), r"name\(\) concerns an operator"),
        (lambda s: keyed(s).set_parallelism(2), r"set_parallelism\(\) concerns an operator"),
        (lambda s: s.rebalance().uid("spread"), r"uid\(\) concerns an operator"),
        (lambda s: s.union(s).name("both"), r"name\(\) concerns an operator"),
        (lambda s: keyed(s).rebalance(), r"rebalance\(\) on a keyed stream would undo key_by"),
        (lambda s: keyed(s).broadcast(), r"broadcast\(\) on a keyed stream"),
        (lambda s: s.set_parallelism(True), r"is an int from 1 to 32768, not True"),
        (lambda s: s.name(3), r"must be a str, not int 3"),
    ],
)
def test_a_wrong_argument_is_a_type_error(use: Use, message: str) -> None:
    """The message says which method got what, and what it takes; the job stays as it was."""
    of = graph()
    stream = source(of)
    with pytest.raises(TypeError, match=message):
        use(stream)
    assert nodes(of) == ["Source: numbers"]


def test_a_collection_that_is_given_as_a_source_is_told_its_method() -> None:
    """The two begin alike."""
    of = graph()
    with pytest.raises(TypeError, match=r"got list \[1, 2\]; from_collection\(\) reads a list"):
        source_stream(of, [1, 2], WatermarkStrategy.no_watermarks(), "numbers")  # type: ignore[arg-type]  # the mistake
    assert nodes(of) == []


def test_a_negative_lateness_is_refused() -> None:
    """The message names the setting."""
    with pytest.raises(ValueError, match="allowed_lateness must not be negative"):
        windowed(source(graph())).allowed_lateness(-1)


@pytest.mark.parametrize("function", [str, len, "".join, print])
def test_builtins_are_callables_like_others(function: Callable[[Any], object]) -> None:
    """Some have no signature to check; they are taken as they are."""
    source(graph()).map(function)
