"""Timestamps and watermarks assigned in the middle of a stream."""

from __future__ import annotations

from typing import Any

from operators.elements import MAX_TIMESTAMP, RecordBatch, Watermark, WatermarkStatus
from operators.event_time import EventTime
from operators.periodic import PeriodicMail
from operators.stream_operator import StreamOperator, Work
from operators.watermarks import WatermarkStrategy


class TimestampsAndWatermarksOperator(StreamOperator):
    """Replaces what upstream says about event time (Flink's operator of that name).

    Watermarks and statuses of upstream are swallowed; only the end of time passes.
    """

    def __init__(self, strategy: WatermarkStrategy[Any]) -> None:
        self._strategy = strategy
        self._periodic: PeriodicMail | None = None

    def open(self) -> None:
        """Makes the generator and starts its periodic emission."""
        context = self.context
        interval_ms = context.auto_watermark_interval_ms
        self._event_time = EventTime(self._strategy, context.clock.now_ms, interval_ms)
        self._event_time.open_split(None)
        if self._event_time.emits:
            self._periodic = PeriodicMail(context, interval_ms, self._event_time.periodic)
            self._periodic.start()

    def process_batch(self, batch: RecordBatch) -> Work:
        """The records with new timestamps, and watermarks that follow at once."""
        return self._event_time.process(batch, None)

    def process_watermark(self, watermark: Watermark) -> Work:
        """Lets the end of time pass."""
        if watermark.timestamp != MAX_TIMESTAMP:
            return ()
        self._event_time.watermarks.update(None, MAX_TIMESTAMP)
        return self._event_time.watermarks.elements()

    def process_status(self, status: WatermarkStatus) -> Work:
        """Swallows it: the strategy alone says what is idle."""
        return ()

    def end_input(self) -> Work:
        """Puts out the last watermark."""
        if self._periodic is None:
            return ()
        self._periodic.stop()
        return self._event_time.periodic()

    def position(self) -> int | None:
        """Index in the batch at hand of the record that user code saw last."""
        return self._event_time.position()

    def close(self) -> None:
        """Stops the periodic emission."""
        if self._periodic is not None:
            self._periodic.stop()
