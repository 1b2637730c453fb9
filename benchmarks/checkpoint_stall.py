"""`python -m benchmarks.checkpoint_stall`: what a checkpoint of a million keys costs the loop (C1).

Records flow at full speed over 1,000,000 keys, each updating a list or an integer in heap state.
The longest gap of a 1 ms ticker is taken without checkpoints and with them; the memory of the job
and its snapshot children in runs of its own, since reading it disturbs the ticker.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
import tempfile
import threading
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from benchmarks.observed import Observed, milliseconds, observe, row
from connectors.datagen import DataGeneratorSource
from operators.builtin import CollectSink
from operators.watermarks import WatermarkStrategy
from runtime import (
    Configuration,
    KeyedProcessFunction,
    RuntimeContext,
    StreamExecutionEnvironment,
    ValueStateDescriptor,
)

KEYS = 1_000_000
STALL_BAR = 0.060
PAUSE_BAR = 0.020
MEMORY_BAR = 2.3
INTERVAL_MS = 4_000
SAMPLE_SECONDS = 0.05
WITHOUT_SECONDS = 5.0


class _CountedInteger(KeyedProcessFunction[int, int, int]):
    """Counts the records of a key; puts out nothing."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self.count = runtime_context.get_state(ValueStateDescriptor("count", int))

    def process_element(self, value: int, ctx: Any) -> Iterable[int] | None:
        self.count.update((self.count.value() or 0) + 1)
        return None


class _CountedList(KeyedProcessFunction[int, int, int]):
    """Replaces a list of three by record; puts out nothing."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self.figures = runtime_context.get_state(ValueStateDescriptor[list[int]]("figures"))

    def process_element(self, value: int, ctx: Any) -> Iterable[int] | None:
        count, total, _ = self.figures.value() or [0, 0, 0]
        self.figures.update([count + 1, total + value, value])
        return None


def _job(
    env: StreamExecutionEnvironment, keys: int, function: Any, parallelism: int, folder: str | None
) -> None:
    env.set_parallelism(parallelism)
    if folder is not None:
        settings = Configuration().set_string("execution.checkpointing.dir", folder)
        settings.set_string("execution.checkpointing.interval", f"{INTERVAL_MS}ms")
        env.configure(settings)
    source = DataGeneratorSource(lambda number: number * 7_919 % keys)
    stream = env.from_source(source, WatermarkStrategy.no_watermarks(), "keys").uid("keys")
    updated = stream.key_by(lambda key: key).process(function()).uid("state")
    updated.sink_to(CollectSink()).uid("nothing")


class _MemorySampler(threading.Thread):
    """Adds up the proportional memory of this process and its children, again and again."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.before = self.most = 0
        self._ended = threading.Event()

    def run(self) -> None:
        while not self._ended.wait(SAMPLE_SECONDS):
            self.most = max(self.most, self.total())

    @staticmethod
    def total() -> int:
        """Bytes now."""
        children = Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
        return sum(map(_proportional_bytes, ["self", *children]))

    def end(self) -> None:
        """Stops sampling."""
        self._ended.set()
        self.join()


def _proportional_bytes(pid: str) -> int:
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except (FileNotFoundError, ProcessLookupError):
        return 0  # It has just ended.
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("Pss:")), 0)


def _filled(job: Observed, keys: int) -> bool:
    # The first pass over the keys makes the entries.
    return job.client.statistics().records_in >= keys * 1.05


async def _looked_on(job: Observed, keys: int, checkpoints: int, seconds: float) -> float:
    """Waits for the fill, then for new checkpoints or some time; returns when the fill ended."""
    await job.until(lambda: _filled(job, keys))
    if checkpoints:
        # One that began during the fill is not one of a million keys.
        wanted = job.checkpoints.completed + 1 + checkpoints
        began = time.perf_counter()
        await job.until(lambda: job.checkpoints.completed >= wanted, seconds=60.0 * checkpoints)
        return began
    began = time.perf_counter()
    await asyncio.sleep(seconds)
    return began


def measure_stall(function: Any, keys: int, parallelism: int, checkpoints: int) -> None:
    """Prints the gaps of the ticker, the forks and the collections."""
    began, job, _ = _stalled(function, keys, parallelism, 0, None)
    row("  longest gap without checkpoints", milliseconds(job.ticker.between(began, 1e18)[-1]))
    own = job.ticker.between(began, 1e18, cpu=True)[-1]
    row("    in CPU time of the loop", milliseconds(own))
    with tempfile.TemporaryDirectory() as folder:
        began, job, last = _stalled(function, keys, parallelism, checkpoints, folder)
    gap = job.ticker.between(began, 1e18)[-1]
    own = job.ticker.between(began, 1e18, cpu=True)[-1]
    row("  longest gap with checkpoints", milliseconds(gap), "at most 60 ms", gap <= STALL_BAR)
    row("    in CPU time of the loop", milliseconds(own))
    row("  longest fork", str(job.pauses.longest_fork(began)))
    row("  the last checkpoint: duration, size", last)
    pause = job.pauses.longest_collection(began)
    row("  longest collection", str(pause), "at most 20 ms", pause.seconds <= PAUSE_BAR)
    row("    the fill included", str(job.pauses.longest_collection()))


def _stalled(
    function: Any, keys: int, parallelism: int, checkpoints: int, folder: str | None
) -> tuple[float, Observed, str]:
    """When the fill had ended, what was seen, and the last checkpoint's duration and size."""
    began = 0.0
    last = ""

    async def watch(job: Observed) -> None:
        nonlocal began, last
        began = await _looked_on(job, keys, checkpoints, WITHOUT_SECONDS)
        done = job.checkpoints
        size = (done.latest_size_bytes or 0) / 1e6
        last = f"{(done.latest_duration_ms or 0) / 1000:.2f} s, {size:.1f} MB"

    job = observe(lambda env: _job(env, keys, function, parallelism, folder), "stall", watch)
    return began, job, last


def measure_memory(function: Any, keys: int, parallelism: int) -> None:
    """Prints the sum of the memory of job and children over that of the job before."""
    sampler = _MemorySampler()
    with tempfile.TemporaryDirectory() as folder:

        async def watch(job: Observed) -> None:
            await job.until(lambda: _filled(job, keys))
            await job.until(lambda: not job.run._slots.alive)
            sampler.before = sampler.total()
            sampler.start()
            wanted = job.checkpoints.completed + 2
            await job.until(lambda: job.checkpoints.completed >= wanted)
            sampler.end()

        observe(lambda env: _job(env, keys, function, parallelism, folder), "memory", watch)
    ratio = sampler.most / sampler.before
    row("  memory before", f"{sampler.before / 1e6:.0f} MB")
    row("  job and children over it", f"{ratio:.2f}", "at most 2.3", ratio <= MEMORY_BAR)


def main() -> int:
    """Prints the figures for both kinds of values at parallelism 1 and 2."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.checkpoint_stall")
    parser.add_argument("--keys", type=int, default=KEYS)
    parser.add_argument("--checkpoints", type=int, default=4, help="measured in each run")
    parser.add_argument("--parallelism", type=int, nargs="*", default=[1, 2])
    parser.add_argument("--only", choices=["ints", "lists"])
    options = parser.parse_args()
    for name, function in (("ints", _CountedInteger), ("lists", _CountedList)):
        for parallelism in options.parallelism:
            if options.only in (None, name):
                print(f"{options.keys:,} keys, {name}, parallelism {parallelism}")
                measure_stall(function, options.keys, parallelism, options.checkpoints)
                measure_memory(function, options.keys, parallelism)
    return 0


if __name__ == "__main__":
    sys.exit(main())
