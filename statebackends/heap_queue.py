"""A binary heap whose elements know their place, without and with set semantics.

Flink: `HeapPriorityQueue` and `HeapPriorityQueueSet`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Generic

from statebackends.errors import StateError
from statebackends.keygroups import KeyGroupRange
from statebackends.priority_queue import (
    NOT_CONTAINED,
    E,
    InternalPriorityQueue,
    checked_key_group,
)

_HEAD = 1
_SMALL = 64


class HeapPriorityQueue(InternalPriorityQueue[E], Generic[E]):
    """An array heap from index 1 on.

    Removal and adjustment of an element take O(log n): its index is known, nothing is searched.
    The array grows by its length and 2 below 64, else by half. An element may be in one heap at
    a time, and in that once.
    """

    def __init__(self, capacity: int = 128) -> None:
        self._array: list[E | None] = [None] * (capacity + _HEAD)
        self._size = 0

    def add(self, element: E) -> bool:
        """Adds an element; true if it is the head now."""
        self._size += 1
        if self._size >= len(self._array):
            self._grow()
        self._move_up(self._size, element)
        return element.internal_index == _HEAD

    def remove(self, element: E) -> bool:
        """Removes an element; true if it was the head, false as well if it was not there."""
        index = element.internal_index
        if not self._holds(element):
            return False
        self._remove_at(index)
        return index == _HEAD

    def peek(self) -> E | None:
        """The head, None if the queue is empty."""
        return self._array[_HEAD] if self._size else None

    def poll(self) -> E | None:
        """Takes out the head, None if the queue is empty."""
        return self._remove_at(_HEAD) if self._size else None

    def adjust_modified_element(self, element: E) -> None:
        """Moves an element whose priority has changed to its place; `StateError` if not here."""
        if not self._holds(element):
            raise StateError("the element is not in this queue")
        self._move(element.internal_index, element)

    def clear(self) -> None:
        """Removes all elements."""
        for element in self:
            element.internal_index = NOT_CONTAINED
        self._array[_HEAD : self._size + _HEAD] = [None] * self._size
        self._size = 0

    def __len__(self) -> int:
        return self._size

    def __iter__(self) -> Iterator[E]:
        for index in range(_HEAD, self._size + _HEAD):
            yield self._at(index)

    def _holds(self, element: E) -> bool:
        index = element.internal_index
        return _HEAD <= index <= self._size and self._array[index] is element

    def _at(self, index: int) -> E:
        element = self._array[index]
        assert element is not None, f"no element at {index}"
        return element

    def _grow(self) -> None:
        length = len(self._array)
        self._array += [None] * (length + 2 if length < _SMALL else length >> 1)

    def _remove_at(self, index: int) -> E:
        removed = self._at(index)
        last = self._at(self._size)
        self._array[self._size] = None
        self._size -= 1
        if last is not removed:
            self._move(index, last)
        removed.internal_index = NOT_CONTAINED
        return removed

    def _move(self, index: int, element: E) -> None:
        self._move_down(index, element)
        if element.internal_index == index:
            self._move_up(index, element)

    def _move_up(self, index: int, element: E) -> None:
        """Puts `element` at `index` or as far above it as its priority lets it rise."""
        array = self._array
        priority = element.priority
        while index > _HEAD:
            parent = array[index >> 1]
            assert parent is not None, f"no parent of {index}"
            if parent.priority <= priority:
                break
            array[index] = parent
            parent.internal_index = index
            index >>= 1
        array[index] = element
        element.internal_index = index

    def _move_down(self, index: int, element: E) -> None:
        """Puts `element` at `index` or as far below it as its priority lets it sink."""
        array = self._array
        size = self._size
        priority = element.priority
        while (child_index := index << 1) <= size:
            child = self._at(child_index)
            if child_index < size:
                other = self._at(child_index + 1)
                if other.priority < child.priority:
                    child = other
                    child_index += 1
            if child.priority >= priority:
                break
            array[index] = child
            child.internal_index = index
            index = child_index
        array[index] = element
        element.internal_index = index


class HeapPriorityQueueSet(HeapPriorityQueue[E]):
    """A heap that holds equal elements once, with one table per key group.

    The tables find what is equal and give the elements of a key group for a snapshot. Elements
    must be hashable.
    """

    def __init__(
        self,
        key_group_of: Callable[[E], int],
        key_group_range: KeyGroupRange,
        capacity: int = 128,
    ) -> None:
        super().__init__(capacity)
        self._key_group_of = key_group_of
        self._key_group_range = key_group_range
        self._by_key_group: dict[int, dict[E, E]] = {}

    def add(self, element: E) -> bool:
        """Adds an element unless an equal one is there; true if the head changed."""
        key_group = self._checked_key_group(element)
        table = self._by_key_group.setdefault(key_group, {})
        if table.setdefault(element, element) is not element or self._holds(element):
            return False
        return super().add(element)

    def remove(self, element: E) -> bool:
        """Removes the element equal to this one; true if the head changed."""
        key_group = self._checked_key_group(element)
        present = self._forget(key_group, element)
        return present is not None and super().remove(present)

    def poll(self) -> E | None:
        """Takes out the head, None if the queue is empty."""
        head = super().poll()
        if head is not None:
            self._forget(self._checked_key_group(head), head)
        return head

    def clear(self) -> None:
        """Removes all elements."""
        super().clear()
        self._by_key_group.clear()

    def key_groups(self) -> list[int]:
        """The key groups that have elements, ascending."""
        return sorted(self._by_key_group)

    def subset_for_key_group(self, key_group: int) -> list[E]:
        """The elements of one key group (Flink: `getSubsetForKeyGroup`)."""
        return list(self._by_key_group.get(key_group, ()))

    def _forget(self, key_group: int, element: E) -> E | None:
        table = self._by_key_group.get(key_group)
        if table is None:
            return None
        present = table.pop(element, None)
        if not table:
            del self._by_key_group[key_group]
        return present

    def _checked_key_group(self, element: E) -> int:
        return checked_key_group(self._key_group_of(element), self._key_group_range)
