"""How far a partition was read: gaps, ends and batches that begin too early."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from connectors.kafka.split import PartitionSplit, Segment, SplitEntry
from connectors.kafka.topic_partition import KafkaTopicPartition
from tests.connectors.kafka.stand_in_broker import batch_bytes, batches

WHERE = KafkaTopicPartition("t", 0)


def values(split: PartitionSplit, count: int = 1000) -> list[bytes]:
    return [record.value for record in split.take(count)]


def test_a_position_lies_behind_the_last_record_taken() -> None:
    """Whatever was fetched beyond it."""
    split = PartitionSplit(WHERE, 5)
    split.put(Segment(batches(batch_bytes(5, [b"a", b"b", b"c"])), 8, 100))
    assert values(split, 2) == [b"a", b"b"]
    assert split.entry() == SplitEntry("t", 0, 7, None, False)
    assert split.fetch_offset == 8


def test_records_before_the_start_are_left_out() -> None:
    """Kafka sends whole batches, also where one begins before the offset asked for."""
    split = PartitionSplit(WHERE, 12)
    split.put(Segment(batches(batch_bytes(10, [b"a", b"b", b"c", b"d"])), 14, 100))
    assert values(split) == [b"c", b"d"]
    assert split.next_offset == 14


def test_offsets_without_records_count_as_read() -> None:
    """Markers, aborted records and compacted ones end a partition like visible ones."""
    split = PartitionSplit(WHERE, 0, stopping_offset=10)
    split.put(Segment(batches(batch_bytes(0, [b"a", b"b"], gap=3)), 5, 100))
    split.put(Segment((), 10, 70))
    assert values(split) == [b"a", b"b"]
    assert split.next_offset == 10
    assert split.finished


def test_records_behind_the_stopping_offset_are_left_out() -> None:
    """What was fetched beyond it is dropped with its bytes."""
    split = PartitionSplit(WHERE, 0, stopping_offset=2)
    split.put(Segment(batches(batch_bytes(0, [b"a", b"b", b"c"])), 3, 100))
    split.put(Segment(batches(batch_bytes(3, [b"d"])), 4, 100))
    assert values(split) == [b"a", b"b"]
    assert (split.finished, split.next_offset, split.buffered) == (True, 2, 0)


def test_an_end_that_is_set_later_cuts_what_was_fetched_already() -> None:
    """Records before it still come, those behind it do not."""
    split = PartitionSplit(WHERE, 0)
    split.put(Segment(batches(batch_bytes(0, [b"a", b"b", b"c"])), 3, 100))
    assert values(split, 1) == [b"a"]
    split.stop_at(2)
    assert split.fetched_all
    assert values(split) == [b"b"]
    assert (split.finished, split.next_offset, split.buffered) == (True, 2, 0)


def test_a_stopping_offset_inside_a_gap_ends_the_partition() -> None:
    """No record lies between the last one and the stopping offset."""
    split = PartitionSplit(WHERE, 0, stopping_offset=4)
    split.put(Segment(batches(batch_bytes(0, [b"a"]), batch_bytes(9, [b"z"])), 10, 100))
    assert values(split) == [b"a"]
    assert (split.finished, split.next_offset) == (True, 4)


def test_a_partition_without_records_is_finished_from_the_start() -> None:
    """First and stopping offset are equal."""
    assert PartitionSplit(WHERE, 7, stopping_offset=7).finished


def test_bytes_are_given_back_when_a_segment_is_read() -> None:
    """So the fetcher knows when there is room."""
    split = PartitionSplit(WHERE, 0)
    split.put(Segment(batches(batch_bytes(0, [b"a", b"b"])), 2, 100))
    split.put(Segment(batches(batch_bytes(2, [b"c"])), 3, 50))
    assert split.buffered == 150
    values(split, 2)
    assert values(split, 1) == [b"c"]
    assert split.buffered == 50
    assert values(split) == []
    assert (split.buffered, split.has_segments) == (0, False)


@given(
    sizes=st.lists(st.integers(1, 6), min_size=1, max_size=6),
    gaps=st.lists(st.integers(0, 3), min_size=6, max_size=6),
    takes=st.lists(st.integers(1, 5), min_size=1, max_size=40),
    start=st.integers(0, 8),
)
def test_the_size_of_batches_is_unobservable(
    sizes: list[int], gaps: list[int], takes: list[int], start: int
) -> None:
    """Any sequence of takes gives all records from the start on, in order, and then nothing."""
    split = PartitionSplit(WHERE, start)
    offset, wanted = 0, []
    for size, gap in zip(sizes, gaps, strict=False):
        numbers = range(offset, offset + size)
        wanted += [number for number in numbers if number >= start]
        encoded = batch_bytes(offset, [b"%d" % number for number in numbers], gap)
        offset += size + gap
        if offset > start:
            split.put(Segment(batches(encoded), offset, len(encoded)))
    read: list[int] = []
    while split.has_segments:
        for count in takes:
            read += [int(value) for value in values(split, count)]
    assert read == wanted
    assert split.next_offset == max(offset, start)
