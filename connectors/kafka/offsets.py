"""Where a source begins and where it ends in each partition."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from enum import Enum
from typing import Protocol

from connectors.kafka.errors import KafkaOffsetError
from connectors.kafka.topic_partition import KafkaTopicPartition, whole_number

EARLIEST_TIMESTAMP = -2
"""Asks Kafka for the first offset of a partition."""

LATEST_TIMESTAMP = -1
"""Asks Kafka for the offset behind the last record."""


class KafkaOffsetResetStrategy(Enum):
    """What to do where the wanted offset is not there (PyFlink's name)."""

    LATEST = "latest"
    EARLIEST = "earliest"
    NONE = "none"
    """Fail naming the partition."""


class OffsetLookup(Protocol):
    """What Kafka can be asked about the offsets of partitions."""

    async def offsets_at(
        self, partitions: Collection[KafkaTopicPartition], timestamp: int
    ) -> dict[KafkaTopicPartition, int]:
        """The offset of the first record at or after a timestamp in ms.

        -1 (latest) and -2 (earliest) ask for the ends. The end offset where there is no such
        record.
        """

    async def committed(
        self, partitions: Collection[KafkaTopicPartition]
    ) -> dict[KafkaTopicPartition, int]:
        """The offsets that the source's group has committed; partitions without are left out."""


class KafkaOffsetsInitializer:
    """Says which offset each partition starts or stops at (PyFlink: `KafkaOffsetsInitializer`).

    Made by its static methods; immutable.
    """

    def __init__(
        self,
        kind: str,
        *,
        timestamp: int | None = None,
        offsets: Mapping[KafkaTopicPartition, int] | None = None,
        reset: KafkaOffsetResetStrategy = KafkaOffsetResetStrategy.NONE,
    ) -> None:
        self.kind = kind
        self._timestamp = timestamp
        self._offsets = dict(offsets or {})
        self._reset = reset

    @staticmethod
    def earliest() -> KafkaOffsetsInitializer:
        """The first offset that is still there."""
        return KafkaOffsetsInitializer("earliest", timestamp=EARLIEST_TIMESTAMP)

    @staticmethod
    def latest() -> KafkaOffsetsInitializer:
        """The end of each partition at the moment the job starts."""
        return KafkaOffsetsInitializer("latest", timestamp=LATEST_TIMESTAMP)

    @staticmethod
    def timestamp(timestamp: int) -> KafkaOffsetsInitializer:
        """The first record with this timestamp (ms) or a later one; the end if there is none."""
        whole_number(timestamp, "a timestamp in ms")
        return KafkaOffsetsInitializer("timestamp", timestamp=timestamp)

    @staticmethod
    def committed_offsets(
        offset_reset_strategy: KafkaOffsetResetStrategy = KafkaOffsetResetStrategy.NONE,
    ) -> KafkaOffsetsInitializer:
        """The offsets that the group has committed; the strategy says what where there is none."""
        return KafkaOffsetsInitializer("committed", reset=offset_reset_strategy)

    @staticmethod
    def offsets(
        offsets: Mapping[KafkaTopicPartition, int],
        offset_reset_strategy: KafkaOffsetResetStrategy = KafkaOffsetResetStrategy.EARLIEST,
    ) -> KafkaOffsetsInitializer:
        """The given offsets; partitions left out follow the strategy."""
        if not isinstance(offsets, Mapping):
            raise TypeError(
                f"offsets are a dict of KafkaTopicPartition and int, not {offsets!r:.80}"
            )
        for partition, offset in offsets.items():
            whole_number(offset, f"the offset of {partition}")
        return KafkaOffsetsInitializer("offsets", offsets=offsets, reset=offset_reset_strategy)

    @property
    def needs_group(self) -> bool:
        """Whether a group id is needed."""
        return self.kind == "committed"

    async def resolve(
        self, partitions: Collection[KafkaTopicPartition], lookup: OffsetLookup
    ) -> dict[KafkaTopicPartition, int]:
        """The offset of each partition.

        Raises:
            KafkaOffsetError: a partition has no offset and the strategy is NONE.
        """
        if not partitions:
            return {}
        if self._timestamp is not None:
            return await lookup.offsets_at(partitions, self._timestamp)
        if self.kind == "committed":
            found = await lookup.committed(partitions)
        else:
            found = {each: self._offsets[each] for each in partitions if each in self._offsets}
        missing = [each for each in partitions if each not in found]
        if not missing:
            return found
        if self._reset is KafkaOffsetResetStrategy.NONE:
            what = "committed offset" if self.kind == "committed" else "given offset"
            raise KafkaOffsetError(
                f"no {what} for {', '.join(map(str, sorted(missing)))}: pass "
                "KafkaOffsetResetStrategy.EARLIEST or LATEST as offset_reset_strategy of "
                "KafkaOffsetsInitializer"
            )
        earliest = self._reset is KafkaOffsetResetStrategy.EARLIEST
        end = EARLIEST_TIMESTAMP if earliest else LATEST_TIMESTAMP
        return found | await lookup.offsets_at(missing, end)

    def __repr__(self) -> str:
        return f"KafkaOffsetsInitializer.{self.kind}"
