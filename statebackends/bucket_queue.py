"""The default timer queue: one bucket per timestamp, a heap of the distinct timestamps.

Timers of window ends share few timestamps, so that registering one is a dict lookup or two and a
whole group is taken out at once. A timestamp with a single timer has no dicts of its own, only a
pair, so that timers at exact times stay cheap as well. The heap deletes lazily: a timestamp
whose bucket has gone stays in it until it comes to the top or until such ones are the majority.
The measurements behind the choice are in `docs/decisions/001-timer-queues.md`.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from heapq import heapify, heappop, heappush
from itertools import islice

from statebackends.timer_queue import Timer, TimerGroup, TimerQueue

_Bucket = dict[Hashable, dict[Hashable, None]]
"""Namespace -> keys; never empty, nor is any of its tables."""

_Lone = tuple[Hashable, Hashable]
"""Namespace and key of the only timer of a timestamp."""

_IN_ORDER_MAX = 256
"""Up to this size the oldest entry of a table is taken first; each time from the front of a
larger one would step over all that was taken before, hence the newest first there."""

_STALE_MIN = 64
"""Timestamps without bucket that the heap may hold besides as many as it holds with one."""


class BucketTimerQueue(TimerQueue):
    """Timers by timestamp, then namespace, then key; removal is exact.

    Nothing it does takes longer than the number of timers that go in or come out, the clearing
    out of the heap aside, which is paid for by as many removals.
    """

    def __init__(self) -> None:
        self._buckets: dict[int, _Bucket | _Lone] = {}
        self._timestamps: list[int] = []
        self._size = 0

    def add(self, timestamp: int, key: Hashable, namespace: Hashable) -> bool:
        """Adds a timer; true if the earliest timestamp of the queue changed."""
        bucket = self._buckets.get(timestamp)
        if bucket is None:
            earliest = self.earliest()
            self._buckets[timestamp] = (namespace, key)
            heappush(self._timestamps, timestamp)
            self._size += 1
            return earliest is None or timestamp < earliest
        if type(bucket) is tuple:
            if bucket == (namespace, key):
                return False
            bucket = self._widen(timestamp, bucket)
        keys = bucket.get(namespace)  # type: ignore[union-attr]  # a tuple was widened above
        if keys is None:
            bucket[namespace] = {key: None}  # type: ignore[index]  # as above
            self._size += 1
        elif key not in keys:
            keys[key] = None
            self._size += 1
        return False

    def add_all(self, timestamp: int, keys: Iterable[Hashable], namespace: Hashable) -> bool:
        """Adds a timer for each key; true if the earliest timestamp changed."""
        added = dict.fromkeys(keys)
        if not added:
            return False
        bucket = self._buckets.get(timestamp)
        if bucket is None:
            earliest = self.earliest()
            self._buckets[timestamp] = {namespace: added}
            heappush(self._timestamps, timestamp)
            self._size += len(added)
            return earliest is None or timestamp < earliest
        if isinstance(bucket, tuple):
            bucket = self._widen(timestamp, bucket)
        present = bucket.get(namespace)
        if present is None:
            bucket[namespace] = added
            self._size += len(added)
        else:
            before = len(present)
            present.update(added)
            self._size += len(present) - before
        return False

    def remove(self, timestamp: int, key: Hashable, namespace: Hashable) -> bool:
        """Removes a timer if it is there; true if the earliest timestamp changed."""
        bucket = self._buckets.get(timestamp)
        if bucket is None:
            return False
        if isinstance(bucket, tuple):
            if bucket != (namespace, key):
                return False
        else:
            keys = bucket.get(namespace)
            if keys is None or key not in keys:
                return False
            if len(keys) > 1:
                del keys[key]
                self._size -= 1
                return False
            if len(bucket) > 1:
                del bucket[namespace]
                self._size -= 1
                return False
        earliest = self.earliest()
        del self._buckets[timestamp]
        self._size -= 1
        if timestamp == earliest:
            heappop(self._timestamps)
            return True
        if len(self._timestamps) > 2 * len(self._buckets) + _STALE_MIN:
            self._timestamps = list(self._buckets)
            heapify(self._timestamps)
        return False

    def earliest(self) -> int | None:
        """The smallest timestamp in the queue, or None if it is empty."""
        timestamps = self._timestamps
        buckets = self._buckets
        while timestamps:
            timestamp = timestamps[0]
            if timestamp in buckets:
                return timestamp
            heappop(timestamps)
        return None

    def poll(self, limit: int) -> Timer | None:
        """Takes out one timer of the smallest timestamp, if that is at most `limit`."""
        timestamp = self.earliest()
        if timestamp is None or timestamp > limit:
            return None
        bucket = self._buckets[timestamp]
        self._size -= 1
        if isinstance(bucket, tuple):
            namespace, key = bucket
            del self._buckets[timestamp]
            heappop(self._timestamps)
            return Timer(timestamp, key, namespace)
        namespace, keys = _first_table(bucket)
        if len(keys) == 1:
            key = next(iter(keys))
            self._drop_table(timestamp, bucket, namespace)
        elif len(keys) <= _IN_ORDER_MAX:
            key = next(iter(keys))
            del keys[key]
        else:
            key = keys.popitem()[0]
        return Timer(timestamp, key, namespace)

    def poll_group(self, limit: int, keys_max: int) -> TimerGroup | None:
        """Takes out up to `keys_max` timers that share the smallest timestamp and a namespace.

        None if the smallest timestamp is beyond `limit` or the queue is empty.
        """
        timestamp = self.earliest()
        if timestamp is None or timestamp > limit:
            return None
        bucket = self._buckets[timestamp]
        if isinstance(bucket, tuple):
            self._drop_first(timestamp)
            self._size -= 1
            return TimerGroup(timestamp, bucket[0], [bucket[1]])
        namespace, keys = _first_table(bucket)
        if len(keys) <= keys_max:
            group = list(keys)
            self._drop_table(timestamp, bucket, namespace)
        else:
            # Each key is let go of here, so that no call has to free a large table's worth.
            group = [key for key, _ in islice(iter(keys.popitem, None), keys_max)]
        self._size -= len(group)
        return TimerGroup(timestamp, namespace, group)

    def __len__(self) -> int:
        return self._size

    def __iter__(self) -> Iterator[Timer]:
        for timestamp, bucket in self._buckets.items():
            if isinstance(bucket, tuple):
                yield Timer(timestamp, bucket[1], bucket[0])
            else:
                for namespace, keys in bucket.items():
                    for key in keys:
                        yield Timer(timestamp, key, namespace)

    def _widen(self, timestamp: int, lone: _Lone) -> _Bucket:
        """Makes room for a second timer of a timestamp."""
        namespace, key = lone
        bucket: _Bucket = {namespace: {key: None}}
        self._buckets[timestamp] = bucket
        return bucket

    def _drop_table(self, timestamp: int, bucket: _Bucket, namespace: Hashable) -> None:
        del bucket[namespace]
        if not bucket:
            self._drop_first(timestamp)

    def _drop_first(self, timestamp: int) -> None:
        """Removes the bucket of the earliest timestamp, which `earliest` left on top."""
        del self._buckets[timestamp]
        heappop(self._timestamps)


def _first_table(bucket: _Bucket) -> tuple[Hashable, dict[Hashable, None]]:
    if len(bucket) <= _IN_ORDER_MAX:
        return next(iter(bucket.items()))
    namespace, keys = bucket.popitem()
    bucket[namespace] = keys
    return namespace, keys
