"""`python -m benchmarks.latency`: from the time a record is due to its arrival at the sink (L1).

10,000 records a second through source, keyed exchange at parallelism 2, keyed count and sink,
with a checkpoint each 5 s. A record is due at its place in the source's schedule, not when the
source got to it: a stall delays all that became due meanwhile, and all of them count.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
import time
from array import array
from collections.abc import Sequence
from typing import Any

from benchmarks.jobs import RunningCount
from benchmarks.observed import Observed, milliseconds, observe, quantile, row
from connectors.datagen import DataGeneratorSource, RateLimiter
from operators.sink import Sink, SinkWriter, SinkWriterContext
from operators.source import SourceReader, SourceReaderContext
from operators.watermarks import WatermarkStrategy
from runtime import Configuration, StreamExecutionEnvironment

BAR = 0.005
PAUSE_BAR = 0.020
PARALLELISM = 2
KEYS = 1_000


class _Schedule:
    """When the readers began, by processing time in ms; and the clock that they go by."""

    def __init__(self, rate: int) -> None:
        self.rate = rate
        self.readers: dict[int, Any] = {}
        self.offset = time.time() - time.perf_counter()

    def due(self, number: int) -> float:
        """The moment, by `perf_counter`, at which record `number` is due."""
        began_ms = self.readers[number % PARALLELISM]._started_ms
        return float(began_ms / 1000 - self.offset + number / self.rate)


class _ScheduledSource(DataGeneratorSource[Any]):
    def __init__(self, schedule: _Schedule) -> None:
        super().__init__(
            lambda number: (number * 7919 % KEYS, number),
            rate_limiter=RateLimiter.per_second(schedule.rate),
        )
        self._schedule = schedule

    def create_reader(self, context: SourceReaderContext) -> SourceReader[Any]:
        reader = super().create_reader(context)
        self._schedule.readers[context.subtask_index] = reader
        return reader


class _NumberedCount(RunningCount):
    """Counts the records of a key; puts out the number of the record beside the count."""

    def process_element(self, value: Any, ctx: Any) -> Any:
        for _, count in super().process_element(value, ctx):
            yield value[1], count


class _ArrivalSink(Sink[Any]):
    """Notes the numbers of the records and when each batch came."""

    def __init__(self) -> None:
        self.numbers = array("q")
        self.moments = array("d")

    def create_writer(self, context: SinkWriterContext) -> SinkWriter[Any]:
        return _ArrivalWriter(self)


class _ArrivalWriter(SinkWriter[Any]):
    def __init__(self, sink: _ArrivalSink) -> None:
        self._sink = sink

    def write(self, values: Sequence[Any], timestamps: Sequence[int | None] | None) -> None:
        now = time.perf_counter()
        for number, _ in values:
            self._sink.numbers.append(number)
            self._sink.moments.append(now)


def measure(seconds: float, warm_up: float, rate: int) -> tuple[list[float], Observed]:
    """The latencies in seconds, ordered, and what was seen of the job."""
    schedule = _Schedule(rate)
    sink = _ArrivalSink()
    span: list[float] = []

    def build(env: StreamExecutionEnvironment) -> None:
        env.configure(
            Configuration()
            .set_string("execution.checkpointing.dir", folder)
            .set_string("execution.checkpointing.interval", "5s")
        )
        env.set_parallelism(PARALLELISM)
        source = _ScheduledSource(schedule)
        stream = env.from_source(source, WatermarkStrategy.no_watermarks(), "numbers").uid(
            "numbers"
        )
        counts = stream.key_by(lambda value: value[0]).process(_NumberedCount()).uid("count")
        counts.sink_to(sink).uid("arrivals")

    async def watch(job: Observed) -> None:
        await job.until(lambda: len(sink.moments) > 0)
        begin = time.perf_counter() + warm_up
        span.extend([begin, begin + seconds])
        await asyncio.sleep(warm_up + seconds)
        row("checkpoints completed", str(job.checkpoints.completed))

    with tempfile.TemporaryDirectory() as folder:
        observed = observe(build, "latency", watch)
    begin, end = span
    latencies = []
    for number, moment in zip(sink.numbers, sink.moments, strict=True):
        due = schedule.due(number)
        if begin <= due <= end:
            latencies.append(moment - due)
    latencies.sort()
    return latencies, observed


def main() -> int:
    """Prints the quantiles and the longest collection."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.latency", description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--warm-up", type=float, default=10.0)
    parser.add_argument("--rate", type=int, default=10_000, help="records a second")
    options = parser.parse_args()
    latencies, job = measure(options.seconds, options.warm_up, options.rate)
    begin = job.ticker.times[-1] - options.seconds
    row("records measured", f"{len(latencies):,}")
    row("latency, p50", milliseconds(quantile(latencies, 0.5)))
    p99 = quantile(latencies, 0.99)
    row("latency, p99", milliseconds(p99), "under 5 ms", p99 < BAR)
    row("latency, p99.9", milliseconds(quantile(latencies, 0.999)))
    row("latency, max", milliseconds(latencies[-1]))
    pause = job.pauses.longest_collection(begin)
    row("longest garbage collection", str(pause), "at most 20 ms", pause.seconds <= PAUSE_BAR)
    row("longest gap of a 1 ms ticker", milliseconds(max(job.ticker.between(begin, 1e18))))
    return 0


if __name__ == "__main__":
    sys.exit(main())
