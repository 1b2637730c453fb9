"""What a good Python programmer writes without a framework: the unit of every ratio."""

from __future__ import annotations

from collections.abc import Iterable

from benchmarks.data import DISORDER_MS, Record

SIZE_MS = 10_000
SLIDE_MS = 2_000


def tumbling_count(records: Iterable[Record]) -> list[tuple[str, int, int, int]]:
    """W1: a count per key and 10 s window, fired when the watermark passes its end."""
    windows: dict[int, dict[str, int]] = {}
    results: list[tuple[str, int, int, int]] = []
    highest = -1
    due = SIZE_MS
    for key, timestamp, _ in records:
        start = timestamp - timestamp % SIZE_MS
        window = windows.get(start)
        if window is None:
            window = windows[start] = {}
        window[key] = window.get(key, 0) + 1
        if timestamp > highest:
            highest = timestamp
            if highest - DISORDER_MS - 1 >= due - 1:
                for key_, count in windows.pop(due - SIZE_MS, {}).items():
                    results.append((key_, due - SIZE_MS, due, count))
                due += SIZE_MS
    for start in sorted(windows):
        for key_, count in windows[start].items():
            results.append((key_, start, start + SIZE_MS, count))
    return results


def running_count(records: Iterable[Record]) -> list[tuple[str, int]]:
    """W2: the count of its key so far, for each record."""
    counts: dict[str, int] = {}
    results: list[tuple[str, int]] = []
    for key, _, _ in records:
        counts[key] = count = counts.get(key, 0) + 1
        results.append((key, count))
    return results


def _double(record: Record) -> int:
    return record[2] * 2


def _keeps(value: int) -> bool:
    return value % 4 != 0


def _next(value: int) -> int:
    return value + 1


def stateless_calls(records: Iterable[Record]) -> list[int]:
    """W3 with a function for each step, as in the job."""
    results: list[int] = []
    for record in records:
        doubled = _double(record)
        if _keeps(doubled):
            results.append(_next(doubled))
    return results


def stateless(records: Iterable[Record]) -> list[int]:
    """W3: value * 2, those that 4 does not divide, plus 1."""
    results: list[int] = []
    for _, _, value in records:
        doubled = value * 2
        if doubled % 4 != 0:
            results.append(doubled + 1)
    return results


def sliding_count(records: Iterable[Record]) -> list[tuple[str, int, int, int]]:
    """W4: a count per key and window of 10 s each 2 s; five windows are updated a record."""
    windows: dict[int, dict[str, int]] = {}
    results: list[tuple[str, int, int, int]] = []
    highest = -1
    due = SLIDE_MS
    for key, timestamp, _ in records:
        start = timestamp - timestamp % SLIDE_MS
        for first in range(start, start - SIZE_MS, -SLIDE_MS):
            window = windows.get(first)
            if window is None:
                window = windows[first] = {}
            window[key] = window.get(key, 0) + 1
        if timestamp > highest:
            highest = timestamp
            while highest - DISORDER_MS - 1 >= due - 1:
                for key_, count in windows.pop(due - SIZE_MS, {}).items():
                    results.append((key_, due - SIZE_MS, due, count))
                due += SLIDE_MS
    for start in sorted(windows):
        for key_, count in windows[start].items():
            results.append((key_, start, start + SIZE_MS, count))
    return results


def word_count(lines: Iterable[str]) -> list[tuple[str, int]]:
    """W5: the count of each word so far, for each word."""
    counts: dict[str, int] = {}
    results: list[tuple[str, int]] = []
    for line in lines:
        for word in line.split():
            counts[word] = count = counts.get(word, 0) + 1
            results.append((word, count))
    return results
