"""What the operators that windowed streams add do with records."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from operators.datastream import DataStream
from operators.elements import Watermark
from operators.functions import AggregateFunction
from operators.output_tag import OutputTag
from operators.triggers import ProcessingTimeTrigger
from operators.window_contents import WindowCount
from operators.window_functions import ProcessWindowFunction, WindowFunction
from operators.windowed_stream import WindowedStream
from operators.windows import TimeWindow, TumblingEventTimeWindows
from tests.operators.fakes import Driver
from tests.operators.graph_owner import graph, last, source

LATE: OutputTag[Any] = OutputTag("late")
SALES = [("a", 5), ("a", 2), ("b", 9), ("a", 7)]
TIMES = [1, 2, 3, 12]


class Described(ProcessWindowFunction[Any, str, str, TimeWindow]):
    def process(
        self, key: str, context: ProcessWindowFunction.Context[TimeWindow], elements: Iterable[Any]
    ) -> Iterable[str]:
        yield f"{key}@{context.window().start}: {list(elements)}"


class Amounts(WindowFunction[Any, list[int], str, TimeWindow]):
    def apply(self, key: str, window: TimeWindow, inputs: Iterable[Any]) -> Iterable[list[int]]:
        return [[amount for _, amount in inputs]]


def windowed() -> WindowedStream[Any, Any, TimeWindow]:
    return source(graph()).key_by(0).window(TumblingEventTimeWindows.of(10))


def driver(stream: DataStream[Any]) -> Driver:
    """The operator that puts out `stream`, opened."""
    node = last(stream._graph)
    assert node.keyed
    return Driver(node.operator())


def results(stream: DataStream[Any]) -> list[Any]:
    """What comes out of the sales once the watermark passed them all, by key and time."""
    one = driver(stream)
    assert one.records(SALES, TIMES, [shop for shop, _ in SALES]) == []
    fired = [each for each in one.watermark(100) if not isinstance(each, Watermark)]
    return [value for value, timestamp in sorted(fired, key=lambda each: (each[1], str(each[0])))]


def test_count_says_key_window_and_number() -> None:
    """The built-in count needs no function."""
    assert results(windowed().count()) == [
        WindowCount("a", 0, 10, 2),
        WindowCount("b", 0, 10, 1),
        WindowCount("a", 10, 20, 1),
    ]


def test_built_in_aggregates_reduce_a_field() -> None:
    """Per key and window."""
    assert results(windowed().sum(1)) == [("a", 7), ("b", 9), ("a", 7)]
    assert results(windowed().min(1)) == [("a", 2), ("b", 9), ("a", 7)]
    assert results(windowed().max_by(1)) == [("a", 5), ("b", 9), ("a", 7)]


def test_reduce_and_aggregate_give_one_result_or_pass_it_on() -> None:
    """With a window function its outputs replace the result."""
    total: AggregateFunction[Any, int, int] = AggregateFunction.of(
        create=lambda: 0, add=lambda sale, total: total + sale[1]
    )
    assert results(windowed().aggregate(total)) == [7, 9, 7]
    assert results(windowed().aggregate(total, Described())) == [
        "a@0: [7]",
        "b@0: [9]",
        "a@10: [7]",
    ]
    assert results(windowed().reduce(max, Described()))[0] == "a@0: [('a', 5)]"
    assert results(windowed().reduce(max)) == [("a", 5), ("b", 9), ("a", 7)]


def test_process_and_apply_get_all_elements() -> None:
    """In the order of their arrival; a callable serves as a window function."""
    assert results(windowed().process(Described()))[0] == "a@0: [('a', 5), ('a', 2)]"
    assert results(windowed().apply(Amounts())) == [[5, 2], [9], [7]]
    starts = windowed().apply(lambda key, window, _: [(key, window.start)])
    assert results(starts) == [("a", 0), ("b", 0), ("a", 10)]


def test_late_records_fire_again_within_the_lateness_and_leave_after_it() -> None:
    """Both settings reach the operator."""
    stream = windowed().allowed_lateness(5).side_output_late_data(LATE).count()
    one = driver(stream)
    one.records([("a", 1)], [1], ["a"])
    one.watermark(10)
    assert one.records([("a", 1)], [2], ["a"]) == [(WindowCount("a", 0, 10, 2), 9)]
    one.watermark(14)
    (late,) = one.records([("a", 1)], [3], ["a"])
    assert late == ("late", ("a", 1), 3)


def test_another_trigger_replaces_the_assigners() -> None:
    """The watermark then fires nothing."""
    one = driver(windowed().trigger(ProcessingTimeTrigger.create()).count())
    one.records([("a", 1)], [1], ["a"])
    assert [each for each in one.watermark(9) if not isinstance(each, Watermark)] == []


def test_the_operator_is_named_by_its_assigner() -> None:
    """As in Flink's plans."""
    stream = windowed().count()
    assert stream.get_name() == "Window(TumblingEventTimeWindows)"
