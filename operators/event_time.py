"""Timestamps and watermarks of the records of one subtask, by a `WatermarkStrategy`."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from itertools import repeat
from operator import length_hint
from types import NoneType
from typing import Any, NoReturn

from operators.combined_watermark import SplitWatermarks, WatermarkElements
from operators.elements import (
    MIN_TIMESTAMP,
    RECORD_TIMESTAMP_LIMIT,
    RecordBatch,
    StreamElement,
    Watermark,
)
from operators.errors import WrongResultError, WrongTimestampError
from operators.watermarks import (
    BatchWatermarkGenerator,
    WatermarkGenerator,
    WatermarkStrategy,
    WatermarksWithIdleness,
)

Timestamps = list[int | None]

RECORDS_BETWEEN_WATERMARKS_MAX = 1_000
"""At full speed a watermark comes at the latest after so many records and a batch."""


class SplitOutput:
    """Where the generator of one split puts its watermarks."""

    __slots__ = ("_split", "_watermarks", "changed")

    def __init__(self, watermarks: SplitWatermarks, split: Hashable) -> None:
        self._watermarks = watermarks
        self._split = split
        self.changed = False
        """True after a call until it is set back."""

    def emit_watermark(self, watermark: int | Watermark) -> None:
        """See `WatermarkOutput`; `WrongResultError` for anything but an int or a `Watermark`."""
        timestamp = watermark.timestamp if isinstance(watermark, Watermark) else watermark
        if type(timestamp) is not int:
            raise WrongResultError(f"a watermark is an int in ms, not {timestamp!r}")
        self._watermarks.update(self._split, timestamp)
        self.changed = True

    def mark_idle(self) -> None:
        """See `WatermarkOutput`."""
        self._watermarks.mark(self._split, idle=True)
        self.changed = True

    def mark_active(self) -> None:
        """See `WatermarkOutput`."""
        self._watermarks.mark(self._split, idle=False)
        self.changed = True


class EventTime:
    """Stamps records, feeds the generator of their split, combines the splits' watermarks.

    `clock` gives ms for idleness. With an `interval_ms` of 0 watermarks are put out only by
    `on_event` of a custom generator; otherwise `periodic` is to be called each interval, and is
    called here in between where records come fast. While user code sees the records of a batch,
    `position` says which one it saw last.
    """

    def __init__(
        self, strategy: WatermarkStrategy[Any], clock: Callable[[], int], interval_ms: int
    ) -> None:
        self._strategy = strategy
        self._emits = interval_ms > 0 and strategy.generator_factory is not None
        self._records_since_watermark = 0
        self._clock = clock
        self._assigner = strategy.create_assigner()
        self.plain = self._assigner is None and strategy.generator_factory is None
        """Neither timestamps nor watermarks are made."""
        self.watermarks = SplitWatermarks()
        self._splits: dict[Hashable, tuple[WatermarkGenerator[Any] | None, SplitOutput]] = {}
        self._records: Iterator[object] | None = None
        self._size = 0
        self._failed_at: int | None = None

    @property
    def emits(self) -> bool:
        """False if `periodic` is never to be called."""
        return self._emits

    def open_split(self, split: Hashable) -> None:
        """A split counts from now on."""
        self.watermarks.register(split)
        generator = self._strategy.create_generator(self._clock)
        self._splits[split] = (generator, SplitOutput(self.watermarks, split))

    def close_split(self, split: Hashable) -> None:
        """A split no longer holds the others back; does nothing if it is not open."""
        if self._splits.pop(split, None) is not None:
            self.watermarks.unregister(split)

    def has_split(self, split: Hashable) -> bool:
        """Whether a split is open."""
        return split in self._splits

    def position(self) -> int | None:
        """Index in the batch at hand of the record seen last, or of the one that is refused."""
        if self._failed_at is not None:
            return self._failed_at
        if self._records is None:
            return None
        index = self._size - length_hint(self._records) - 1
        return index if index >= 0 else None

    def periodic(self) -> WatermarkElements:
        """Has every generator put out its watermark; what they amount to."""
        self._records = None
        self._records_since_watermark = 0
        for generator, output in self._splits.values():
            if generator is not None:
                generator.on_periodic_emit(output)
                output.changed = False
        return self.watermarks.elements()

    def process(self, batch: RecordBatch, split: Hashable) -> Iterator[StreamElement]:
        """The records with their timestamps, each watermark right behind the record it is for."""
        yield from self._stamp(batch, split)
        self._records_since_watermark += len(batch.values)
        if self._emits and self._records_since_watermark >= RECORDS_BETWEEN_WATERMARKS_MAX:
            yield from self.periodic()

    def _stamp(self, batch: RecordBatch, split: Hashable) -> Iterator[StreamElement]:
        values = batch.values
        timestamps = self._stamped(values, batch.timestamps)
        highest = None if timestamps is None else self._highest(timestamps)
        generator, output = self._splits[split]
        if generator is None or takes_batches(generator, highest, len(values)):
            yield RecordBatch(values, timestamps, None, batch.origin)
            return
        self._size = len(values)
        records = self._records = iter(values)
        on_event = generator.on_event
        begin = end = 0
        for value, timestamp in zip(records, timestamps or repeat(None), strict=False):
            end += 1
            on_event(value, MIN_TIMESTAMP if timestamp is None else timestamp, output)
            if output.changed:
                output.changed = False
                elements = self.watermarks.elements()
                if elements:
                    yield _part(values, timestamps, begin, end, batch.origin)
                    yield from elements
                    begin = end
                    self._records = records
        if begin < end:
            yield _part(values, timestamps, begin, end, batch.origin)

    def _stamped(self, values: list[object], timestamps: Timestamps | None) -> Timestamps | None:
        assigner = self._assigner
        if assigner is None:
            return timestamps
        self._size = len(values)
        records = self._records = iter(values)
        if timestamps is None:
            stamped: Timestamps = list(map(assigner, records, repeat(MIN_TIMESTAMP)))
        else:
            known = [MIN_TIMESTAMP if t is None else t for t in timestamps]
            stamped = list(map(assigner, records, known))
        if len(stamped) != len(values):
            # `map` takes a StopIteration of its function for the end of its input.
            raise RuntimeError("the timestamp assigner raised StopIteration")
        return stamped

    def _highest(self, timestamps: Timestamps) -> int | None:
        """The highest timestamp; raises `ValueError` or `TypeError` for one that is none."""
        kinds = set(map(type, timestamps))
        if kinds <= {int}:
            known: list[int] = timestamps  # type: ignore[assignment]  # their types say it
        elif kinds <= {int, NoneType} and self._assigner is None:
            known = [t for t in timestamps if t is not None]
            if not known:
                return None
        else:
            allowed = (int, NoneType) if self._assigner is None else (int,)
            self._refuse(
                timestamps, next(i for i, t in enumerate(timestamps) if type(t) not in allowed)
            )
        highest = max(known)
        if highest >= RECORD_TIMESTAMP_LIMIT or min(known) <= -RECORD_TIMESTAMP_LIMIT:
            self._refuse(
                timestamps,
                next(
                    i
                    for i, t in enumerate(timestamps)
                    if t is not None and abs(t) >= RECORD_TIMESTAMP_LIMIT
                ),
            )
        return highest

    def _refuse(self, timestamps: Timestamps, index: int) -> NoReturn:
        self._failed_at = index
        timestamp = timestamps[index]
        if type(timestamp) is int:
            raise WrongTimestampError(
                f"a record's timestamp must lie strictly between -2**62 and 2**62 ms: {timestamp}"
            )
        raise WrongResultError(
            f"a record's timestamp must be an int in ms, not {type(timestamp).__name__} "
            f"{timestamp!r:.80}"
        )


def takes_batches(generator: WatermarkGenerator[Any], highest: int | None, count: int) -> bool:
    """Shows a batch to a generator that needs only its highest timestamp; false if it needs all."""
    inner = generator.inner if isinstance(generator, WatermarksWithIdleness) else generator
    if not isinstance(inner, BatchWatermarkGenerator):
        return False
    inner.on_batch(highest, count)
    if isinstance(generator, WatermarksWithIdleness):
        generator.activity()
    return True


def _part(
    values: list[object],
    timestamps: Timestamps | None,
    begin: int,
    end: int,
    origin: Callable[[int], str] | None,
) -> RecordBatch:
    part_origin = None if origin is None else lambda index: origin(begin + index)
    part_timestamps = None if timestamps is None else timestamps[begin:end]
    return RecordBatch(values[begin:end], part_timestamps, None, part_origin)
