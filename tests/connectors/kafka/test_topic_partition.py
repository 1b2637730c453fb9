"""Which subtask reads which partition."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from connectors.kafka.topic_partition import KafkaTopicPartition, split_owner

TABLES = Path(__file__).parents[2] / "conformance" / "cases" / "h_key_groups.json"
OWNERS = json.loads(TABLES.read_text())["kafka_split_owner"]


@pytest.mark.parametrize(("topic", "_", "parallelism", "owners"), OWNERS)
def test_partitions_have_the_owners_that_flink_gives_them(
    topic: str, _: int, parallelism: int, owners: list[int]
) -> None:
    """The tables were printed by Flink's own class."""
    found = [split_owner(topic, partition, parallelism) for partition in range(len(owners))]
    assert found == owners


def test_partitions_of_a_topic_are_spread_evenly() -> None:
    """No subtask has more than one partition above another."""
    counts = [0] * 3
    for partition in range(8):
        counts[split_owner("some-topic", partition, 3)] += 1
    assert sorted(counts) == [2, 3, 3]


@pytest.mark.parametrize(("topic", "partition"), [("", 0), ("t", -1), ("t", "1"), (5, 1)])
def test_what_is_no_partition_is_refused(topic: object, partition: object) -> None:
    """Names are strings, numbers start at 0."""
    with pytest.raises((ValueError, TypeError)):
        KafkaTopicPartition(topic, partition)


def test_a_partition_is_shown_by_topic_and_number() -> None:
    """As in error messages and split names."""
    assert str(KafkaTopicPartition("clicks", 3)) == "clicks[3]"
