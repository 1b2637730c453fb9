"""Where partitions start and stop."""

from __future__ import annotations

import pytest

from connectors.kafka.errors import KafkaOffsetError
from connectors.kafka.offsets import KafkaOffsetResetStrategy, KafkaOffsetsInitializer
from connectors.kafka.topic_partition import KafkaTopicPartition
from tests.connectors.kafka.stand_in_broker import StandInLookup

FIRST, SECOND = KafkaTopicPartition("t", 0), KafkaTopicPartition("t", 1)
BOTH = [FIRST, SECOND]


@pytest.fixture
def lookup() -> StandInLookup:
    return StandInLookup({FIRST: (3, 10), SECOND: (0, 20)}, committed={SECOND: 15})


@pytest.mark.parametrize(
    ("initializer", "offsets"),
    [
        (KafkaOffsetsInitializer.earliest(), [3, 0]),
        (KafkaOffsetsInitializer.latest(), [10, 20]),
        (KafkaOffsetsInitializer.timestamp(12), [10, 12]),
        (KafkaOffsetsInitializer.offsets({SECOND: 7}), [3, 7]),
        (
            KafkaOffsetsInitializer.offsets({SECOND: 7}, KafkaOffsetResetStrategy.LATEST),
            [10, 7],
        ),
        (KafkaOffsetsInitializer.committed_offsets(KafkaOffsetResetStrategy.EARLIEST), [3, 15]),
        (KafkaOffsetsInitializer.committed_offsets(KafkaOffsetResetStrategy.LATEST), [10, 15]),
    ],
)
async def test_each_partition_has_the_offset_asked_for(
    lookup: StandInLookup, initializer: KafkaOffsetsInitializer, offsets: list[int]
) -> None:
    """Ends, times, given and committed offsets, with what stands in for missing ones."""
    assert await initializer.resolve(BOTH, lookup) == dict(zip(BOTH, offsets, strict=True))


async def test_no_committed_offset_fails_by_default(lookup: StandInLookup) -> None:
    """The error names the partition and the remedy."""
    with pytest.raises(KafkaOffsetError, match=r"t\[0\].*KafkaOffsetResetStrategy"):
        await KafkaOffsetsInitializer.committed_offsets().resolve(BOTH, lookup)


async def test_nothing_is_asked_for_no_partition(lookup: StandInLookup) -> None:
    """A discovery without news costs no request."""
    assert await KafkaOffsetsInitializer.latest().resolve([], lookup) == {}
    assert lookup.questions == []


def test_negative_offsets_and_times_are_refused() -> None:
    """They mean something else to Kafka."""
    with pytest.raises(ValueError, match="timestamp"):
        KafkaOffsetsInitializer.timestamp(-1)
    with pytest.raises(ValueError, match=r"t\[0\]"):
        KafkaOffsetsInitializer.offsets({FIRST: -2})
