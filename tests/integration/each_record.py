"""A watermark generator that leaves no time between a record and its watermark."""

from __future__ import annotations

from typing import Any

from runtime import WatermarkGenerator, WatermarkOutput


class EachRecord(WatermarkGenerator[Any]):
    """A watermark behind each record, as if there were a pause after it."""

    def on_event(self, event: Any, event_timestamp: int, output: WatermarkOutput) -> None:
        output.emit_watermark(event_timestamp - 1)

    def on_periodic_emit(self, output: WatermarkOutput) -> None:
        return None
