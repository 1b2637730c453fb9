"""A partition as a reader sees it: how far it was read, and what was fetched beyond that."""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain, islice
from operator import attrgetter
from typing import Any, NamedTuple

from connectors.kafka.topic_partition import KafkaTopicPartition


@dataclass(frozen=True, slots=True)
class SplitAssignment:
    """What the enumerator sends to the subtask that shall read a partition.

    A subtask that has the partition in its state already keeps what it has, and takes from here
    only the stopping offset that it lacks.
    """

    partition: KafkaTopicPartition
    start_offset: int
    stopping_offset: int | None


class SplitEntry(NamedTuple):
    """A partition in operator state."""

    topic: str
    partition: int
    next_offset: int
    stopping_offset: int | None
    finished: bool


class Segment:
    """What one fetch brought of one partition: record batches, not yet decoded.

    `next_offset` lies behind all of it, also behind batches that hold no visible record.
    """

    __slots__ = ("next_offset", "records", "size")

    def __init__(self, batches: Iterable[Any], next_offset: int, size: int) -> None:
        # A batch is decoded (and decompressed) when its first record is taken.
        self.records: Iterator[Any] = chain.from_iterable(batches)
        self.next_offset = next_offset
        self.size = size


_offset = attrgetter("offset")


class PartitionSplit:
    """One partition of one reader.

    * `next_offset`: behind the last record handed out; what a checkpoint stores.
    * `fetch_offset`: behind the last record fetched.
    * `buffered`: bytes fetched and not yet handed out.
    """

    def __init__(
        self,
        partition: KafkaTopicPartition,
        next_offset: int,
        stopping_offset: int | None = None,
        finished: bool = False,
    ) -> None:
        self.partition = partition
        self.name = str(partition)
        self.next_offset = next_offset
        self.fetch_offset = next_offset
        self.stopping_offset = stopping_offset
        self.finished = finished
        self.buffered = 0
        self.end_offset: int | None = None
        """Where the partition ended at the last fetch."""
        self.fetch_alone = False
        """Asks for a fetch of this partition only: to know that a gap reaches to the end."""
        self.unavailable_since: float | None = None
        """Since when no broker leads the partition; monotonic seconds."""
        self._segments: deque[Segment] = deque()
        self._finish_if_done()

    @classmethod
    def of_entry(cls, entry: SplitEntry) -> PartitionSplit:
        """The split that an entry of operator state describes."""
        where = KafkaTopicPartition(entry.topic, entry.partition)
        return cls(where, entry.next_offset, entry.stopping_offset, entry.finished)

    def entry(self) -> SplitEntry:
        """The split for operator state."""
        topic, number = self.partition.topic, self.partition.partition
        return SplitEntry(topic, number, self.next_offset, self.stopping_offset, self.finished)

    @property
    def fetched_all(self) -> bool:
        """Whether nothing more has to be fetched."""
        stop = self.stopping_offset
        return self.finished or (stop is not None and self.fetch_offset >= stop)

    @property
    def has_segments(self) -> bool:
        """Whether `take` has something to do."""
        return bool(self._segments)

    def put(self, segment: Segment) -> None:
        """Takes what was fetched at `fetch_offset`."""
        self._segments.append(segment)
        self.buffered += segment.size
        self.fetch_offset = segment.next_offset

    def skip_to(self, offset: int) -> None:
        """Goes on at another offset, after all that is buffered."""
        self.put(Segment((), offset, 0))

    def stop_at(self, offset: int) -> None:
        """Ends the partition at an offset; at once if it was read up to there already."""
        self.stopping_offset = offset
        self._finish_if_done()

    def take(self, records_max: int) -> list[Any]:
        """The next records, at most `records_max`; may be empty although segments are left.

        Raises what decoding raises (a compression library that is missing, corrupt data).
        """
        taken: list[Any] = []
        while self._segments and len(taken) < records_max and not self.finished:
            segment = self._segments[0]
            wanted = records_max - len(taken)
            records = list(islice(segment.records, wanted))
            exhausted = len(records) < wanted
            # A batch is fetched whole, also where reading starts in the middle of it.
            if records and records[0].offset < self.next_offset:
                records = records[bisect_left(records, self.next_offset, key=_offset) :]
            stop = self.stopping_offset
            if stop is not None and records and records[-1].offset >= stop:
                records = records[: bisect_left(records, stop, key=_offset)]
                self.next_offset = stop
            elif records:
                self.next_offset = records[-1].offset + 1
            if exhausted:
                end = segment.next_offset
                self.next_offset = end if stop is None else min(end, stop)
                self._segments.popleft()
                self.buffered -= segment.size
            taken += records
            self._finish_if_done()
        return taken

    def _finish_if_done(self) -> None:
        if self.stopping_offset is not None and self.next_offset >= self.stopping_offset:
            self.finished = True
            self._segments.clear()
            self.buffered = 0
