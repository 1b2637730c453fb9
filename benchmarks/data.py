"""The deterministic input of the workloads."""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import accumulate

RECORDS = 1_000_000
KEYS = 1_000
DISORDER_MS = 500

Record = tuple[str, int, int]
"""(key, event time in ms, value)"""


def records(count: int = RECORDS) -> list[Record]:
    """The records of W1 to W4: time advances 1 ms a record, disorder is up to 500 ms."""
    rng = random.Random(42)
    names = [f"key-{index:04d}" for index in range(KEYS)]
    weights = list(accumulate(1 / (rank + 1) for rank in range(KEYS)))
    keys = rng.choices(names, cum_weights=weights, k=count)
    return [
        (key, index + DISORDER_MS - int(rng.random() * (DISORDER_MS + 1)), index & 1023)
        for index, key in enumerate(keys)
    ]


def repeated(base: list[Record], times: int, shift_ms: int = 1_000_000) -> Iterator[Record]:
    """The records several times over, event time shifted by `shift_ms` each time; lazy."""
    for round_number in range(times):
        shift = round_number * shift_ms
        for key, timestamp, value in base:
            yield key, timestamp + shift, value


def lines(count: int = 200_000) -> list[str]:
    """The lines of W5: 8 words each out of 5,000."""
    rng = random.Random(7)
    words = [f"word{index}" for index in range(5_000)]
    weights = list(accumulate(1 / (rank + 1) for rank in range(5_000)))
    return [" ".join(rng.choices(words, cum_weights=weights, k=8)) for _ in range(count)]
