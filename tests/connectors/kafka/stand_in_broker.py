"""Stand-ins for what the source asks Kafka, and batches as brokers send them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any

from aiokafka.record._crecords import DefaultRecordBatchBuilder, MemoryRecords

from connectors.kafka.errors import KafkaTopicError
from connectors.kafka.offsets import EARLIEST_TIMESTAMP, LATEST_TIMESTAMP
from connectors.kafka.subscription import Subscription
from connectors.kafka.topic_partition import KafkaTopicPartition


class StandInLookup:
    """Answers questions about offsets from a dict: partition -> (earliest, latest)."""

    def __init__(
        self,
        ends: Mapping[KafkaTopicPartition, tuple[int, int]],
        committed: Mapping[KafkaTopicPartition, int] | None = None,
    ) -> None:
        self.ends = dict(ends)
        self.group = dict(committed or {})
        self.questions: list[tuple[int, list[KafkaTopicPartition]]] = []
        self.connected = 0
        self.closed = 0

    async def connect(self) -> None:
        self.connected += 1

    async def close(self) -> None:
        self.closed += 1

    async def offsets_at(
        self, partitions: Collection[KafkaTopicPartition], timestamp: int
    ) -> dict[KafkaTopicPartition, int]:
        self.questions.append((timestamp, sorted(partitions)))
        if timestamp == EARLIEST_TIMESTAMP:
            return {each: self.ends[each][0] for each in partitions}
        if timestamp == LATEST_TIMESTAMP:
            return {each: self.ends[each][1] for each in partitions}
        return {each: min(timestamp, self.ends[each][1]) for each in partitions}

    async def committed(
        self, partitions: Collection[KafkaTopicPartition]
    ) -> dict[KafkaTopicPartition, int]:
        return {each: self.group[each] for each in partitions if each in self.group}

    async def select_partitions(
        self, subscription: Subscription, patience_seconds: float = 0.0
    ) -> set[KafkaTopicPartition]:
        found: dict[str, set[int]] = {}
        for each in self.ends:
            found.setdefault(each.topic, set()).add(each.partition)
        missing = subscription.missing(found)
        if missing:
            raise KafkaTopicError(", ".join(missing))
        return subscription.select(found)


def batch_bytes(base_offset: int, values: Iterable[bytes], gap: int = 0) -> bytes:
    """An encoded batch; `gap` offsets behind its last record were compacted away."""
    builder = DefaultRecordBatchBuilder(2, 0, 0, -1, -1, 0, 1 << 20)
    count = 0
    for count, value in enumerate(values, 1):
        builder.append(count - 1, 1_000 + count - 1, None, value, [])
    data = bytearray(builder.build())
    data[0:8] = base_offset.to_bytes(8, "big")
    if gap:
        data[23:27] = (count - 1 + gap).to_bytes(4, "big")
    return bytes(data)


def batches(*encoded: bytes) -> list[Any]:
    """The batches as the client gives them, undecoded."""
    records = MemoryRecords(b"".join(encoded))
    found = []
    while records.has_next():
        found.append(records.next_batch())
    return found
