"""The bounded, coalescing channel."""

from collections import deque

import pytest
from hypothesis import given
from hypothesis import strategies as st

from operators.elements import CheckpointBarrier, RecordBatch, Watermark
from runtime.channel import COALESCED_RECORDS_MAX, Channel, OutputRoom


class _Ends:
    """Counts what a channel tells its reader and its writer."""

    def __init__(self, capacity: int = 4096) -> None:
        self.data = 0
        self.room_freed = 0
        self.room = OutputRoom()
        self.channel = Channel(capacity=capacity)
        self.channel.connect_reader(deque(), self._on_data)
        self.channel.connect_writer(self.room, self._on_room)

    def _on_data(self) -> None:
        self.data += 1

    def _on_room(self) -> None:
        self.room_freed += 1


def _values(channel: Channel, records_max: int = 10**9) -> list[object]:
    values: list[object] = []
    while channel.queue:
        element = channel.take(records_max)
        values += element.values if isinstance(element, RecordBatch) else [element]
    return values


def test_small_batches_from_backlog_become_one() -> None:
    """What is written behind a queued batch is appended to it."""
    ends = _Ends()
    for value in range(5):
        ends.channel.put(RecordBatch([value], [value]))

    assert len(ends.channel.queue) == 1
    taken = ends.channel.take(100)
    assert isinstance(taken, RecordBatch)
    assert (taken.values, taken.timestamps) == ([0, 1, 2, 3, 4], [0, 1, 2, 3, 4])


def test_a_batch_never_spans_a_control_element() -> None:
    """A watermark between two batches keeps them apart."""
    ends = _Ends()
    ends.channel.put(RecordBatch([1]))
    ends.channel.put(Watermark(5))
    ends.channel.put(RecordBatch([2]))

    assert _values(ends.channel) == [1, Watermark(5), 2]


def test_a_shared_batch_is_not_appended_to() -> None:
    """Two channels that were given one batch coalesce on copies of their own."""
    first, second = _Ends(), _Ends()
    shared = RecordBatch([1], [1], ["k"])
    for ends in (first, second):
        ends.channel.put(shared)
    first.channel.put(RecordBatch([2], [2], ["k"]))

    assert shared.values == [1]
    assert _values(second.channel) == [1]
    assert _values(first.channel) == [1, 2]


def test_batches_with_and_without_timestamps_stay_apart() -> None:
    """A column that only one batch has cannot be appended to the other."""
    ends = _Ends()
    ends.channel.put(RecordBatch([1], [1]))
    ends.channel.put(RecordBatch([2], None))

    first = ends.channel.take(10)
    assert isinstance(first, RecordBatch)
    assert (first.values, first.timestamps) == ([1], [1])


def test_the_reader_is_told_once_per_backlog() -> None:
    """Only the step from empty to not empty wakes the reader."""
    ends = _Ends()
    ends.channel.put(RecordBatch([1]))
    ends.channel.put(RecordBatch([2]))
    assert ends.data == 1

    ends.channel.take(10)
    ends.channel.put(RecordBatch([3]))
    assert ends.data == 2


def test_room_is_counted_from_full_down_to_half() -> None:
    """A full channel counts as full until half of its capacity is free."""
    ends = _Ends(capacity=4)
    ends.channel.put(RecordBatch([1, 2, 3, 4]))
    assert ends.room.full == 1

    ends.channel.take(1)
    assert (ends.room.full, ends.room_freed) == (1, 0)
    ends.channel.take(1)
    assert (ends.room.full, ends.room_freed) == (0, 1)


def test_control_elements_take_no_room() -> None:
    """A barrier goes into a full channel without changing its count."""
    ends = _Ends(capacity=1)
    ends.channel.put(RecordBatch([1]))
    ends.channel.put(CheckpointBarrier(1, 0))

    assert ends.channel.statistics().queued_records == 1
    assert ends.channel.statistics().queued_elements == 2


def test_a_capacity_below_one_is_refused() -> None:
    """A channel that could never take a record is an error at build time."""
    with pytest.raises(ValueError, match="capacity"):
        Channel(capacity=0)


def test_the_origin_of_a_record_survives_a_split() -> None:
    """The second part of a batch still names where its records came from."""
    ends = _Ends()
    ends.channel.put(RecordBatch(["a", "b", "c"], origin=lambda index: f"place {index}"))
    ends.channel.take(2)

    rest = ends.channel.take(2)
    assert isinstance(rest, RecordBatch)
    assert rest.origin is not None
    assert rest.origin(0) == "place 2"


def test_the_origin_of_a_record_survives_joining() -> None:
    """Records that queued together still name their own places, or none."""
    ends = _Ends()
    ends.channel.put(RecordBatch(["a", "b"], origin=lambda index: f"left {index}"))
    ends.channel.put(RecordBatch(["c"]))
    ends.channel.put(RecordBatch(["d", "e"], origin=lambda index: f"right {index}"))

    batch = ends.channel.take(10)
    assert isinstance(batch, RecordBatch)
    assert batch.origin is not None
    assert [batch.origin(index) for index in range(5)] == [
        "left 0",
        "left 1",
        "",
        "right 0",
        "right 1",
    ]


@given(
    st.lists(st.one_of(st.integers(1, 1500), st.just(0)), max_size=12),
    st.lists(st.integers(1, 1300), min_size=1, max_size=30),
)
def test_order_and_count_survive_any_sizes(writes: list[int], reads: list[int]) -> None:
    """However batches are cut and joined, the records come out in order, each once."""
    ends = _Ends()
    expected: list[object] = []
    got: list[object] = []
    number = 0
    read = iter(reads)
    for size in writes:
        if size == 0:
            ends.channel.put(Watermark(number))
            expected.append(Watermark(number))
        else:
            values: list[object] = list(range(number, number + size))
            number += size
            expected += values
            ends.channel.put(RecordBatch(values, list(range(size)), list(range(size))))
        limit = next(read, None)
        if limit is not None and ends.channel.queue:
            element = ends.channel.take(limit)
            if isinstance(element, RecordBatch):
                assert len(element.values) <= limit
                assert element.keys is not None
                assert len(element.keys) == len(element.values)
            got += element.values if isinstance(element, RecordBatch) else [element]
    longest = max([len(e) for e in ends.channel.queue if isinstance(e, RecordBatch)], default=0)
    assert longest <= max(COALESCED_RECORDS_MAX, *writes, 0)

    got += _values(ends.channel)
    assert got == expected
    assert ends.channel.size == 0


def test_records_that_queued_keep_their_places() -> None:
    """Batches joined from backlog and cut again still know where each record came from."""
    ends = _Ends()
    for start in (0, 10, 20):
        places = [f"clicks@{start}", f"clicks@{start + 1}"]
        ends.channel.put(RecordBatch([*places], origin=places.__getitem__))
        ends.channel.put(RecordBatch(["unknown"]))

    seen = []
    while ends.channel.queue:
        batch = ends.channel.take(3)
        assert isinstance(batch, RecordBatch)
        assert batch.origin is not None
        seen += [(value, batch.origin(index)) for index, value in enumerate(batch.values)]
    assert len(seen) == 9
    assert all(place == (value if value != "unknown" else "") for value, place in seen)
