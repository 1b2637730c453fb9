"""`python -m benchmarks.turns`: is a loop under full load still quick for timers and threads?

Sixteen tasks that could always go on share one process. A ticker in the same loop says how late
timers are, an executor call of nothing how long threads wait for the interpreter. The second job
has turns of the loop of well under a millisecond: those starved threads most.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import time
from collections.abc import Iterable
from typing import Any

from benchmarks.jobs import RunningCount
from benchmarks.observed import Observed, milliseconds, observe, quantile, row
from connectors.datagen import DataGeneratorSource
from operators.builtin import CollectSink
from operators.watermarks import WatermarkStrategy
from runtime import Configuration, StreamExecutionEnvironment

LATENESS_BAR = 0.010
EXECUTOR_BAR = 0.020
CALL_PAUSE_SECONDS = 0.005
STARTING_SECONDS = 1.0


def sixteen_tasks(env: StreamExecutionEnvironment) -> None:
    """Source, map, keyed count and sink, four subtasks each, none chained."""
    env.set_parallelism(4)
    env.disable_operator_chaining()
    _count(env)


def short_turns(env: StreamExecutionEnvironment) -> None:
    """The same over channels of one record, where each task waits after each record."""
    env.configure(Configuration().set_integer("riverrun.channel.capacity", 1))
    sixteen_tasks(env)


def _count(env: StreamExecutionEnvironment) -> None:
    source: DataGeneratorSource[Any] = DataGeneratorSource(lambda n: (n * 7919 % 1000, n))
    (
        env.from_source(source, WatermarkStrategy.no_watermarks(), "numbers")
        .map(lambda value: value)
        .key_by(lambda value: value[0])
        .process(RunningCount())
        .sink_to(CollectSink(_nothing))
    )


def _nothing(_: object) -> None:
    pass


async def _executor_calls(seconds: float) -> list[float]:
    loop = asyncio.get_running_loop()
    calls = []
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        began = time.perf_counter()
        await loop.run_in_executor(None, _nothing, None)
        calls.append(time.perf_counter() - began)
        await asyncio.sleep(CALL_PAUSE_SECONDS)
    return sorted(calls)


def measure(build: Any, seconds: float) -> list[list[float]]:
    """Gaps of the ticker alone, gaps beside executor calls, lengths of these, CPU of the first."""
    result: list[list[float]] = []

    async def watch(job: Observed) -> None:
        await asyncio.sleep(STARTING_SECONDS)
        begin = time.perf_counter()
        await asyncio.sleep(seconds)
        middle = time.perf_counter()
        calls = await _executor_calls(seconds)
        end = time.perf_counter()
        ticker = job.ticker
        result.extend([ticker.between(begin, middle), ticker.between(middle, end), calls])
        result.append(ticker.between(begin, middle, cpu=True))

    observe(build, "turns", watch)
    return result


def _report(name: str, figures: Iterable[list[float]]) -> None:
    alone, beside, calls, cpu = figures
    print(name)
    for title, gaps in (("ticker late, p99", alone), ("the same beside executor calls", beside)):
        late = max(0.0, quantile(gaps, 0.99) - 0.001)
        row(f"  {title}", milliseconds(late), "at most 10 ms", late <= LATENESS_BAR)
        row("    median / max", f"{quantile(gaps, 0.5) * 1e3 - 1:.2f} / {gaps[-1] * 1e3 - 1:.2f}")
    own = max(0.0, quantile(cpu, 0.99) - 0.001)
    row("  ticker late by the job's own work, p99 of CPU time", milliseconds(own))
    slow = quantile(calls, 0.99)
    row(
        f"  executor call, p99 of {len(calls)}",
        milliseconds(slow),
        "under 20 ms",
        slow < EXECUTOR_BAR,
    )
    row("    median / max", f"{quantile(calls, 0.5) * 1e3:.2f} / {calls[-1] * 1e3:.2f}")


def main() -> int:
    """Prints both jobs' figures."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.turns", description=__doc__)
    parser.add_argument("--seconds", type=float, default=10.0, help="of each measurement")
    seconds = parser.parse_args().seconds
    _report("16 runnable tasks at full load", measure(sixteen_tasks, seconds))
    _report("the same with short turns", measure(short_turns, seconds))
    return 0


if __name__ == "__main__":
    sys.exit(main())
