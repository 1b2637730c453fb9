"""`python -m benchmarks.explosion`: does little input that turns into much stay within bounds?

1,000,000 windows due at one watermark (of as many keys; of 1,000 keys with 1,000 windows each), and
one record that a generator turns into 5,000,000: queues stay at their bound, the loop turns, memory
does not grow, and a stop in the middle is obeyed. The memory of the windows themselves is state.
"""

from __future__ import annotations

import argparse
import asyncio
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

from benchmarks.observed import Observed, milliseconds, observe, resident_bytes, row
from connectors.datagen import DataGeneratorSource
from operators.builtin import CollectionSource, CollectSink
from operators.watermarks import WatermarkGenerator, WatermarkOutput, WatermarkStrategy
from runtime import Configuration, StreamExecutionEnvironment, TumblingEventTimeWindows
from runtime.channel import CAPACITY_RECORDS

GAP_BAR = 0.050
GROWTH_BAR_MB = 50
STOP_BAR = 1.0
EXPLODED = 5_000_000
WINDOWS = 1_000_000
SIZE_MS = 10_000
BATCH_RECORDS = 1_024


class _Marked(WatermarkGenerator[tuple[int, int]]):
    """A watermark with the last record, which is marked by a key below 0; none before."""

    def on_event(self, value: tuple[int, int], timestamp: int, output: WatermarkOutput) -> None:
        if value[0] < 0:
            output.emit_watermark(timestamp)

    def on_periodic_emit(self, output: WatermarkOutput) -> None:
        pass


class _Outcome:
    """When the explosion began, what memory there was, and how many results came."""

    def __init__(self, expected: int) -> None:
        self.expected = expected
        self.results = 0
        self.began = 0.0
        self.memory = 0

    def begin(self) -> None:
        """The next record explodes."""
        self.began = time.perf_counter()
        self.memory = resident_bytes()

    def count(self, _: object) -> None:
        """A result came."""
        self.results += 1


def windows_job(keys: int, windows: int, outcome: _Outcome) -> Callable[..., None]:
    """Counts in `keys` x `windows` windows, all due at one watermark behind the last record."""
    total = keys * windows

    def record(number: int) -> tuple[int, int]:
        if number == total:
            outcome.begin()
            return (-1, windows * SIZE_MS * 2)
        return (number % keys, number // keys * SIZE_MS)

    def build(env: StreamExecutionEnvironment) -> None:
        strategy = WatermarkStrategy.for_generator(_Marked).with_timestamp_assigner(
            lambda value, _: value[1]
        )
        stream = env.from_source(DataGeneratorSource(record, total + 1), strategy, "records")
        counts = stream.key_by(0).window(
            TumblingEventTimeWindows.of(timedelta(milliseconds=SIZE_MS))
        )
        _counted(counts.count(), outcome)

    return build


def generator_job(count: int, outcome: _Outcome) -> Callable[..., None]:
    """One record becomes `count`."""

    def explode(value: int) -> Iterator[int]:
        outcome.begin()
        yield from range(value)

    def build(env: StreamExecutionEnvironment) -> None:
        stream = env.from_source(
            CollectionSource([count]), WatermarkStrategy.no_watermarks(), "one record"
        )
        _counted(stream.flat_map(explode), outcome)

    return build


def _counted(stream: Any, outcome: _Outcome) -> None:
    stream.map(lambda value: value).start_new_chain().sink_to(CollectSink(outcome.count))


async def _looked_on(job: Observed, outcome: _Outcome) -> tuple[int, int]:
    """Notes the highest memory and the longest queue until the job ends."""
    memory = queued = 0
    while not job.client._job.future.done():
        queued = max([queued, *(channel.size for channel in job.channels)])
        if outcome.began:
            memory = max(memory, resident_bytes())
        await asyncio.sleep(0.002)
    return memory, queued


def measure(name: str, build: Callable[[_Outcome], Callable[..., None]], expected: int) -> None:
    """Runs one job and prints its figures."""
    print(name)
    outcome = _Outcome(expected)
    figures: list[int] = []

    async def watch(job: Observed) -> None:
        figures.extend(await _looked_on(job, outcome))

    job = observe(build(outcome), "explosion", watch)
    memory, queued = figures
    gaps = job.ticker.between(outcome.began, 1e18)
    own = job.ticker.between(outcome.began, 1e18, cpu=True)
    row("  results", f"{outcome.results:,}", f"{expected:,}", outcome.results == expected)
    met = queued < CAPACITY_RECORDS + BATCH_RECORDS
    row("  most records in a queue", f"{queued:,}", f"{CAPACITY_RECORDS:,} + one batch", met)
    row("  longest gap", milliseconds(gaps[-1]), "at most 50 ms", gaps[-1] <= GAP_BAR)
    row("    in CPU time of the loop", milliseconds(own[-1]))
    growth = (memory - outcome.memory) / 1e6
    row("  growth of memory", f"{growth:.1f} MB", "under 50 MB", growth < GROWTH_BAR_MB)
    row("  longest collection", str(job.pauses.longest_collection(outcome.began)))
    filling = job.ticker.between(0.0, outcome.began, cpu=True)
    row("  before: longest gap in CPU time of the loop", milliseconds(max(filling, default=0.0)))


# -- a stop in the middle, in a process of its own -------------------------------------------------


def stopped_job(folder: str) -> None:
    """Runs until a signal: an endless source whose second record explodes without end."""
    last = [0.0]

    def record(number: int) -> int:
        last[0] = time.monotonic()
        return number

    def explode(value: int) -> Iterator[int]:
        if value != 1:
            yield value
            return
        print("exploding", flush=True)
        number = 0
        while True:
            number += 1
            yield number

    env = StreamExecutionEnvironment.get_execution_environment()
    if folder:
        env.configure(
            Configuration()
            .set_string("execution.checkpointing.dir", folder)
            .set_string("execution.checkpointing.interval", "1h")
            .set_string("riverrun.stop.timeout", "3s")
        )
    source = DataGeneratorSource(record, rate_limiter=1_000)
    stream = env.from_source(source, WatermarkStrategy.no_watermarks(), "endless")
    exploded = stream.map(lambda value: value).start_new_chain().flat_map(explode)
    exploded.start_new_chain().sink_to(CollectSink(lambda _: None))
    try:
        env.execute("stopped")
    finally:
        print(last[0], time.monotonic(), flush=True)


def measure_stop(folder: str) -> None:
    """Stops the job in the middle and prints how long its source and itself went on."""
    print(f"SIGTERM in the middle, checkpoints {'on' if folder else 'off'}")
    command = [sys.executable, "-m", "benchmarks.explosion", "--stopped-job", folder]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "exploding\n"
        time.sleep(1.0)
        sent = time.monotonic()
        process.send_signal(signal.SIGTERM)
        words = process.stdout.read().split()
        process.wait(60)
        left = time.monotonic() - sent
    read_on = max(0.0, float(words[-2]) - sent)
    row("  the source read on for", milliseconds(read_on), "at most 1 s", read_on <= STOP_BAR)
    bar = "after the timeout of 3 s" if folder else "at most 1 s"
    row("  the process left after", milliseconds(left), bar, left <= (4.0 if folder else STOP_BAR))
    row("  exit code", str(process.returncode))


def main() -> int:
    """Prints the figures of all cases."""
    import tempfile

    parser = argparse.ArgumentParser(prog="python -m benchmarks.explosion")
    parser.add_argument("--scale", type=float, default=1.0, help="of the numbers of records")
    parser.add_argument("--stopped-job", metavar="FOLDER", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.stopped_job is not None:
        stopped_job(options.stopped_job)
        return 0
    many, exploded = int(WINDOWS * options.scale), int(EXPLODED * options.scale)
    side = int(many**0.5)
    measure(f"{many:,} keys in one window", lambda r: windows_job(many, 1, r), many + 1)
    measure(
        f"{side:,} keys x {side:,} windows", lambda r: windows_job(side, side, r), side * side + 1
    )
    measure(f"one record into {exploded:,}", lambda r: generator_job(exploded, r), exploded)
    measure_stop("")
    with tempfile.TemporaryDirectory() as folder:
        measure_stop(folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
