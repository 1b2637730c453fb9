"""A queue made of one queue per key group, so that the timers of a group are at hand.

Flink: `KeyGroupPartitionedPriorityQueue`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Generic

from statebackends.heap_queue import HeapPriorityQueue
from statebackends.keygroups import KeyGroupRange
from statebackends.priority_queue import (
    NOT_CONTAINED,
    E,
    InternalPriorityQueue,
    checked_key_group,
)


class KeyGroupPartitionedPriorityQueue(InternalPriorityQueue[E], Generic[E]):
    """A heap of the queues of the key groups, ordered by their heads; empty ones are dropped.

    `new_queue` makes the queue of a key group when its first element comes.
    """

    def __init__(
        self,
        key_group_of: Callable[[E], int],
        key_group_range: KeyGroupRange,
        new_queue: Callable[[int], InternalPriorityQueue[E]],
    ) -> None:
        self._key_group_of = key_group_of
        self._key_group_range = key_group_range
        self._new_queue = new_queue
        self._parts: dict[int, _Part[E]] = {}
        self._by_head: HeapPriorityQueue[_Part[E]] = HeapPriorityQueue(capacity=8)
        self._size = 0

    def add(self, element: E) -> bool:
        """Adds an element; true if the head of the whole queue changed."""
        key_group = self._checked_key_group(element)
        part = self._parts.get(key_group)
        if part is None:
            part = _Part(key_group, self._new_queue(key_group))
            self._parts[key_group] = part
        before = len(part.queue)
        head_changed = part.queue.add(element)
        self._size += len(part.queue) - before
        if not head_changed:
            return False
        part.take_head()
        if part.internal_index == NOT_CONTAINED:
            self._by_head.add(part)
        else:
            self._by_head.adjust_modified_element(part)
        return self._by_head.peek() is part

    def remove(self, element: E) -> bool:
        """Removes an element; true if the head of the whole queue changed."""
        part = self._parts.get(self._checked_key_group(element))
        if part is None:
            return False
        was_first = self._by_head.peek() is part
        before = len(part.queue)
        head_changed = part.queue.remove(element)
        self._size += len(part.queue) - before
        if head_changed:
            self._settle(part)
        return head_changed and was_first

    def peek(self) -> E | None:
        """The head, None if the queue is empty."""
        part = self._by_head.peek()
        return None if part is None else part.queue.peek()

    def poll(self) -> E | None:
        """Takes out the head, None if the queue is empty."""
        part = self._by_head.peek()
        if part is None:
            return None
        head = part.queue.poll()
        self._size -= 1
        self._settle(part)
        return head

    def __len__(self) -> int:
        return self._size

    def __iter__(self) -> Iterator[E]:
        for part in self._by_head:
            yield from part.queue

    def key_groups(self) -> list[int]:
        """The key groups that have elements, ascending."""
        return sorted(self._parts)

    def subset_for_key_group(self, key_group: int) -> Iterable[E]:
        """The elements of one key group (Flink: `getSubsetForKeyGroup`)."""
        part = self._parts.get(key_group)
        return () if part is None else part.queue

    def _settle(self, part: _Part[E]) -> None:
        """Moves a part to its place after its head went, or drops it."""
        if part.take_head():
            self._by_head.adjust_modified_element(part)
        else:
            self._by_head.remove(part)
            del self._parts[part.key_group]

    def _checked_key_group(self, element: E) -> int:
        return checked_key_group(self._key_group_of(element), self._key_group_range)


class _Part(Generic[E]):
    """The queue of one key group as an element of the heap of heads."""

    __slots__ = ("internal_index", "key_group", "priority", "queue")

    def __init__(self, key_group: int, queue: InternalPriorityQueue[E]) -> None:
        self.key_group = key_group
        self.queue = queue
        self.internal_index = NOT_CONTAINED
        self.priority = 0

    def take_head(self) -> bool:
        """Takes over the priority of the queue's head; false if it is empty."""
        head = self.queue.peek()
        if head is None:
            return False
        self.priority = head.priority
        return True
