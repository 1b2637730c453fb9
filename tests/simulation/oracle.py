"""What the counting job must put out, computed in one pass without any of the job's code."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Sequence

from tests.simulation.outside import Outside

Record = tuple[str, int]
"""A key and an event time in ms."""

Row = tuple[Hashable, ...]

WINDOW_MS = 100
SLIDE_MS = 50
TICKS = 3


def windows_of(time: int, slide_ms: int) -> Iterable[int]:
    """The starts of the windows that hold a time."""
    start = time // slide_ms * slide_ms
    while start > time - WINDOW_MS:
        yield start
        start -= slide_ms


def expected_counts(inputs: Sequence[Record]) -> Counter[Row]:
    """A numbered row per record, and a total per key."""
    rows: Counter[Row] = Counter()
    so_far: Counter[str] = Counter()
    for key, _ in inputs:
        so_far[key] += 1
        rows["count", key, so_far[key]] += 1
    rows.update(("total", key, count) for key, count in so_far.items())
    return rows


def expected_windows(inputs: Sequence[Record]) -> Counter[Row]:
    """A row per key and window: counts of tumbling windows, sums of times of sliding ones."""
    tumbling: Counter[tuple[str, int]] = Counter()
    sliding: dict[tuple[str, int], int] = defaultdict(int)
    for key, time in inputs:
        for start in windows_of(time, WINDOW_MS):
            tumbling[key, start] += 1
        for start in windows_of(time, SLIDE_MS):
            sliding[key, start] += time
    rows: Counter[Row] = Counter()
    rows.update(("tumbling", *window, count) for window, count in tumbling.items())
    rows.update(("sliding", key, total) for (key, _), total in sliding.items())
    return rows


def violations(inputs: Sequence[Record], outside: Outside) -> list[str]:
    """What is wrong with the output; nothing if each record counts exactly once."""
    windows = expected_windows(inputs)
    expected = expected_counts(inputs) + windows
    committed = Counter(outside.visible())
    ticks = Counter({row: n for row, n in committed.items() if row[0] == "tick"})
    committed -= ticks
    found = [f"missing: {row}" for row in expected - committed]
    found += [f"too many: {row}" for row in committed - expected]
    found += [f"too many: {row}" for row, n in ticks.items() if n > 1]
    found += [
        f"skipped before: {row}"
        for row in ticks
        if isinstance(row[2], int) and row[2] > 1 and ("tick", row[1], row[2] - 1) not in ticks
    ]
    # At least once: each window is there, and what is there twice is twice the same.
    written = set(outside.written)
    found += [f"never written: {row}" for row in windows if row not in written]
    found += [f"wrongly written: {row}" for row in written if row not in windows]
    return found
