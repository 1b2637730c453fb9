"""Windows as the cases describe them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from runtime import (
    AggregateFunction,
    DataStream,
    EventTimeTrigger,
    OutputTag,
    ProcessingTimeTrigger,
    ProcessWindowFunction,
    PurgingTrigger,
    SlidingEventTimeWindows,
    SlidingProcessingTimeWindows,
    Trigger,
    TumblingEventTimeWindows,
    TumblingProcessingTimeWindows,
    ValueStateDescriptor,
    WindowAssigner,
    WindowedStream,
)

Record = tuple[Any, Any]
Windowed = WindowedStream[Any, Any, Any]

LATE = OutputTag[Any]("late")


def build_windows(
    operator: dict[str, Any], *, folded: bool = True
) -> Callable[[DataStream[Any]], DataStream[Any]]:
    """The stream of a case's window operator; unless `folded` by its general way."""

    def build(stream: DataStream[Any]) -> DataStream[Any]:
        assigner = _assigner(operator["window"])
        windowed: Windowed = stream.key_by(lambda record: record[0]).window(assigner)
        if "trigger" in operator:
            windowed = windowed.trigger(_trigger(operator["trigger"]))
        elif not folded and assigner.is_event_time():
            windowed = windowed.trigger(AtTheEnd())
        if "allowed_lateness_ms" in operator:
            windowed = windowed.allowed_lateness(operator["allowed_lateness_ms"])
        if operator.get("late_side_output"):
            windowed = windowed.side_output_late_data(LATE)
        return _apply(windowed, operator["function"])

    return build


class AtTheEnd(EventTimeTrigger):
    """The default trigger, as one of the user's own: nothing is known about it."""


def _assigner(window: dict[str, Any]) -> WindowAssigner[Any, Any]:
    size, offset = window["size_ms"], window.get("offset_ms", 0)
    match window["type"]:
        case "tumbling_event_time":
            return TumblingEventTimeWindows.of(size, offset)
        case "tumbling_processing_time":
            return TumblingProcessingTimeWindows.of(size, offset)
        case "sliding_event_time":
            return SlidingEventTimeWindows.of(size, window["slide_ms"], offset)
        case "sliding_processing_time":
            return SlidingProcessingTimeWindows.of(size, window["slide_ms"], offset)
        case other:
            raise AssertionError(f"windows {other}")


def _trigger(trigger: dict[str, Any]) -> Trigger[Any, Any]:
    match trigger["type"]:
        case "event_time":
            return EventTimeTrigger.create()
        case "processing_time":
            return ProcessingTimeTrigger.create()
        case "purging":
            return PurgingTrigger.of(_trigger(trigger["inner"]))
        case other:
            raise AssertionError(f"trigger {other}")


def _apply(windowed: Windowed, function: str) -> DataStream[Any]:
    match function:
        case "list":
            return windowed.process(Listing())
        case "list_with_state":
            return windowed.process(ListingWithState())
        case "count":
            count = AggregateFunction.of(
                create=lambda: 0, add=lambda record, acc: acc + 1, get_result=lambda acc: acc
            )
            return windowed.aggregate(count, Result())
        case "sum":
            total = AggregateFunction.of(
                create=lambda: 0, add=lambda record, acc: acc + record[1], get_result=lambda a: a
            )
            return windowed.aggregate(total, Result())
        case "aggregate_avg":
            return windowed.aggregate(Average())
        case "reduce_sum":
            return windowed.reduce(_add)
        case "reduce_sum_with_window":
            return windowed.reduce(_add, ReducedResult())
        case _ if function.startswith("field_"):
            by_field: Callable[[int], DataStream[Any]] = getattr(windowed, function[6:])
            return by_field(1)
        case other:
            raise AssertionError(f"window function {other}")


def _add(left: Record, right: Record) -> Record:
    return (left[0], left[1] + right[1])


def _span(window: Any) -> list[int] | None:
    return [window.start, window.end] if hasattr(window, "start") else None


class Average(AggregateFunction[Record, tuple[int, int], float]):
    """The mean of the values."""

    def create_accumulator(self) -> tuple[int, int]:
        return 0, 0

    def add(self, value: Record, accumulator: tuple[int, int]) -> tuple[int, int]:
        return accumulator[0] + value[1], accumulator[1] + 1

    def get_result(self, accumulator: tuple[int, int]) -> float:
        return accumulator[0] / accumulator[1]

    def merge(self, acc_a: tuple[int, int], acc_b: tuple[int, int]) -> tuple[int, int]:
        return acc_a[0] + acc_b[0], acc_a[1] + acc_b[1]


class Listing(ProcessWindowFunction[Record, Any, Any, Any]):
    """Key, window, values and watermark."""

    def process(
        self, key: Any, context: ProcessWindowFunction.Context[Any], elements: Iterable[Record]
    ) -> Iterator[Any]:
        yield {
            "key": key,
            "window": _span(context.window()),
            "values": [record[1] for record in elements],
            "wm": context.current_watermark(),
        }


class ListingWithState(Listing):
    """The same with a count of firings per key and one per window."""

    _global = ValueStateDescriptor[int]("global_fires")
    _window = ValueStateDescriptor[int]("window_fires")

    def process(
        self, key: Any, context: ProcessWindowFunction.Context[Any], elements: Iterable[Record]
    ) -> Iterator[Any]:
        global_fires = context.global_state().get_state(self._global)
        window_fires = context.window_state().get_state(self._window)
        global_fires.update((global_fires.value() or 0) + 1)
        window_fires.update((window_fires.value() or 0) + 1)
        for result in super().process(key, context, elements):
            yield {
                **result,
                "global_fires": global_fires.value(),
                "window_fires": window_fires.value(),
            }

    def clear(self, context: ProcessWindowFunction.Context[Any]) -> None:
        context.window_state().get_state(self._window).clear()


class Result(ProcessWindowFunction[Any, Any, Any, Any]):
    """Key, window and the one result."""

    def process(
        self, key: Any, context: ProcessWindowFunction.Context[Any], elements: Iterable[Any]
    ) -> Iterator[Any]:
        (result,) = elements
        yield {"key": key, "window": _span(context.window()), "result": result}


class ReducedResult(ProcessWindowFunction[Record, Any, Any, Any]):
    """Key, window and the value of the reduced record."""

    def process(
        self, key: Any, context: ProcessWindowFunction.Context[Any], elements: Iterable[Record]
    ) -> Iterator[Any]:
        ((_, result),) = elements
        yield {"key": key, "window": _span(context.window()), "result": result}
