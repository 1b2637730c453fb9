"""Nanoseconds per record of the window operator alone: no channels, no task, no source.

1,000,000 records of 1,000 keys (Zipf, s = 1), time advances 1 ms a record, up to 500 ms of
disorder; batches of 1,000 with a watermark after each. Beside it the loop that needs no framework,
which has neither keyed state nor timers to keep.

    python -m benchmarks.window_operator [--records N] [--repeats N]
"""

from __future__ import annotations

import argparse
import gc
import time
from collections.abc import Callable
from statistics import median

from benchmarks.data import DISORDER_MS, RECORDS, Record, records
from benchmarks.plain import sliding_count, tumbling_count
from operators.elements import MAX_TIMESTAMP, RecordBatch, Watermark
from operators.functions import AggregateFunction
from operators.stream_operator import OperatorFactory
from operators.triggers import EventTimeTrigger, PurgingTrigger
from operators.window_contents import (
    AggregateContents,
    CountContents,
    ListContents,
    ReduceContents,
)
from operators.window_factory import window_operator
from operators.window_functions import process_callable
from operators.windows import SlidingEventTimeWindows, TumblingEventTimeWindows
from tests.operators.fakes import FakeContext

BATCH = 1_000
Step = tuple[RecordBatch, Watermark]


def steps(count: int) -> list[Step]:
    """The batches, each with the watermark that follows it."""
    data = records(count)
    result: list[Step] = []
    highest = -(2**62)
    for start in range(0, count, BATCH):
        chunk = data[start : start + BATCH]
        times = [timestamp for _, timestamp, _ in chunk]
        highest = max(highest, *times)
        batch = RecordBatch(list(chunk), list(times), [key for key, _, _ in chunk])
        result.append((batch, Watermark(highest - DISORDER_MS - 1)))
    result.append((RecordBatch([]), Watermark(MAX_TIMESTAMP)))
    return result


def run(factory: OperatorFactory, data: list[Step]) -> tuple[float, int]:
    """CPU seconds and the number of results."""
    operator = factory()
    operator.setup(FakeContext())  # type: ignore[arg-type]  # has all that is used
    operator.initialize_state()
    operator.open()
    results = 0
    started = time.process_time()
    for batch, watermark in data:
        if batch.values:
            for element in operator.process_batch(batch):
                results += len(element) if type(element) is RecordBatch else 0
        for element in operator.process_watermark(watermark):
            if type(element) is RecordBatch:
                results += len(element)
    return time.process_time() - started, results


def add_one(_: object, count: int) -> int:
    return count + 1


COUNTING: AggregateFunction[object, int, int] = AggregateFunction.of(create=lambda: 0, add=add_one)
TEN_SECONDS = TumblingEventTimeWindows.of(10_000)
SLIDING = SlidingEventTimeWindows.of(10_000, 2_000)

CASES: dict[str, Callable[[], OperatorFactory]] = {
    "tumbling 10 s, count()": lambda: window_operator(TEN_SECONDS, CountContents()),
    "tumbling 10 s, aggregate": lambda: window_operator(TEN_SECONDS, AggregateContents(COUNTING)),
    "tumbling 10 s, reduce": lambda: window_operator(
        TEN_SECONDS, ReduceContents(lambda first, _: first)
    ),
    "tumbling 10 s, process": lambda: window_operator(
        TEN_SECONDS,
        ListContents(),
        process_callable(lambda key, _, values: [(key, len(list(values)))]),
    ),
    "tumbling 10 s, count(), lateness 5 s": lambda: window_operator(
        TEN_SECONDS, CountContents(), allowed_lateness=5_000
    ),
    "tumbling 10 s, aggregate, own trigger": lambda: window_operator(
        TEN_SECONDS, AggregateContents(COUNTING), trigger=PurgingTrigger.of(EventTimeTrigger())
    ),
    "sliding 10 s / 2 s, count()": lambda: window_operator(SLIDING, CountContents()),
    "sliding 10 s / 2 s, aggregate": lambda: window_operator(SLIDING, AggregateContents(COUNTING)),
}


def plain(
    loop: Callable[[list[Record]], list[tuple[str, int, int, int]]], data: list[Record]
) -> tuple[float, int]:
    """The same for a loop without a framework."""
    started = time.process_time()
    results = loop(data)
    return time.process_time() - started, len(results)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--records", type=int, default=RECORDS)
    parser.add_argument("--repeats", type=int, default=5)
    arguments = parser.parse_args()
    data, batches = records(arguments.records), steps(arguments.records)
    # The runtime sees to it that the collector does not go over all that lives.
    gc.freeze()
    gc.disable()
    runs: dict[str, list[tuple[float, int]]] = {}
    # Round by round, so that a busy machine is busy for all of them.
    for _ in range(arguments.repeats):
        for name, loop in (
            ("tumbling", tumbling_count),
            ("sliding", sliding_count),
        ):
            runs.setdefault(f"{name}, plain loop", []).append(plain(loop, data))
        for name, factory in CASES.items():
            runs.setdefault(name, []).append(run(factory(), batches))
    print(f"{'':38} {'ns/record':>9} {'of plain':>8} {'results':>9}")
    medians = {name: median(seconds for seconds, _ in found) for name, found in runs.items()}
    for name, found in runs.items():
        unit = medians[f"{name.split()[0].strip(',')}, plain loop"]
        nanoseconds = medians[name] * 1e9 / arguments.records
        print(f"{name:38} {nanoseconds:9.0f} {medians[name] / unit:8.2f} {found[0][1]:9}")


if __name__ == "__main__":
    main()
