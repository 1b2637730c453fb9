"""Which job is measured against which plain loop, and how its answer is checked."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from benchmarks import jobs, plain
from benchmarks.data import lines, records


@dataclass(frozen=True, slots=True)
class Workload:
    """A job, its plain loop, their common input and what both must come to."""

    name: str
    title: str
    build: jobs.Build
    loop: Callable[[Iterable[Any]], list[Any]]
    data: Callable[[], list[Any]]
    answer: Callable[[list[Any]], object]
    expected: object


def _counts(results: list[Any]) -> object:
    return len(results), sum(result[-1] for result in results)


def _numbers(results: list[Any]) -> object:
    return len(results), sum(
        result if isinstance(result, int) else result[-1] for result in results
    )


W1 = (90_965, 1_000_000)
W2 = (1_000_000, 14_648_571_370)
W4 = (456_179, 5_000_000)

WORKLOADS = {
    workload.name: workload
    for workload in (
        Workload(
            "w1",
            "tumbling count, built in",
            jobs.tumbling_count,
            plain.tumbling_count,
            records,
            _counts,
            W1,
        ),
        Workload(
            "w1-aggregate",
            "tumbling count, aggregate of lambdas",
            jobs.tumbling_aggregate,
            plain.tumbling_count,
            records,
            _numbers,
            W1,
        ),
        Workload(
            "w2",
            "running count, reduce lambda",
            jobs.running_reduce,
            plain.running_count,
            records,
            _counts,
            W2,
        ),
        Workload(
            "w2-process",
            "running count, process function",
            jobs.running_process,
            plain.running_count,
            records,
            _counts,
            W2,
        ),
        Workload(
            "w3",
            "map, filter, map",
            jobs.stateless,
            plain.stateless,
            records,
            _numbers,
            (500_000, 512_370_976),
        ),
        Workload(
            "w3-calls",
            "map, filter, map; the loop calls a function for each",
            jobs.stateless,
            plain.stateless_calls,
            records,
            _numbers,
            (500_000, 512_370_976),
        ),
        Workload(
            "w4",
            "sliding count, aggregate without merge",
            jobs.sliding_aggregate,
            plain.sliding_count,
            records,
            _numbers,
            W4,
        ),
        Workload(
            "w5",
            "lines, flat_map, running count",
            jobs.word_count,
            plain.word_count,
            lines,
            len,
            1_600_000,
        ),
    )
}
