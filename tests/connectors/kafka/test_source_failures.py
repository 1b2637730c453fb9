"""The Kafka source where something is wrong: records, offsets, topics and brokers."""

from __future__ import annotations

import json

import pytest
from aiokafka.errors import AuthenticationFailedError

from connectors.kafka import (
    KafkaConnectorError,
    KafkaOffsetError,
    KafkaOffsetsInitializer,
    KafkaRecordError,
    KafkaSource,
    KafkaTopicError,
    KafkaTopicPartition,
    KafkaUnreachableError,
)
from operators.output_tag import OutputTag
from operators.source import SplitBatch
from tests.connectors.kafka.produced import admin, delete_topic, produce
from tests.connectors.kafka.stand_in_context import bounded, running
from tests.kafka_fixtures import TopicCreator, create_topic_at


def numbers(count: int, start: int = 0) -> list[bytes]:
    return [b"%d" % number for number in range(start, start + count)]


async def test_an_unparsable_record_fails_by_name(kafka: str, create_topic: TopicCreator) -> None:
    """The error says topic, partition and offset."""
    topic = create_topic()
    await produce(kafka, topic, [b"1", b"{", b"3"])
    async with running(bounded(kafka, topic)) as job:
        with pytest.raises(KafkaRecordError, match=rf"{topic}\[0\]@1 could not.*JSONDecodeError"):
            await job.read_all()


async def test_unparsable_records_can_be_skipped(kafka: str, create_topic: TopicCreator) -> None:
    """What follows keeps its places; what was dropped is counted."""
    topic = create_topic()
    await produce(kafka, topic, [b"1", b"{", b"3", b"}", b"5"])
    async with running(bounded(kafka, topic, deserialization_errors="skip")) as job:
        batch = await job.next_batch()
        assert isinstance(batch, SplitBatch)
        assert batch.values == [1, 3, 5]
        assert batch.origin is not None
        assert [batch.origin(index) for index in range(3)] == [
            f"{topic}[0]@{offset}" for offset in (0, 2, 4)
        ]
        assert job.contexts[0].metrics.counter("numRecordsInErrors").count == 2


async def test_unparsable_records_can_go_to_a_side_output(
    kafka: str, create_topic: TopicCreator
) -> None:
    """They carry place, bytes and the reason."""
    topic = create_topic()
    await produce(kafka, topic, [b"{"])
    source = bounded(kafka, topic, deserialization_errors=OutputTag("bad"))
    assert list(source.side_tags()) == ["bad"]
    async with running(source) as job:
        batch = await job.next_batch()
    assert isinstance(batch, SplitBatch)
    assert batch.values == []
    assert batch.side is not None
    [(tag, (*place, reason))] = batch.side
    assert (tag, place) == ("bad", [topic, 0, 0, b"key", b"{"])
    assert "JSONDecodeError" in reason


async def test_expired_offsets_fail_by_name(kafka: str, create_topic: TopicCreator) -> None:
    """The error says place, offset, what is there and which setting goes on."""
    from aiokafka import TopicPartition
    from aiokafka.admin import RecordsToDelete

    topic = create_topic()
    await produce(kafka, topic, numbers(10))
    start = KafkaOffsetsInitializer.offsets({KafkaTopicPartition(topic, 0): 2})
    async with admin(kafka) as client:
        await client.delete_records({TopicPartition(topic, 0): RecordsToDelete(before_offset=7)})
    async with running(bounded(kafka, topic, starting_offsets=start)) as job:
        with pytest.raises(KafkaOffsetError) as failure:
            await job.read_all()
    for part in (f"{topic}[0]", "offset 2", "earliest is 7", "set_expired_offsets"):
        assert part in str(failure.value)
    lenient = bounded(kafka, topic, starting_offsets=start, expired_offsets="earliest")
    async with running(lenient) as job:
        assert await job.read_all() == [7, 8, 9]


async def test_a_missing_topic_fails_by_name(creating_kafka: str) -> None:
    """The start fails, and the topic is not created, though the broker would."""
    kafka = creating_kafka
    with pytest.raises(KafkaTopicError, match=f"no-such-topic not found at {kafka}"):
        async with running(bounded(kafka, "no-such-topic")):
            pass
    async with admin(kafka) as client:
        assert "no-such-topic" not in await client.list_topics()


async def test_a_missing_partition_fails_by_name(kafka: str, create_topic: TopicCreator) -> None:
    """Partitions given one by one have to exist."""
    topic = create_topic()
    source = KafkaSource(
        bootstrap_servers=kafka,
        partitions=[KafkaTopicPartition(topic, 0), KafkaTopicPartition(topic, 1)],
        value_deserializer=json.loads,
    )
    with pytest.raises(KafkaTopicError, match=rf"{topic}\[1\] not found"):
        async with running(source):
            pass


async def test_a_topic_deleted_while_it_is_read_fails_by_name(creating_kafka: str) -> None:
    """The reader fails within its time, and no request makes the topic again."""
    kafka, topic = creating_kafka, "deleted"
    create_topic_at(kafka, topic)
    await produce(kafka, topic, [b"1"])
    source = KafkaSource(bootstrap_servers=kafka, topics=topic, value_deserializer=json.loads)
    async with running(source) as job:
        assert await job.read(1) == [1]
        await delete_topic(kafka, topic)
        with pytest.raises(KafkaTopicError, match=topic):
            await job.next_batch(seconds=40)
    async with admin(kafka) as client:
        assert topic not in await client.list_topics()


async def test_an_unreachable_broker_fails_in_time() -> None:
    """The error names address and setting."""
    source = KafkaSource(
        bootstrap_servers="localhost:1",
        topics="clicks",
        value_deserializer=json.loads,
        default_api_timeout_ms=600,
    )
    with pytest.raises(KafkaUnreachableError) as failure:
        async with running(source):
            pass
    for part in ("localhost:1", "600 ms", "default.api.timeout.ms", "bootstrap.servers"):
        assert part in str(failure.value)


async def test_a_refused_login_fails_at_once_with_the_reason(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Not only, after a while, that no broker could be reached; and without the password."""

    async def refuse(host: str, port: int, **arguments: object) -> None:
        assert arguments["sasl_plain_password"] == "hunter2"
        raise AuthenticationFailedError("Invalid username or password")

    monkeypatch.setattr("connectors.kafka.client.create_conn", refuse)
    source = KafkaSource(
        bootstrap_servers="localhost:1",
        topics="clicks",
        value_deserializer=json.loads,
        security_protocol="SASL_PLAINTEXT",
        sasl_plain_username="me",
        sasl_plain_password="hunter2",
    )
    with pytest.raises(KafkaConnectorError, match=r"connect at localhost:1: .*Invalid user") as no:
        async with running(source):
            pass
    assert "hunter2" not in str(no.value)
