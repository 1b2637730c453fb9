"""The alternative to buckets that was measured: `heapq` of single timers, lazily deleted."""

from collections.abc import Hashable, Iterable, Iterator
from heapq import heapify, heappop, heappush

from statebackends.timer_queue import Timer, TimerGroup, TimerQueue

_Identity = tuple[int, Hashable, Hashable]
_STALE_MIN = 64


class LazyHeapTimerQueue(TimerQueue):
    """One heap entry per timer; removal only forgets it, the heap is cleared out at half."""

    def __init__(self) -> None:
        self._heap: list[tuple[int, int, Hashable, Hashable]] = []
        self._live: dict[_Identity, int] = {}
        self._next = 0

    def add(self, timestamp: int, key: Hashable, namespace: Hashable) -> bool:
        identity = (timestamp, key, namespace)
        live = self._live
        if identity in live:
            return False
        before = self.earliest()
        number = self._next
        self._next = number + 1
        live[identity] = number
        heappush(self._heap, (timestamp, number, key, namespace))
        return before is None or timestamp < before

    def add_all(self, timestamp: int, keys: Iterable[Hashable], namespace: Hashable) -> bool:
        before = self.earliest()
        for key in keys:
            self.add(timestamp, key, namespace)
        return self.earliest() != before

    def remove(self, timestamp: int, key: Hashable, namespace: Hashable) -> bool:
        before = self.earliest()
        if self._live.pop((timestamp, key, namespace), None) is None:
            return False
        if len(self._heap) > 2 * len(self._live) + _STALE_MIN:
            self._heap = [(t, number, k, n) for (t, k, n), number in self._live.items()]
            heapify(self._heap)
        return self.earliest() != before

    def earliest(self) -> int | None:
        heap = self._heap
        while heap:
            timestamp, number, key, namespace = heap[0]
            if self._live.get((timestamp, key, namespace)) == number:
                return timestamp
            heappop(heap)
        return None

    def poll(self, limit: int) -> Timer | None:
        timestamp = self.earliest()
        if timestamp is None or timestamp > limit:
            return None
        _, _, key, namespace = heappop(self._heap)
        del self._live[timestamp, key, namespace]
        return Timer(timestamp, key, namespace)

    def poll_group(self, limit: int, keys_max: int) -> TimerGroup | None:
        first = self.poll(limit)
        if first is None:
            return None
        keys = [first.key]
        while len(keys) < keys_max and self.earliest() == first.timestamp:
            if self._heap[0][3] != first.namespace:
                break
            _, _, key, namespace = heappop(self._heap)
            del self._live[first.timestamp, key, namespace]
            keys.append(key)
        return TimerGroup(first.timestamp, first.namespace, keys)

    def __len__(self) -> int:
        return len(self._live)

    def __iter__(self) -> Iterator[Timer]:
        return (Timer(*identity) for identity in self._live)
