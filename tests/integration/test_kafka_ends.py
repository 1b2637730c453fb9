"""Bounded jobs end by themselves, whatever lies at the end of their topics."""

from __future__ import annotations

from pathlib import Path

import pytest
from aiokafka import TopicPartition
from aiokafka.admin import RecordsToDelete

from tests.connectors.kafka.bounded_job import values_read
from tests.connectors.kafka.produced import admin, produce, produce_in_transactions
from tests.kafka_fixtures import TopicCreator


@pytest.mark.parametrize("aborted", [False, True], ids=["committed", "aborted"])
@pytest.mark.parametrize("level", ["read_committed", "read_uncommitted"])
async def test_a_job_ends_behind_markers_of_transactions(
    kafka: str, create_topic: TopicCreator, tmp_path: Path, level: str, aborted: bool
) -> None:
    """The last offset is a marker; of an aborted transaction only uncommitted readers see much."""
    topic = create_topic(partitions=2)
    await produce_in_transactions(kafka, topic, f"{topic}-{level}", aborted=aborted)
    visible = [*"012012", *(["99"] if aborted and level == "read_uncommitted" else [])]
    assert sorted(values_read(tmp_path, kafka, topic, level)) == sorted(visible)


async def test_a_job_ends_though_a_partition_was_emptied(
    kafka: str, create_topic: TopicCreator, tmp_path: Path
) -> None:
    """Its first offset is its end and above zero; the other partition is read."""
    topic = create_topic(partitions=2)
    for partition in range(2):
        await produce(kafka, topic, [b"%d" % n for n in range(5)], partition)
    async with admin(kafka) as client:
        await client.delete_records({TopicPartition(topic, 0): RecordsToDelete(before_offset=5)})
    assert values_read(tmp_path, kafka, topic) == [*"01234"]
