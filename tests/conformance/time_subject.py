"""Watermark strategies as the cases describe them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from runtime import DataStream, WatermarkGenerator, WatermarkOutput, WatermarkStrategy


def build_timestamps(operator: dict[str, Any]) -> Callable[[DataStream[Any]], DataStream[Any]]:
    """The stream of a case's timestamps and watermarks."""

    def build(stream: DataStream[Any]) -> DataStream[Any]:
        return stream.assign_timestamps_and_watermarks(_strategy(operator))

    return build


def _strategy(operator: dict[str, Any]) -> WatermarkStrategy[Any]:
    described = operator["strategy"]
    match described["type"]:
        case "bounded_out_of_orderness":
            strategy = WatermarkStrategy.for_bounded_out_of_orderness(described["ms"])
        case "monotonous":
            strategy = WatermarkStrategy.for_monotonous_timestamps()
        case "punctuated_on_value_negative":
            strategy = WatermarkStrategy.for_generator(OnNegativeValues)
        case "no_watermarks":
            strategy = WatermarkStrategy.no_watermarks()
        case other:
            raise AssertionError(f"strategy {other}")
    match operator["timestamp_assigner"]:
        case "value":
            strategy = strategy.with_timestamp_assigner(lambda record, _: record[1])
        case "value_plus_previous":
            strategy = strategy.with_timestamp_assigner(lambda record, ts: record[1] + ts)
        case other:
            assert not other, f"timestamp assigner {other}"
    if "idleness_ms" in described:
        strategy = strategy.with_idleness(described["idleness_ms"])
    return strategy


class OnNegativeValues(WatermarkGenerator[Any]):
    """A watermark with each record whose value is negative, at its timestamp."""

    def on_event(self, event: Any, event_timestamp: int, output: WatermarkOutput) -> None:
        if event[1] < 0:
            output.emit_watermark(event_timestamp)

    def on_periodic_emit(self, output: WatermarkOutput) -> None:
        return None
