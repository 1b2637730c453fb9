"""Any source at a bounded rate: for replays of old data, load tests and gentle catch-up.

Flink: `RateLimitedSourceReader` with `RateLimiterStrategy.perSecond`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from typing_extensions import override

from connectors.datagen import RateLimiter
from operators.source import (
    Boundedness,
    InputStatus,
    Source,
    SourceReader,
    SourceReaderContext,
    SplitBatch,
    SplitEnumerator,
    SplitEnumeratorContext,
)
from statebackends.clock import ScheduledCall

T = TypeVar("T")

BURST_MS = 100
"""A source that had nothing to read may afterwards catch up this much of its schedule."""


class RateLimitedSource(Source[T]):
    """Reads another source, no faster than a rate that all its subtasks share evenly.

    Args:
        source: the source to read; positions, splits and watermarks stay its own affair.
        rate_limiter: how many records per second all subtasks together put out at most.
    """

    def __init__(self, source: Source[T], rate_limiter: RateLimiter) -> None:
        self._source = source
        self._rate_limiter = rate_limiter

    @property
    def boundedness(self) -> Boundedness:
        """That of the source."""
        return self._source.boundedness

    @property
    def replayable(self) -> bool:
        """As the source is."""
        return self._source.replayable

    def create_reader(self, context: SourceReaderContext) -> SourceReader[T]:
        """The source's reader behind a limiter."""
        rate = self._rate_limiter.records_per_second / context.parallelism
        return _RateLimitedReader(context, self._source.create_reader(context), rate)

    def create_enumerator(self, context: SplitEnumeratorContext) -> SplitEnumerator | None:
        """The source's own."""
        return self._source.create_enumerator(context)


class _RateLimitedReader(SourceReader[T]):
    def __init__(
        self, context: SourceReaderContext, reader: SourceReader[T], records_per_second: float
    ) -> None:
        super().__init__(context)
        self._reader = reader
        self._records_per_ms = records_per_second / 1000
        self._credit = 0.0
        self._credited_ms = 0
        self._wake_up: ScheduledCall | None = None

    @override
    def initialize_state(self) -> None:
        self._reader.initialize_state()

    @override
    async def start(self) -> None:
        await self._reader.start()
        self._credited_ms = self.context.clock.now_ms()
        self._credit = 1.0

    @override
    def poll(self, records_max: int) -> SplitBatch | InputStatus:
        now_ms = self.context.clock.now_ms()
        most = max(1.0, BURST_MS * self._records_per_ms)
        earned = (now_ms - self._credited_ms) * self._records_per_ms
        self._credit = min(most, self._credit + earned)
        self._credited_ms = now_ms
        if self._credit < 1:
            if self._wake_up is None:
                wait_ms = max(1, int((1 - self._credit) / self._records_per_ms))
                self._wake_up = self.context.clock.call_at(now_ms + wait_ms, self._wake)
            return InputStatus.NOTHING_AVAILABLE
        polled = self._reader.poll(min(records_max, int(self._credit)))
        if isinstance(polled, SplitBatch):
            self._credit -= len(polled.values)
        return polled

    @override
    def add_splits(self, splits: Sequence[object]) -> None:
        self._reader.add_splits(splits)

    @override
    def no_more_splits(self) -> None:
        self._reader.no_more_splits()

    @override
    def snapshot_state(self, checkpoint_id: int) -> None:
        self._reader.snapshot_state(checkpoint_id)

    @override
    def notify_checkpoint_complete(self, checkpoint_id: int) -> None:
        self._reader.notify_checkpoint_complete(checkpoint_id)

    @override
    async def close(self) -> None:
        if self._wake_up is not None:
            self._wake_up.cancel()
            self._wake_up = None
        await self._reader.close()

    def _wake(self) -> None:
        self._wake_up = None
        self.context.available()
