"""A bounded in-process channel: one writer, one reader, elements in order."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from operators.elements import ChannelElement, RecordBatch
from runtime.origin import JoinedOrigin

CAPACITY_RECORDS = 4096
"""Default bound of a channel, in records."""

COALESCED_RECORDS_MAX = 1024
"""A queued batch grows up to this, by default, by what is written behind it."""


class OutputRoom:
    """Counts the full channels of one task, so that "has every output room" is one comparison."""

    __slots__ = ("full",)

    def __init__(self) -> None:
        self.full = 0


@dataclass(frozen=True, slots=True)
class ChannelStatistics:
    """What a channel holds now and has carried so far."""

    queued_records: int
    queued_elements: int
    capacity: int
    records_total: int


class Channel:
    """Carries elements from one subtask to one input of another.

    `put` never waits: the writer looks at its `OutputRoom` before it takes new input, so a
    channel overshoots its capacity by at most what one unit of work puts out. Batches form here
    from backlog: a batch is appended to the last queued one while that has room. The channel
    only ever appends to a batch that it built itself, because a batch that was handed to it may
    be shared with other receivers.

    The address (`input_index`, `upstream`, `upstream_subtask`) tells apart channels of several
    inputs and of two edges between the same pair of operators.
    """

    __slots__ = (
        "_offset",
        "_on_data",
        "_on_room",
        "_ready",
        "_tail_owned",
        "blocked",
        "capacity",
        "coalesced_max",
        "index",
        "input_index",
        "low",
        "queue",
        "records_total",
        "room",
        "size",
        "upstream",
        "upstream_subtask",
        "was_full",
    )

    def __init__(
        self,
        *,
        index: int = 0,
        input_index: int = 0,
        upstream: str = "",
        upstream_subtask: int = 0,
        capacity: int = CAPACITY_RECORDS,
        coalesced_max: int = COALESCED_RECORDS_MAX,
    ) -> None:
        if capacity < 1:
            raise ValueError(f"a channel needs a capacity of at least 1 record, got {capacity}")
        self.index = index
        self.input_index = input_index
        self.upstream = upstream
        self.upstream_subtask = upstream_subtask
        self.capacity = capacity
        self.coalesced_max = coalesced_max
        # Waking the writer at every freed record would cost a turn of the loop each.
        self.low = capacity // 2
        self.queue: deque[ChannelElement] = deque()
        self.size = 0
        self.records_total = 0
        self.blocked = False
        self.was_full = False
        self.room = OutputRoom()
        self._offset = 0
        self._tail_owned = False
        self._ready: deque[Channel] = deque()
        self._on_data: Callable[[], None] = _no_reader
        self._on_room: Callable[[], None] = _no_writer

    def connect_reader(self, ready: deque[Channel], on_data: Callable[[], None]) -> None:
        """When it stops being empty the channel joins `ready`, unless blocked, and calls."""
        self._ready = ready
        self._on_data = on_data

    def connect_writer(self, room: OutputRoom, on_room: Callable[[], None]) -> None:
        """`room` counts this channel while it is full; `on_room` is called when that ends."""
        self.room = room
        self._on_room = on_room

    def put(self, element: ChannelElement) -> None:
        """Appends an element; a batch counts against the capacity, control elements do not."""
        queue = self.queue
        if type(element) is RecordBatch:
            count = len(element.values)
            self.records_total += count
            self.size = size = self.size + count
            if size >= self.capacity and not self.was_full:
                self.was_full = True
                self.room.full += 1
            if queue:
                if self._coalesce(element, count):
                    return
                self._tail_owned = False
                queue.append(element)
                return
            self._tail_owned = False
        queue.append(element)
        if len(queue) == 1 and not self.blocked:
            self._ready.append(self)
            self._on_data()

    def _coalesce(self, batch: RecordBatch, count: int) -> bool:
        """Appends `batch` to the last queued one; false if they do not fit together."""
        tail = self.queue[-1]
        if type(tail) is not RecordBatch or len(tail.values) + count > self.coalesced_max:
            return False
        if (tail.timestamps is None) is not (batch.timestamps is None):
            return False
        if not self._tail_owned:
            tail = RecordBatch(
                tail.values.copy(),
                None if tail.timestamps is None else tail.timestamps.copy(),
                None if tail.keys is None else tail.keys.copy(),
                _joined(tail.origin),
            )
            self.queue[-1] = tail
            self._tail_owned = True
        if batch.origin is not None or tail.origin is not None:
            origin = tail.origin
            if not isinstance(origin, JoinedOrigin):
                origin = tail.origin = JoinedOrigin()
                origin.add(0, None)
            origin.add(len(tail.values), batch.origin)
        tail.values += batch.values
        if tail.timestamps is not None and batch.timestamps is not None:
            tail.timestamps += batch.timestamps
        if tail.keys is not None and batch.keys is not None:
            tail.keys += batch.keys
        return True

    def take(self, records_max: int) -> ChannelElement:
        """Removes the first element; of a longer batch its first `records_max` records."""
        head = self.queue[0]
        if type(head) is not RecordBatch:
            self.queue.popleft()
            return head
        offset = self._offset
        left = len(head.values) - offset
        if left <= records_max:
            self.queue.popleft()
            if offset:
                self._offset = 0
                head = _slice(head, offset, offset + left)
        else:
            self._offset = offset + records_max
            head = _slice(head, offset, offset + records_max)
            left = records_max
        self.size = size = self.size - left
        if self.was_full and size <= self.low:
            self.was_full = False
            self.room.full -= 1
            self._on_room()
        return head

    def clear(self) -> None:
        """Drops what is queued (the attempt is over)."""
        self.queue.clear()
        self.size = 0

    def statistics(self) -> ChannelStatistics:
        """A snapshot of the channel's counts."""
        return ChannelStatistics(self.size, len(self.queue), self.capacity, self.records_total)


def _joined(origin: Callable[[int], str] | None) -> JoinedOrigin | None:
    if origin is None:
        return None
    joined = JoinedOrigin()
    joined.add(0, origin)
    return joined


def _slice(batch: RecordBatch, start: int, stop: int) -> RecordBatch:
    origin = batch.origin
    return RecordBatch(
        batch.values[start:stop],
        None if batch.timestamps is None else batch.timestamps[start:stop],
        None if batch.keys is None else batch.keys[start:stop],
        None if origin is None else lambda index: origin(index + start),
    )


def _no_reader() -> None:
    raise RuntimeError("channel has no reader yet")


def _no_writer() -> None:
    raise RuntimeError("channel has no writer yet")
