"""What a writer has for one partition: batches in order, one of them on its way."""

from __future__ import annotations

from collections import deque
from typing import Any, NamedTuple

RECORD_OVERHEAD = 40
"""Bytes that a buffered record counts beyond key and value."""


class Batch(NamedTuple):
    """A full or taken batch."""

    builder: Any
    size: int
    records: int


class Lane:
    """The batches of one partition.

    * `appended`, `acknowledged`: records so far; equal when nothing is under way.
    * `active`: whether a task sends what is here.
    """

    def __init__(self, producer: Any, topic: str, partition: int) -> None:
        self.topic = topic
        self.partition = partition
        self.name = f"{topic}[{partition}]"
        self.appended = 0
        self.acknowledged = 0
        self.active = False
        self._producer = producer
        self._full: deque[Batch] = deque()
        self._builder: Any = None
        self._size = 0
        self._records = 0

    def append(
        self, key: bytes | None, value: bytes | None, headers: Any, timestamp: int | None
    ) -> int:
        """Takes a record and returns the bytes that it counts.

        Raises `TypeError` where a timestamp is no int or headers are no pairs of str and bytes.
        """
        headers = list(headers)
        size = RECORD_OVERHEAD + len(key or b"") + len(value or b"")
        if self._builder is None:
            self._builder = self._producer.create_batch()
        add = self._builder.append
        if add(timestamp=timestamp, key=key, value=value, headers=headers) is None:
            self._close_batch()
            self._builder = self._producer.create_batch()
            # The first record of a batch always fits.
            self._builder.append(timestamp=timestamp, key=key, value=value, headers=headers)
        self._size += size
        self._records += 1
        self.appended += 1
        return size

    @property
    def has_full_batch(self) -> bool:
        """Whether a batch waits that can take no more."""
        return bool(self._full)

    def take(self) -> Batch | None:
        """The next batch to send, however small; None if there is no record."""
        if not self._full:
            self._close_batch()
        return self._full.popleft() if self._full else None

    def _close_batch(self) -> None:
        if self._records:
            self._builder.close()
            self._full.append(Batch(self._builder, self._size, self._records))
        self._builder = None
        self._size = self._records = 0
