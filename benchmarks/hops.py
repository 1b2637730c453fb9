"""`python -m benchmarks.hops`: records a second between two tasks over a channel of one record.

Beside it, in the same run, what two bare coroutines reach over an `asyncio.Queue` of one: most of
a hop is the event loop's own work, and machines differ in that by a factor.

The source hands out one record a poll and its task waits until the other one has taken it; the
sink drops it. So a hop is all that the runtime does for a single record: poll, chain, channel,
wake-up, gate, chain, and the wake-up back.
"""

from __future__ import annotations

import asyncio
import statistics
import sys
import time
from collections.abc import Sequence

import uvloop

from operators.sink import Sink, SinkWriter, SinkWriterContext
from operators.source import (
    Boundedness,
    InputStatus,
    Source,
    SourceReader,
    SourceReaderContext,
    SplitBatch,
)
from runtime import Configuration, StreamExecutionEnvironment, WatermarkStrategy

RECORDS = 200_000
REPEATS = 5


class SingleRecords(Source[int]):
    """So many records, one a poll."""

    boundedness = Boundedness.BOUNDED

    def create_reader(self, context: SourceReaderContext) -> SourceReader[int]:
        """The only reader."""
        return _Reader(context)


class _Reader(SourceReader[int]):
    left = RECORDS

    def poll(self, records_max: int) -> SplitBatch | InputStatus:
        if not self.left:
            return InputStatus.END_OF_INPUT
        self.left -= 1
        return SplitBatch([self.left])

    def snapshot_state(self, checkpoint_id: int) -> None:
        raise NotImplementedError("the benchmark takes no checkpoints")


class Counted(Sink[int], SinkWriter[int]):
    """Counts what it is given."""

    taken = 0

    def create_writer(self, context: SinkWriterContext) -> SinkWriter[int]:
        """The sink is its own writer."""
        return self

    def write(self, values: Sequence[int], timestamps: Sequence[int | None] | None) -> None:
        """Drops the records."""
        self.taken += len(values)


def measure() -> float:
    """Hops per CPU second."""
    env = StreamExecutionEnvironment.get_execution_environment()
    one = Configuration()
    one.set_integer("riverrun.channel.capacity", 1)
    one.set_integer("riverrun.batch.records", 1)
    env.configure(one)
    sink = Counted()
    stream = env.from_source(SingleRecords(), WatermarkStrategy.no_watermarks(), "single records")
    stream.rebalance().sink_to(sink)
    began = time.process_time()
    env.execute("hops")
    if sink.taken != RECORDS:
        raise SystemExit(f"{sink.taken} records of {RECORDS} came through")
    return RECORDS / (time.process_time() - began)


def measure_queue() -> float:
    """The same for a queue between two coroutines."""

    async def hand_over() -> None:
        queue: asyncio.Queue[int] = asyncio.Queue(1)

        async def put() -> None:
            for number in range(RECORDS):
                await queue.put(number)

        putting = asyncio.ensure_future(put())
        for _ in range(RECORDS):
            await queue.get()
        await putting

    began = time.process_time()
    uvloop.run(hand_over())
    return RECORDS / (time.process_time() - began)


def main() -> int:
    """Prints the medians."""
    figures = [(measure(), measure_queue()) for _ in range(REPEATS)]
    ours, bare = (statistics.median(column) for column in zip(*figures, strict=True))
    print(f"hops a second, capacity one record: {ours:,.0f} (bar 120,000)")
    print(f"  two coroutines and an asyncio.Queue: {bare:,.0f}, ratio {ours / bare:.2f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
