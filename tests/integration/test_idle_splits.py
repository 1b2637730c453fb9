"""A source of three splits of which one has data: idle splits hold nothing back."""

from __future__ import annotations

from collections import deque
from datetime import timedelta
from typing import Any, cast

from operators.elements import MIN_TIMESTAMP
from runtime import (
    Boundedness,
    InputStatus,
    Source,
    SourceReader,
    SourceReaderContext,
    SplitBatch,
    TumblingEventTimeWindows,
    WatermarkStrategy,
    WindowCount,
)
from runtime.testing import OperatorHarness, Watermark

SPLITS = ("clicks[0]", "clicks[1]", "clicks[2]")


class Feed(Source[int]):
    """Seconds of event time that the test puts into one of three splits."""

    def __init__(self) -> None:
        self.pending: deque[tuple[str, list[int]]] = deque()
        self.reader: FeedReader | None = None

    @property
    def boundedness(self) -> Boundedness:
        return Boundedness.CONTINUOUS_UNBOUNDED

    def create_reader(self, context: SourceReaderContext) -> SourceReader[int]:
        self.reader = FeedReader(context, self.pending)
        return self.reader

    def put(self, split: str, seconds: list[int]) -> None:
        assert self.reader is not None
        self.pending.append((split, seconds))
        self.reader.context.available()


class FeedReader(SourceReader[int]):
    """Reads what was put in; all its splits are there from the start."""

    def __init__(self, context: SourceReaderContext, pending: deque[tuple[str, list[int]]]) -> None:
        super().__init__(context)
        self._pending = pending

    async def start(self) -> None:
        for split in SPLITS:
            self.context.split_opened(split)

    def poll(self, records_max: int) -> SplitBatch | InputStatus:
        if not self._pending:
            return InputStatus.NOTHING_AVAILABLE
        split, seconds = self._pending.popleft()
        return SplitBatch(list(seconds), split=split)

    def snapshot_state(self, checkpoint_id: int) -> None:
        return None


class Run:
    """10-second counts of a feed; the first split brings the seconds 0 to 60, then is silent."""

    def __init__(self, strategy: WatermarkStrategy[Any]) -> None:
        self.feed = Feed()
        self.harness = OperatorHarness.of_source(
            self.feed,
            strategy.with_timestamp_assigner(lambda second, _: second * 1_000),
            lambda seconds: (
                seconds.key_by(lambda _: "all").window(TumblingEventTimeWindows.of(10_000)).count()
            ),
        )
        for second in range(61):
            self.put(0, [second])
            self.harness.pass_time(50)

    def put(self, split: int, seconds: list[int]) -> None:
        self.feed.put(SPLITS[split], seconds)
        self.harness.settle()

    def watermarks(self) -> list[int]:
        return [e.timestamp for e in self.harness.emitted if isinstance(e, Watermark)]


def with_idleness() -> Run:
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(0)
    return Run(strategy.with_idleness(timedelta(seconds=2)))


FIRST_SIX = [WindowCount("all", start, start + 10_000, 10) for start in range(0, 60_000, 10_000)]


def test_windows_come_out_though_two_splits_are_silent() -> None:
    """All six are there 5 s after the last record."""
    run = with_idleness()
    run.harness.pass_time(5_000)
    assert run.harness.values() == FIRST_SIX


def test_a_split_that_begins_late_is_judged_by_the_watermark() -> None:
    """What is ahead of the watermark is taken in, what is behind it is counted as late."""
    run = with_idleness()
    run.harness.pass_time(10_000)
    run.put(1, [61, 5])
    assert run.harness.metric("num_late_records_dropped") == 1
    run.put(1, [75])
    run.harness.pass_time(1_000)
    assert run.harness.values() == [*FIRST_SIX, WindowCount("all", 60_000, 70_000, 2)]


def test_the_watermark_never_goes_back() -> None:
    """Not when a split begins with earlier times either."""
    run = with_idleness()
    run.harness.pass_time(10_000)
    run.put(1, [61, 5])
    run.put(2, [3])
    run.harness.pass_time(1_000)
    run.put(1, [90])
    run.put(2, [80])
    run.harness.pass_time(1_000)
    watermarks = run.watermarks()
    assert watermarks == sorted(set(watermarks))
    assert watermarks[-1] == 79_999


def test_without_idleness_a_metric_shows_who_holds_the_watermark() -> None:
    """Nothing comes out; the splits without a watermark are named."""
    run = Run(WatermarkStrategy.for_bounded_out_of_orderness(0))
    run.harness.pass_time(60_000)
    assert run.harness.values() == []
    (by_split,) = run.harness.readings("split_watermarks")
    assert cast("dict[str, int]", by_split) == {
        SPLITS[0]: 59_999,
        SPLITS[1]: MIN_TIMESTAMP,
        SPLITS[2]: MIN_TIMESTAMP,
    }
