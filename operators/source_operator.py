"""Drives a source's reader: timestamps, a watermark per split, one status."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any

from operators.connector_results import awaited, wrong_object
from operators.elements import RecordBatch, SideBatch, StreamElement
from operators.event_time import EventTime
from operators.metrics import MetricGroup
from operators.periodic import PeriodicMail
from operators.source import InputStatus, Source, SourceReader, SplitBatch
from operators.stream_operator import OperatorContext, StreamOperator, Work
from operators.watermarks import WatermarkStrategy
from statebackends.clock import Clock
from statebackends.operator_state import OperatorStateBackend


class ReaderContext:
    """The `SourceReaderContext` of the reader of one `SourceOperator`."""

    def __init__(
        self,
        context: OperatorContext,
        available: Callable[[], None],
        split_opened: Callable[[str], None],
        split_closed: Callable[[str], None],
    ) -> None:
        self.subtask_index: int = context.subtask_index
        self.parallelism: int = context.parallelism
        self.clock: Clock = context.clock
        self.metrics: MetricGroup = context.metrics
        self.operator_state: OperatorStateBackend = context.operator_state
        self.operator_name: str = context.operator_name
        self.restored: bool = context.restored_checkpoint_id is not None
        self.fail: Callable[[BaseException], None] = context.fail
        self.available = available
        self.split_opened = split_opened
        self.split_closed = split_closed


class SourceOperator(StreamOperator):
    """The head of a source task (Flink: `SourceOperator`).

    A source whose enumerator assigns splits, or whose reader has announced one, has a watermark
    per split and is idle while it owns none. Any other reader is one split from the start.
    """

    def __init__(self, source: Source[Any], strategy: WatermarkStrategy[Any]) -> None:
        self._source = source
        self._strategy = strategy
        self._reader: SourceReader[Any] | None = None
        self._periodic: PeriodicMail | None = None
        self._announces = type(source).create_enumerator is not Source.create_enumerator
        self._ended_splits: list[str] = []
        self._passing: set[str | None] = set()
        """Splits whose batches go on as they are, as long as no split is opened or closed."""
        self._waiting = False
        self._polled = False
        self._held_ms = 0
        self._ticked_ms = 0
        self.origin: Callable[[int], str] | None = None
        """Names the place of a record of the batch at hand by its index."""

    # -- life -----------------------------------------------------------------------------------

    def initialize_state(self) -> None:
        """Makes the reader, which takes over what was restored."""
        context = self.context
        interval_ms = context.auto_watermark_interval_ms
        self._event_time = EventTime(self._strategy, self._idleness_clock, interval_ms)
        if not self._announces:
            self._event_time.open_split(None)
        context.metrics.gauge("split_watermarks", self._watermarks_by_split)
        reader = self._source.create_reader(
            ReaderContext(context, self._available, self._split_opened, self._split_closed)
        )
        if not isinstance(reader, SourceReader):
            raise wrong_object(self._source, "create_reader", "a SourceReader", reader)
        self._reader = reader
        reader.initialize_state()

    async def start(self) -> None:
        """Connects the reader and starts the periodic emission."""
        reader = self._running()
        await awaited(reader.start(), reader, "start")
        if self._event_time.emits:
            self._ticked_ms = self.context.clock.now_ms()
            interval_ms = self.context.auto_watermark_interval_ms
            self._periodic = PeriodicMail(self.context, interval_ms, self._tick)
            self._periodic.start()

    def add_splits(self, splits: Sequence[object]) -> None:
        """Hands the reader splits that were assigned to it."""
        self._running().add_splits(splits)

    def no_more_splits(self) -> None:
        """Tells the reader that no split will be assigned any more."""
        self._running().no_more_splits()

    def snapshot_state(self, checkpoint_id: int) -> None:
        """Has the reader put its positions into operator state."""
        self._running().snapshot_state(checkpoint_id)

    def notify_checkpoint_complete(self, checkpoint_id: int) -> None:
        """Tells the reader."""
        self._running().notify_checkpoint_complete(checkpoint_id)

    def close(self) -> None:
        """Stops the periodic emission."""
        if self._periodic is not None:
            self._periodic.stop()

    async def close_async(self) -> None:
        """Closes the reader if there is one."""
        if self._reader is not None:
            await awaited(self._reader.close(), self._reader, "close")

    def process_batch(self, batch: RecordBatch) -> Work:
        """Raises `TypeError`: a source has no input."""
        raise TypeError("a source operator has no input")

    # -- reading --------------------------------------------------------------------------------

    def poll(self, records_max: int) -> Work | InputStatus:
        """What the reader has, stamped, with the watermarks and statuses that follow from it."""
        self._polled = True
        # A reader may call `available` while it is polled, then it is polled again.
        self._waiting = True
        reader = self._reader
        assert reader is not None, "the reader is made in initialize_state"
        polled: object = reader.poll(records_max)
        if isinstance(polled, SplitBatch):
            self._waiting = False
            self.origin = polled.origin
            if (
                polled.timestamps is None
                and polled.values
                and not polled.side
                and (polled.split in self._passing or self._passes(polled.split))
            ):
                return (RecordBatch(polled.values, None, None, polled.origin),)
            return self._stamped(polled)
        if polled is InputStatus.END_OF_INPUT:
            if self._periodic is not None:
                self._periodic.stop()
            return polled
        if polled is not InputStatus.NOTHING_AVAILABLE:
            wanted = "a SplitBatch or an InputStatus"
            raise wrong_object(reader, "poll", wanted, polled)
        status = self._split_changes()
        if status or not self._waiting:
            self._waiting = False
            return status
        return polled

    def split_watermarks(self) -> Iterable[tuple[Hashable, int, bool]]:
        """(split, watermark, idle) of each split: shows who holds the watermark back."""
        return self._event_time.watermarks.partial_watermarks()

    def position(self) -> int | None:
        """Index in the batch at hand of the record that user code saw last."""
        return self._event_time.position()

    def _passes(self, split: str | None) -> bool:
        """Whether batches of a split go on as they are: nothing to stamp, no watermark to come."""
        passes = (
            self._event_time.plain
            and not self._ended_splits
            and not self._reports_empty
            and self._event_time.has_split(split)
        )
        if passes:
            self._passing.add(split)
        return passes

    def _stamped(self, polled: SplitBatch) -> Work:
        event_time = self._event_time
        split = polled.split
        if not event_time.has_split(split):
            event_time.open_split(split)
        yield from event_time.watermarks.report(idle=False) if self._reports_empty else ()
        self._reports_empty = False
        if polled.values:
            batch = RecordBatch(polled.values, polled.timestamps, None, polled.origin)
            yield from event_time.process(batch, split)
        yield from _side_batches(polled.side)
        yield from self._split_changes()

    def _running(self) -> SourceReader[Any]:
        assert self._reader is not None, "the reader is made in initialize_state"
        return self._reader

    # -- splits ---------------------------------------------------------------------------------

    _reports_empty = False
    """True while the status put out is idle because there is no split."""

    def _split_opened(self, split: str) -> None:
        event_time = self._event_time
        self._passing.clear()
        if not self._announces:
            self._announces = True
            event_time.close_split(None)
        if split in self._ended_splits:
            self._ended_splits.remove(split)
            event_time.close_split(split)
        event_time.open_split(split)
        self._available()

    def _split_closed(self, split: str) -> None:
        # Its last records may be in the batch that the reader is about to hand out.
        self._passing.clear()
        self._ended_splits.append(split)
        self._available()

    def _split_changes(self) -> tuple[StreamElement, ...]:
        event_time = self._event_time
        for split in self._ended_splits:
            event_time.close_split(split)
        self._ended_splits.clear()
        empty = len(event_time.watermarks) == 0
        if empty is self._reports_empty:
            return ()
        self._reports_empty = empty
        return event_time.watermarks.report(idle=empty)

    def _watermarks_by_split(self) -> dict[str, int]:
        return {str(split): watermark for split, watermark, _ in self.split_watermarks()}

    # -- time -----------------------------------------------------------------------------------

    def _available(self) -> None:
        self._waiting = False
        self.context.output_freed()

    def _idleness_clock(self) -> int:
        return self.context.clock.now_ms() - self._held_ms

    def _tick(self) -> Work:
        now_ms = self.context.clock.now_ms()
        # A reader that has records which nobody takes is held up by others, it is not idle.
        if not self._polled and not self._waiting:
            self._held_ms += now_ms - self._ticked_ms
        self._polled = False
        self._ticked_ms = now_ms
        return self._event_time.periodic()


def _side_batches(side: list[tuple[str, object]] | None) -> list[SideBatch]:
    by_tag: dict[str, list[object]] = {}
    for tag, value in side or ():
        by_tag.setdefault(tag, []).append(value)
    return [SideBatch(tag, RecordBatch(values)) for tag, values in by_tag.items()]
