"""Several readers of one stream, and subtasks without input, each get what is theirs."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence
from datetime import timedelta

import pytest

from operators.sink import Sink, SinkWriter, SinkWriterContext
from runtime import (
    Boundedness,
    CollectSink,
    Configuration,
    InputStatus,
    Source,
    SourceReader,
    SourceReaderContext,
    SplitBatch,
    SplitEnumerator,
    SplitEnumeratorContext,
    StreamExecutionEnvironment,
    TumblingEventTimeWindows,
    WatermarkStrategy,
    WindowCount,
)

RECORDS = 5_000


class SlowSink(Sink[int]):
    """Has room for one write at a time, and again only some turns of the loop later."""

    def __init__(self, turns: int) -> None:
        self.turns = turns
        self.taken: Counter[tuple[int, int]] = Counter()
        """How often each subtask took each value."""

    def create_writer(self, context: SinkWriterContext) -> SinkWriter[int]:
        return SlowWriter(self, context)


class SlowWriter(SinkWriter[int]):
    def __init__(self, sink: SlowSink, context: SinkWriterContext) -> None:
        self._sink = sink
        self._context = context
        self._busy = 0

    @property
    def has_room(self) -> bool:
        return not self._busy

    def write(self, values: Sequence[int], timestamps: Sequence[int | None] | None) -> None:
        subtask = self._context.subtask_index
        self._sink.taken.update((subtask, value) for value in values)
        self._busy = self._sink.turns
        asyncio.get_running_loop().call_soon(self._work)

    def _work(self) -> None:
        self._busy -= 1
        if self._busy:
            asyncio.get_running_loop().call_soon(self._work)
        else:
            self._context.room_freed()


@pytest.mark.parametrize("capacity", [1, 16, 4_096])
async def test_slow_readers_of_one_stream_get_each_record_once(capacity: int) -> None:
    """Three subtasks of a broadcast get all records each, two other consumers share nothing."""
    env = StreamExecutionEnvironment.get_execution_environment(
        Configuration().set_integer("riverrun.channel.capacity", capacity)
    )
    sinks = [SlowSink(turns) for turns in (3, 1, 2)]
    numbers = env.from_sequence(1, RECORDS)
    broadcast = numbers.broadcast().map(lambda value: value).set_parallelism(3)
    broadcast.sink_to(sinks[0]).set_parallelism(3)
    for sink in sinks[1:]:
        numbers.map(lambda value: value).start_new_chain().sink_to(sink)
    await env.execute_async("fan out")
    every = range(1, RECORDS + 1)
    assert sinks[0].taken == Counter((subtask, value) for subtask in range(3) for value in every)
    assert sinks[1].taken == sinks[2].taken == Counter((0, value) for value in every)


class TwoPartitions(Source[int]):
    """Two splits of the seconds 0 to 30 that never end, given to the first two subtasks."""

    @property
    def boundedness(self) -> Boundedness:
        return Boundedness.CONTINUOUS_UNBOUNDED

    def create_reader(self, context: SourceReaderContext) -> SourceReader[int]:
        return PartitionReader(context)

    def create_enumerator(self, context: SplitEnumeratorContext) -> SplitEnumerator:
        return PartitionEnumerator(context)


class PartitionReader(SourceReader[int]):
    def __init__(self, context: SourceReaderContext) -> None:
        super().__init__(context)
        self._left: list[str] = []

    def add_splits(self, splits: Sequence[object]) -> None:
        for split in map(str, splits):
            self._left.append(split)
            self.context.split_opened(split)
        self.context.available()

    def poll(self, records_max: int) -> SplitBatch | InputStatus:
        if not self._left:
            return InputStatus.NOTHING_AVAILABLE
        return SplitBatch(list(range(31)), split=self._left.pop())

    def snapshot_state(self, checkpoint_id: int) -> None:
        return None


class PartitionEnumerator(SplitEnumerator):
    async def start(self) -> None:
        for subtask in range(2):
            self.context.assign_splits(subtask, [f"partition-{subtask}"])

    def snapshot_state(self) -> bytes:
        return b""

    def restore_state(self, state: bytes) -> None:
        return None


async def test_a_subtask_without_a_partition_does_not_hold_windows_back() -> None:
    """Two partitions, parallelism 3, no idleness: the windows fire while the job runs on."""
    env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(3)
    env.get_config().set_auto_watermark_interval(10)
    results: list[WindowCount] = []
    complete = asyncio.Event()

    def take(result: WindowCount) -> None:
        results.append(result)
        if len(results) == 3 * 5:
            complete.set()

    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(
        lambda second, _: second * 1_000
    )
    seconds = env.from_source(TwoPartitions(), strategy, "two partitions")
    windows = seconds.key_by(lambda second: second % 5).window(
        TumblingEventTimeWindows.of(timedelta(seconds=10))
    )
    windows.count().sink_to(CollectSink(take))
    client = env.execute_async("no idleness")
    async with asyncio.timeout(20):
        await complete.wait()
    await client.cancel()
    assert sorted(results) == sorted(
        WindowCount(key, start, start + 10_000, 4)
        for key in range(5)
        for start in (0, 10_000, 20_000)
    )
