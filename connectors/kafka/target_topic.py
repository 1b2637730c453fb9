"""What a writer knows of one topic, and which partition each of its records goes to."""

from __future__ import annotations

from connectors.kafka.binding import murmur2
from connectors.kafka.errors import KafkaRecordError
from connectors.kafka.lane import Lane
from connectors.kafka.serialization import KafkaProducerRecord

_KEYS_REMEMBERED_MAX = 50_000


class TargetTopic:
    """One topic of a writer; records wait in `waiting` while `partitions` is empty."""

    def __init__(self, name: str, first: int) -> None:
        self.name = name
        self.partitions: list[int] = []
        self.lanes: dict[int, Lane] = {}
        self.waiting: list[KafkaProducerRecord] = []
        self.round_robin = first
        self._partition_of_key: dict[bytes, int] = {}

    def know(self, partitions: list[int]) -> None:
        """Takes over the partitions that the topic has now."""
        if partitions and partitions != self.partitions:
            self.partitions = partitions
            self._partition_of_key.clear()

    def partition_of(self, record: KafkaProducerRecord) -> int:
        """Where a record goes; keys are hashed as Kafka's own clients do."""
        if record.partition is not None:
            if record.partition not in self.partitions:
                raise KafkaRecordError(
                    f"topic {self.name!r} has no partition {record.partition!r}: the partitioner "
                    f"has to give one of {self.partitions}"
                )
            return record.partition
        key = record.key
        if key is None:
            return self.partitions[self.round_robin % len(self.partitions)]
        found = self._partition_of_key.get(key)
        if found is None:
            if len(self._partition_of_key) >= _KEYS_REMEMBERED_MAX:
                self._partition_of_key.clear()
            found = self.partitions[(murmur2(key) & 0x7FFFFFFF) % len(self.partitions)]
            self._partition_of_key[key] = found
        return found
