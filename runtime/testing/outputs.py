"""What comes out of the operators under test, in the order in which it came."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

from operators.elements import RecordBatch, Watermark, WatermarkStatus
from operators.stateless import FilterOperator, MapOperator
from operators.stream_operator import StreamOperator, Work
from runtime.chain import ChainNode, Route
from runtime.exchange import ControlElement, RecordWriter


@dataclass(frozen=True, slots=True)
class EmittedRecord:
    """A record that came out; `side` is the id of its output tag, None on the main output.

    `value` is a user's, so that a test may look into it without a cast.
    """

    value: Any
    timestamp: int | None = None
    side: str | None = None


Emitted: TypeAlias = EmittedRecord | Watermark | WatermarkStatus
"""One thing that came out."""


class OutputRecorder:
    """Collects what the subtasks put out."""

    def __init__(self) -> None:
        self.emitted: list[Emitted] = []

    def add_batch(self, batch: RecordBatch, side: str | None = None) -> None:
        """The records of a batch."""
        timestamps = batch.timestamps or [None] * len(batch.values)
        self.emitted += [
            EmittedRecord(value, timestamp, side)
            for value, timestamp in zip(batch.values, timestamps, strict=True)
        ]

    def watch_sides(self, node: ChainNode) -> None:
        """Records the side outputs of a node that nobody consumes, under whatever tag."""
        if isinstance(node.operator, MapOperator | FilterOperator):
            return  # These have none, and neighbours of theirs share a loop if left as they are.
        node.sides = _WatchedSides(node.sides, self)
        # A node with one route takes a short way on which side outputs do not come by.
        node.routes.append(Route())


class RecordingOperator(StreamOperator):
    """The end of the stream under test."""

    def __init__(self, recorder: OutputRecorder) -> None:
        self._recorder = recorder

    def process_batch(self, batch: RecordBatch) -> Work:
        """Records it."""
        self._recorder.add_batch(batch)
        return ()

    def process_watermark(self, watermark: Watermark) -> Work:
        """Records it."""
        self._recorder.emitted.append(watermark)
        return ()

    def process_status(self, status: WatermarkStatus) -> Work:
        """Records it."""
        self._recorder.emitted.append(status)
        return ()


class _SideWriter(RecordWriter):
    def __init__(self, tag: str, recorder: OutputRecorder) -> None:
        super().__init__(())
        self._tag = tag
        self._recorder = recorder

    def emit(self, batch: RecordBatch) -> None:
        self._recorder.add_batch(batch, self._tag)

    def control(self, element: ControlElement) -> None:
        """Nothing: watermarks are recorded on the main output."""


class _WatchedSides(dict[str, Route]):
    """Has a route for every tag: that of its consumer, else one that records."""

    def __init__(self, sides: dict[str, Route], recorder: OutputRecorder) -> None:
        super().__init__(sides)
        self._recorder = recorder

    def get(self, tag: str, default: object = None) -> Route:
        route = super().get(tag)
        if route is None:
            route = self[tag] = Route()
            route.writers.append(_SideWriter(tag, self._recorder))
        return route
