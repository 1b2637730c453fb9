"""`python -m benchmarks.long_run`: what checkpoints cost a long run of W1 (tumbling count).

30,000,000 records (the million 30 times over, event time shifted each time, made lazily) with
checkpoints of which at least five complete during the run, and without. Compared are CPU times,
of the process and of it with its snapshot children.
"""

from __future__ import annotations

import argparse
import gc
import os
import statistics
import sys
import tempfile
import time
from dataclasses import dataclass
from datetime import timedelta

from benchmarks.data import DISORDER_MS, Record, records, repeated
from benchmarks.observed import row
from operators.builtin import CollectSink
from runtime import (
    Configuration,
    StreamExecutionEnvironment,
    TumblingEventTimeWindows,
    WatermarkStrategy,
    WindowCount,
)

TIMES = 30
CHECKPOINTS_MIN = 5
SLOWER_BAR = 1.10


@dataclass(frozen=True, slots=True)
class Run:
    """CPU seconds of one run, and how many checkpoints it completed."""

    own: float
    children: float
    wall: float
    checkpoints: int


def run(base: list[Record], times: int, interval_ms: int | None) -> Run:
    """Counts the records in windows; checks that none is lost."""
    env = StreamExecutionEnvironment.get_execution_environment()
    with tempfile.TemporaryDirectory() as folder:
        if interval_ms is not None:
            env.configure(
                Configuration()
                .set_string("execution.checkpointing.dir", folder)
                .set_string("execution.checkpointing.interval", f"{interval_ms}ms")
            )
        counted = 0

        def add(result: WindowCount) -> None:
            nonlocal counted
            counted += result.count

        strategy = WatermarkStrategy.for_bounded_out_of_orderness(
            timedelta(milliseconds=DISORDER_MS)
        ).with_timestamp_assigner(lambda record, _: record[1])
        stream = env.from_collection(repeated(base, times)).uid("records")
        timed = stream.assign_timestamps_and_watermarks(strategy).uid("time")
        windows = timed.key_by(0).window(TumblingEventTimeWindows.of(timedelta(seconds=10)))
        windows.count().uid("windows").sink_to(CollectSink(add)).uid("sum")
        gc.collect()
        before, wall = os.times(), time.perf_counter()
        result = env.execute("long run")
        after = os.times()
        wall = time.perf_counter() - wall
    assert counted == times * len(base), f"{counted} of {times * len(base)} records were counted"
    own = after.user - before.user + after.system - before.system
    children = after.children_user - before.children_user
    children += after.children_system - before.children_system
    return Run(own, children, wall, result.statistics.last_checkpoint_id or 0)


def main() -> int:
    """Prints the medians and how they compare."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.long_run")
    parser.add_argument("--times", type=int, default=TIMES, help="millions of records")
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    base = records()
    plain: list[Run] = []
    saved: list[Run] = []
    for _ in range(options.repeats):
        plain.append(run(base, options.times, None))
        # Eight fit into the run, so that five complete also if the machine is slower meanwhile.
        interval_ms = max(10, int(plain[-1].wall * 1_000 / 8))
        saved.append(run(base, options.times, interval_ms))
    without = statistics.median(one.own for one in plain)
    own = statistics.median(one.own for one in saved)
    whole = statistics.median(one.own + one.children for one in saved)
    fewest = min(one.checkpoints for one in saved)
    row("records", f"{options.times * len(base):,}")
    row("CPU without checkpoints", f"{without:.2f} s")
    row("CPU with checkpoints", f"{own:.2f} s")
    row("checkpoints completed", str(fewest), "at least 5", fewest >= CHECKPOINTS_MIN)
    row(
        "CPU of the process, ratio",
        f"{own / without:.3f}",
        "at most 1.10",
        own <= SLOWER_BAR * without,
    )
    row(
        "CPU with children, ratio",
        f"{whole / without:.3f}",
        "at most 1.10",
        whole <= SLOWER_BAR * without,
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
