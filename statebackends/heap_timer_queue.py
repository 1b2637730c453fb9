"""Timers in one of the ordered heaps: the contract of timer services over them."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator

from statebackends.heap_queue import HeapPriorityQueueSet
from statebackends.keygroup_queue import KeyGroupPartitionedPriorityQueue
from statebackends.keygroups import KeyGroupRange
from statebackends.priority_queue import NOT_CONTAINED, InternalPriorityQueue
from statebackends.timer_queue import Timer, TimerGroup, TimerQueue


class HeapTimer:
    """A timer as an element of a heap (Flink: `TimerHeapInternalTimer`).

    Equal by time, key and namespace, ordered by time.
    """

    __slots__ = ("internal_index", "key", "namespace", "priority")

    def __init__(self, timestamp: int, key: Hashable, namespace: Hashable) -> None:
        self.priority = timestamp
        self.key = key
        self.namespace = namespace
        self.internal_index = NOT_CONTAINED

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, HeapTimer)
            and self.priority == other.priority
            and self.key == other.key
            and self.namespace == other.namespace
        )

    def __hash__(self) -> int:
        return hash((self.priority, self.key, self.namespace))

    def __repr__(self) -> str:
        return f"HeapTimer({self.priority}, {self.key!r}, {self.namespace!r})"


class HeapTimerQueue(TimerQueue):
    """A timer queue over an ordered queue with set semantics.

    `heap` makes the one of a single indexed heap, `partitioned` the one of a heap per key group.
    """

    def __init__(self, queue: InternalPriorityQueue[HeapTimer]) -> None:
        self._queue = queue

    @classmethod
    def heap(
        cls, key_group_of: Callable[[Hashable], int], key_group_range: KeyGroupRange
    ) -> HeapTimerQueue:
        """Timers in one `HeapPriorityQueueSet`."""
        return cls(_timer_set(key_group_of, key_group_range))

    @classmethod
    def partitioned(
        cls, key_group_of: Callable[[Hashable], int], key_group_range: KeyGroupRange
    ) -> HeapTimerQueue:
        """Timers in a `KeyGroupPartitionedPriorityQueue`."""
        return cls(
            KeyGroupPartitionedPriorityQueue(
                lambda timer: key_group_of(timer.key),
                key_group_range,
                lambda key_group: _timer_set(key_group_of, KeyGroupRange(key_group, key_group)),
            )
        )

    def add(self, timestamp: int, key: Hashable, namespace: Hashable) -> bool:
        """Adds a timer; true if the earliest timestamp of the queue changed."""
        before = self.earliest()
        self._queue.add(HeapTimer(timestamp, key, namespace))
        return before is None or timestamp < before

    def add_all(self, timestamp: int, keys: Iterable[Hashable], namespace: Hashable) -> bool:
        """Adds a timer for each key; true if the earliest timestamp changed."""
        before = self.earliest()
        for key in keys:
            self._queue.add(HeapTimer(timestamp, key, namespace))
        return before != self.earliest()

    def remove(self, timestamp: int, key: Hashable, namespace: Hashable) -> bool:
        """Removes a timer if it is there; true if the earliest timestamp changed."""
        before = self.earliest()
        self._queue.remove(HeapTimer(timestamp, key, namespace))
        return before != self.earliest()

    def earliest(self) -> int | None:
        """The smallest timestamp in the queue, or None if it is empty."""
        head = self._queue.peek()
        return None if head is None else head.priority

    def poll(self, limit: int) -> Timer | None:
        """Takes out one timer of the smallest timestamp, if that is at most `limit`."""
        head = self._queue.peek()
        if head is None or head.priority > limit:
            return None
        self._queue.poll()
        return Timer(head.priority, head.key, head.namespace)

    def poll_group(self, limit: int, keys_max: int) -> TimerGroup | None:
        """Takes out timers that share the smallest timestamp and a namespace, as they come.

        A heap does not keep namespaces together, so that a group may be smaller than it could.
        """
        first = self.poll(limit)
        if first is None:
            return None
        keys = [first.key]
        while (
            len(keys) < keys_max
            and (head := self._queue.peek()) is not None
            and head.priority == first.timestamp
            and head.namespace == first.namespace
        ):
            self._queue.poll()
            keys.append(head.key)
        return TimerGroup(first.timestamp, first.namespace, keys)

    def __len__(self) -> int:
        return len(self._queue)

    def __iter__(self) -> Iterator[Timer]:
        for timer in self._queue:
            yield Timer(timer.priority, timer.key, timer.namespace)


def _timer_set(
    key_group_of: Callable[[Hashable], int], key_group_range: KeyGroupRange
) -> HeapPriorityQueueSet[HeapTimer]:
    return HeapPriorityQueueSet(lambda timer: key_group_of(timer.key), key_group_range, capacity=8)
