"""The contract of the ordered queues, as in Flink's `InternalPriorityQueue`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from typing import Generic, Protocol, TypeVar

from statebackends.errors import StateError
from statebackends.keygroups import KeyGroupRange

NOT_CONTAINED = -(2**31)
"""The `internal_index` of an element that is in no heap (Flink: `Integer.MIN_VALUE`)."""


class HeapElement(Protocol):
    """What a heap holds: something ordered that knows its place (`HeapPriorityQueueElement`)."""

    internal_index: int
    """Index in the array of its heap; set by the heap only."""

    @property
    def priority(self) -> int:
        """What the heap orders by, smallest first."""


E = TypeVar("E", bound=HeapElement)


class InternalPriorityQueue(ABC, Generic[E]):
    """A queue whose head has the smallest priority; equal priorities come in any order."""

    @abstractmethod
    def add(self, element: E) -> bool:
        """Adds an element; true if the head changed."""

    @abstractmethod
    def remove(self, element: E) -> bool:
        """Removes an element; true if the head changed, false as well if it was not there."""

    @abstractmethod
    def peek(self) -> E | None:
        """The head, None if the queue is empty."""

    @abstractmethod
    def poll(self) -> E | None:
        """Takes out the head, None if the queue is empty."""

    @abstractmethod
    def __len__(self) -> int:
        """The number of elements."""

    @abstractmethod
    def __iter__(self) -> Iterator[E]:
        """Each element once, in no promised order; the queue must not change meanwhile."""

    def add_all(self, elements: Iterable[E]) -> None:
        """Adds each of the elements."""
        for element in elements:
            self.add(element)

    def is_empty(self) -> bool:
        """True if there is no element."""
        return len(self) == 0


def checked_key_group(key_group: int, key_group_range: KeyGroupRange) -> int:
    """The key group of an element; raises `StateError` if it is outside the queue's range."""
    if key_group not in key_group_range:
        raise StateError(f"key group {key_group} of an element is outside {key_group_range}")
    return key_group
