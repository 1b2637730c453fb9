"""The Kafka sink against a real broker: what is written, how, and what fails."""

from __future__ import annotations

import json
from typing import Any

import pytest

from connectors.kafka import (
    DeliveryGuarantee,
    KafkaConnectorError,
    KafkaProducerRecord,
    KafkaRecordError,
    KafkaRecordSerializationSchema,
    KafkaSink,
    KafkaTopicError,
    KafkaUnreachableError,
)
from connectors.schemas import SimpleStringSchema
from tests.connectors.kafka.produced import admin, consume, delete_topic, producer
from tests.connectors.kafka.stand_in_context import writing
from tests.kafka_fixtures import BrokerMaker, TopicCreator, create_topic_at


def dumps(value: object) -> bytes:
    return json.dumps(value).encode()


async def test_what_was_flushed_is_there(kafka: str, create_topic: TopicCreator) -> None:
    """Values in order, with their event times as the records' timestamps."""
    topic = create_topic()
    sink = KafkaSink(bootstrap_servers=kafka, topic=topic, value_serializer=dumps)
    async with writing(sink) as (writer, _):
        writer.write([1, 2], [1_000, 2_000])
        writer.write([3], [3_000])
        await writer.flush(False)
        records = await consume(kafka, topic)
    assert [(r.value, r.timestamp) for r in records] == [
        (b"1", 1_000),
        (b"2", 2_000),
        (b"3", 3_000),
    ]


async def test_tombstones_empty_bytes_and_headers_survive(
    kafka: str, create_topic: TopicCreator
) -> None:
    """None and empty stay apart in keys, values and headers."""
    topic = create_topic()
    schema = (
        KafkaRecordSerializationSchema.builder()
        .set_topic(topic)
        .set_key_serialization_schema(lambda pair: None if pair is None else pair[0])
        .set_value_serialization_schema(lambda pair: pair[1])
        .set_header_provider(lambda pair: [("n", None), ("e", b""), ("h", b"x")])
        .build()
    )
    sink = KafkaSink.builder().set_bootstrap_servers(kafka).set_record_serializer(schema).build()
    async with writing(sink) as (writer, _):
        writer.write([(b"k", None), (b"", b""), (None, b"v"), None], None)
        await writer.flush(False)
        records = await consume(kafka, topic)
    assert [(r.key, r.value) for r in records] == [
        (b"k", None),
        (b"", b""),
        (None, b"v"),
        (None, None),
    ]
    assert {r.headers for r in records} == {(("n", None), ("e", b""), ("h", b"x"))}


async def test_keys_go_where_other_clients_put_them(kafka: str, create_topic: TopicCreator) -> None:
    """The partition of a key is that of Kafka's default partitioner."""
    ours, theirs = create_topic(partitions=4), create_topic(partitions=4)
    keys = [b"key-%d" % number for number in range(40)]
    async with producer(kafka) as client:
        for key in keys:
            await client.send(theirs, key, key=key)
    sink = KafkaSink(
        bootstrap_servers=kafka, topic=ours, value_serializer=bytes, key_serializer=bytes
    )
    async with writing(sink) as (writer, _):
        writer.write(keys, None)
        await writer.flush(False)
    wanted = {r.key: r.partition for r in await consume(kafka, theirs, 4)}
    found = {r.key: r.partition for r in await consume(kafka, ours, 4)}
    assert set(found) == set(keys)
    assert found == wanted


async def test_records_without_key_go_round(kafka: str, create_topic: TopicCreator) -> None:
    """Each batch of them goes to the next partition."""
    topic = create_topic(partitions=3)
    sink = KafkaSink(bootstrap_servers=kafka, topic=topic, value_serializer=dumps)
    async with writing(sink) as (writer, _):
        for number in range(6):
            writer.write([number, number], None)
        await writer.flush(False)
    counts = [r.partition for r in await consume(kafka, topic, 3)]
    assert [counts.count(partition) for partition in range(3)] == [4, 4, 4]


async def test_topic_and_partition_may_follow_from_the_value(
    kafka: str, create_topic: TopicCreator
) -> None:
    """A selector and a partitioner are called with the value."""
    topics = [create_topic(partitions=2), create_topic(partitions=2)]
    sink = KafkaSink(
        bootstrap_servers=kafka,
        topic=lambda value: topics[value % 2],
        value_serializer=dumps,
        partitioner=lambda element, key, value, topic, partitions: 1,
    )
    async with writing(sink) as (writer, _):
        writer.write(list(range(6)), None)
        await writer.flush(False)
    for number, topic in enumerate(topics):
        records = await consume(kafka, topic, 2)
        assert [(r.value, r.partition) for r in records] == [
            (b"%d" % value, 1) for value in range(number, 6, 2)
        ]


async def test_a_schema_of_ones_own_may_drop_records(
    kafka: str, create_topic: TopicCreator
) -> None:
    """None writes nothing."""

    class Even(KafkaRecordSerializationSchema[int]):
        def serialize(self, element: int, timestamp: int | None, partitions_of: Any) -> Any:
            value = b"%d" % element
            return None if element % 2 else KafkaProducerRecord(topic, value=value, timestamp=7)

    topic = create_topic()
    sink = KafkaSink(bootstrap_servers=kafka, record_serializer=Even())
    async with writing(sink) as (writer, _):
        writer.write([0, 1, 2, 3], [9, 9, 9, 9])
        await writer.flush(False)
    assert [(r.value, r.timestamp) for r in await consume(kafka, topic)] == [(b"0", 7), (b"2", 7)]


async def test_the_buffer_holds_the_job_back(kafka: str, create_topic: TopicCreator) -> None:
    """There is no room while the bound is reached, and the task is woken when there is again."""
    topic = create_topic()
    sink = KafkaSink(
        bootstrap_servers=kafka,
        topic=topic,
        value_serializer=bytes,
        properties={"buffer.memory": 10_000, "batch.size": 2_000},
    )
    async with writing(sink) as (writer, context):
        assert writer.has_room
        writer.write([b"x" * 500] * 30, None)
        assert not writer.has_room
        await context.room.wait()
        assert writer.has_room
        await writer.flush(True)
    assert len(await consume(kafka, topic)) == 30


async def test_a_missing_topic_fails_by_name(creating_kafka: str) -> None:
    """At the start where it is fixed, at the flush where values name it; it is not created."""
    kafka = creating_kafka
    fixed = KafkaSink(bootstrap_servers=kafka, topic="not-there", value_serializer=dumps)
    with pytest.raises(KafkaTopicError, match=f"not-there not found at {kafka}"):
        async with writing(fixed):
            pass
    chosen = KafkaSink(
        bootstrap_servers=kafka, topic=lambda value: "not-there", value_serializer=dumps
    )
    async with writing(chosen) as (writer, context):
        writer.write([1], None)
        with pytest.raises(KafkaTopicError, match="not-there"):
            await writer.flush(False)
        assert len(context.failures) == 1
    async with admin(kafka) as client:
        assert "not-there" not in await client.list_topics()


async def test_a_topic_deleted_while_it_is_written_fails_by_name(creating_kafka: str) -> None:
    """The flush fails, and no request makes the topic again."""
    kafka, topic = creating_kafka, "deleted"
    create_topic_at(kafka, topic)
    sink = KafkaSink(bootstrap_servers=kafka, topic=topic, value_serializer=dumps)
    async with writing(sink) as (writer, context):
        writer.write([1], None)
        await writer.flush(False)
        await delete_topic(kafka, topic)
        writer.write([2], None)
        with pytest.raises(KafkaConnectorError, match=topic):
            await writer.flush(False)
        assert len(context.failures) == 1
    async with admin(kafka) as client:
        assert topic not in await client.list_topics()


async def test_an_unreachable_broker_fails_in_time() -> None:
    """The error names address and setting."""
    sink = KafkaSink(
        bootstrap_servers="localhost:1", topic="t", value_serializer=dumps, max_block_ms=600
    )
    with pytest.raises(KafkaUnreachableError, match=r"localhost:1 within 600 ms \(max.block.ms\)"):
        async with writing(sink):
            pass


async def test_a_broker_that_goes_away_fails_the_flush_in_time(local_broker: BrokerMaker) -> None:
    """After delivery.timeout.ms, naming topic, address and setting; closing takes a moment."""
    broker = local_broker()
    broker.start()
    create_topic_at(broker.bootstrap, "lost")
    sink = KafkaSink(
        bootstrap_servers=broker.bootstrap,
        topic="lost",
        value_serializer=dumps,
        properties={"delivery.timeout.ms": 1500},
    )
    async with writing(sink) as (writer, _):
        writer.write([1], None)
        await writer.flush(False)
        broker.kill()
        writer.write([2], None)
        with pytest.raises(KafkaConnectorError, match=r"lost\[0\].*1500 ms \(delivery.timeout.ms"):
            await writer.flush(False)


async def test_a_value_that_cannot_be_serialized_fails_by_name(
    kafka: str, create_topic: TopicCreator
) -> None:
    """The error shows the value, and which serializer gave what."""
    topic = create_topic()
    sink = KafkaSink(bootstrap_servers=kafka, topic=topic, value_serializer=dumps)
    async with writing(sink) as (writer, _):
        with pytest.raises(KafkaRecordError, match=r"TypeError.*the value: \{1, 2\}"):
            writer.write([{1, 2}], None)
    text = KafkaSink(bootstrap_servers=kafka, topic=topic, value_serializer=str)
    async with writing(text) as (writer, _):
        with pytest.raises(KafkaRecordError, match=f"value serializer.*{topic}.*not str"):
            writer.write([1], None)
    large = KafkaSink(
        bootstrap_servers=kafka,
        topic=topic,
        value_serializer=SimpleStringSchema(),
        max_request_size=10,
    )
    async with writing(large) as (writer, _):
        with pytest.raises(KafkaRecordError, match=r"11 bytes, max.request.size allows 10"):
            writer.write(["x" * 11], None)


async def test_without_a_guarantee_a_checkpoint_does_not_wait(
    kafka: str, create_topic: TopicCreator
) -> None:
    """The end of the input does, so that a job that ends loses nothing."""
    topic = create_topic()
    sink = KafkaSink(
        bootstrap_servers=kafka,
        topic=topic,
        value_serializer=dumps,
        delivery_guarantee=DeliveryGuarantee.NONE,
    )
    async with writing(sink) as (writer, context):
        writer.write([1], None)
        await writer.flush(False)
        assert context.metrics.counter("numRecordsSend").count == 0
        await writer.flush(True)
        assert context.metrics.counter("numRecordsSend").count == 1


async def test_compressed_batches_are_written(kafka: str, create_topic: TopicCreator) -> None:
    """By compression.type."""
    topic = create_topic()
    sink = KafkaSink(
        bootstrap_servers=kafka, topic=topic, value_serializer=bytes, compression_type="gzip"
    )
    async with writing(sink) as (writer, _):
        writer.write([b"x" * 1000] * 100, None)
        await writer.flush(False)
    assert [record.value for record in await consume(kafka, topic)] == [b"x" * 1000] * 100
