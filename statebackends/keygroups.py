"""Key groups: the fixed number of shares in which the keys of an operator are dealt out.

A key belongs to one key group for ever, by a hash of its canonical bytes (`keys.py`). A subtask
owns a range of key groups, so changing the parallelism moves whole groups. The formulas are
those of Flink's `KeyGroupRangeAssignment` and `MathUtils.murmurHash`.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass

import mmh3

DEFAULT_MAX_PARALLELISM = 4096
"""Key groups of an operator that does not say otherwise."""

MAX_PARALLELISM_LIMIT = 32768
"""Most key groups an operator may have."""

_INT_MIN = -(2**31)

# Called for each key that is new to a memo, hence without look-ups.
_hash = mmh3.hash
_four_bytes = struct.Struct("<i").pack


@dataclass(frozen=True, slots=True)
class KeyGroupRange:
    """The key groups from `start` to `end`, both included (Flink: `KeyGroupRange`).

    A range whose end lies before its start has no groups and equals `EMPTY_KEY_GROUP_RANGE`.

    Raises:
        ValueError: `start` is negative.
    """

    start: int
    end: int

    def __post_init__(self) -> None:
        if self.end < self.start:
            object.__setattr__(self, "start", 0)
            object.__setattr__(self, "end", -1)
        elif self.start < 0:
            raise ValueError(f"a key group range starts at 0 or later, not at {self.start}")

    def __len__(self) -> int:
        return self.end - self.start + 1

    def __iter__(self) -> Iterator[int]:
        return iter(range(self.start, self.end + 1))

    def __contains__(self, key_group: object) -> bool:
        return isinstance(key_group, int) and self.start <= key_group <= self.end

    def intersection(self, other: KeyGroupRange) -> KeyGroupRange:
        """The key groups that lie in both ranges."""
        return KeyGroupRange(max(self.start, other.start), min(self.end, other.end))


EMPTY_KEY_GROUP_RANGE = KeyGroupRange(0, -1)
"""The range without key groups."""


def murmur_hash(n: int) -> int:
    """Scrambles a signed 32-bit integer into one from 0 to 2**31 - 1."""
    scrambled = mmh3.hash((n & 0xFFFFFFFF).to_bytes(4, "little"))
    return 0 if scrambled == _INT_MIN else abs(scrambled)


def key_group_of(key_bytes: bytes, max_parallelism: int) -> int:
    """The key group of a key, given by its canonical bytes."""
    scrambled = _hash(_four_bytes(_hash(key_bytes)))
    return 0 if scrambled == _INT_MIN else abs(scrambled) % max_parallelism


def subtask_of(key_group: int, max_parallelism: int, parallelism: int) -> int:
    """The index of the subtask that owns `key_group`."""
    return key_group * parallelism // max_parallelism


def key_group_range(max_parallelism: int, parallelism: int, index: int) -> KeyGroupRange:
    """The key groups of subtask `index` of `parallelism`.

    Raises:
        ValueError: a number is out of its bounds, or there are more subtasks than key groups.
    """
    check_max_parallelism(max_parallelism)
    if not 1 <= parallelism <= max_parallelism:
        raise ValueError(
            f"parallelism {parallelism} is not within 1 and the max parallelism {max_parallelism}"
        )
    if not 0 <= index < parallelism:
        raise ValueError(f"subtask index {index} is not within 0 and {parallelism - 1}")
    start = (index * max_parallelism + parallelism - 1) // parallelism
    end = ((index + 1) * max_parallelism - 1) // parallelism
    return KeyGroupRange(start, end)


def check_max_parallelism(max_parallelism: int) -> None:
    """Raises `ValueError` for a number of key groups that no operator can have."""
    if not 1 <= max_parallelism <= MAX_PARALLELISM_LIMIT:
        raise ValueError(
            f"max parallelism {max_parallelism} is not within 1 and {MAX_PARALLELISM_LIMIT}"
        )


def java_string_hash(text: str) -> int:
    """`String.hashCode` of Java; serves the ownership of Kafka's splits only."""
    units = text.encode("utf-16-be", "surrogatepass")
    result = 0
    for i in range(0, len(units), 2):
        result = (31 * result + (units[i] << 8) + units[i + 1]) & 0xFFFFFFFF
    return result - 2**32 if result >= 2**31 else result
