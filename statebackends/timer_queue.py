"""What a timer service asks of the queue that keeps its timers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterable, Iterator
from typing import NamedTuple


class Timer(NamedTuple):
    """One registered timer: when it is due, for which key, in which namespace."""

    timestamp: int
    key: Hashable
    namespace: Hashable


class TimerGroup(NamedTuple):
    """Timers that share time and namespace, taken out of a queue in one step."""

    timestamp: int
    namespace: Hashable
    keys: list[Hashable]


class TimerQueue(ABC):
    """A set of timers ordered by timestamp only.

    Equal (timestamp, key, namespace) count once. Among timers of equal timestamp any order is
    right (as in Flink's `InternalPriorityQueue`). Keys are representatives (see
    `KeyedStateBackend.representative`); a queue never calls user code.
    """

    @abstractmethod
    def add(self, timestamp: int, key: Hashable, namespace: Hashable) -> bool:
        """Adds a timer; true if the earliest timestamp of the queue changed."""

    @abstractmethod
    def add_all(self, timestamp: int, keys: Iterable[Hashable], namespace: Hashable) -> bool:
        """Adds a timer for each key; true if the earliest timestamp changed."""

    @abstractmethod
    def remove(self, timestamp: int, key: Hashable, namespace: Hashable) -> bool:
        """Removes a timer if it is there; true if the earliest timestamp changed."""

    @abstractmethod
    def earliest(self) -> int | None:
        """The smallest timestamp in the queue, or None if it is empty."""

    @abstractmethod
    def poll(self, limit: int) -> Timer | None:
        """Takes out one timer of the smallest timestamp, if that is at most `limit`."""

    @abstractmethod
    def poll_group(self, limit: int, keys_max: int) -> TimerGroup | None:
        """Takes out up to `keys_max` timers that share the smallest timestamp and a namespace.

        None if the smallest timestamp is beyond `limit` or the queue is empty.
        """

    @abstractmethod
    def __len__(self) -> int:
        """The number of timers."""

    @abstractmethod
    def __iter__(self) -> Iterator[Timer]:
        """All timers, in no promised order; the queue must not change meanwhile."""
