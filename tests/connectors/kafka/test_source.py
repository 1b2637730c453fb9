"""The Kafka source against a real broker: what it reads, where it starts and where it ends."""

from __future__ import annotations

import json

import pytest

from connectors.kafka import (
    KafkaOffsetError,
    KafkaOffsetResetStrategy,
    KafkaOffsetsInitializer,
    KafkaRecord,
    KafkaSource,
    KafkaTopicPartition,
)
from operators.source import InputStatus, SplitBatch
from tests.connectors.kafka.produced import admin, produce, produce_in_transactions, producer
from tests.connectors.kafka.stand_in_context import bounded, running
from tests.kafka_fixtures import TopicCreator


def numbers(count: int, start: int = 0) -> list[bytes]:
    return [b"%d" % number for number in range(start, start + count)]


async def test_all_records_of_all_partitions_are_read_once(
    kafka: str, create_topic: TopicCreator
) -> None:
    """Two subtasks share five partitions; each keeps the order of its partitions."""
    topic = create_topic(partitions=5)
    for partition in range(5):
        await produce(kafka, topic, numbers(300, partition * 1000), partition)
    async with running(bounded(kafka, topic), parallelism=2) as job:
        values = await job.read_all()
        opened = [split for context in job.contexts for split in context.opened]
        closed = [split for context in job.contexts for split in context.closed]
    assert sorted(values) == [p * 1000 + n for p in range(5) for n in range(300)]
    for partition in range(5):
        mine = [value for value in values if value // 1000 == partition]
        assert mine == sorted(mine)
    assert sorted(opened) == sorted(closed) == [f"{topic}[{number}]" for number in range(5)]


async def test_a_batch_has_times_split_and_places(kafka: str, create_topic: TopicCreator) -> None:
    """Record timestamps are the source's timestamps, and each record can be named."""
    topic = create_topic()
    async with producer(kafka) as client:
        for number in range(3):
            await client.send(topic, b"%d" % number, timestamp_ms=1_000_000 + number)
    async with running(bounded(kafka, topic)) as job:
        batch = await job.next_batch()
    assert isinstance(batch, SplitBatch)
    assert batch.timestamps == [1_000_000, 1_000_001, 1_000_002]
    assert batch.split == f"{topic}[0]"
    assert batch.origin is not None
    assert batch.origin(2) == f"{topic}[0]@2"


async def test_a_tombstone_is_none(kafka: str, create_topic: TopicCreator) -> None:
    """The deserializer of values is not called for a record without value."""
    topic = create_topic()
    await produce(kafka, topic, [b"1", None, b"3"])
    async with running(bounded(kafka, topic)) as job:
        assert await job.read_all() == [1, None, 3]


async def test_whole_records_have_key_headers_and_place(
    kafka: str, create_topic: TopicCreator
) -> None:
    """A deserializer of whole records sees empty and missing keys, values and headers as such."""
    topic = create_topic()
    async with producer(kafka) as client:
        headers = [("h", b""), ("n", None)]
        await client.send(topic, b"", key=b"", headers=headers, timestamp_ms=5)
        await client.send(topic, None, key=b"k", timestamp_ms=6)
        await client.send(topic, b"v", timestamp_ms=7)
    async with running(bounded(kafka, topic, deserializer=lambda record: record)) as job:
        records = await job.read_all()
    assert records == [
        KafkaRecord(topic, 0, 0, 5, b"", b"", (("h", b""), ("n", None))),
        KafkaRecord(topic, 0, 1, 6, b"k", None, ()),
        KafkaRecord(topic, 0, 2, 7, None, b"v", ()),
    ]


async def test_the_end_is_fixed_at_the_start(kafka: str, create_topic: TopicCreator) -> None:
    """Records that come while a bounded source reads are not part of it."""
    topic = create_topic()
    await produce(kafka, topic, numbers(3))
    async with running(bounded(kafka, topic)) as job:
        await produce(kafka, topic, numbers(3, 10))
        assert await job.read_all() == [0, 1, 2]


async def test_an_empty_topic_ends_at_once(kafka: str, create_topic: TopicCreator) -> None:
    """No split counts for the watermark."""
    topic = create_topic(partitions=2)
    async with running(bounded(kafka, topic)) as job:
        assert await job.next_batch() is InputStatus.END_OF_INPUT
        assert job.contexts[0].opened == []


@pytest.mark.parametrize("level", ["read_committed", "read_uncommitted"])
async def test_transactions_do_not_hide_the_end(
    kafka: str, create_topic: TopicCreator, level: str
) -> None:
    """Last offsets that are markers, or of an aborted transaction, end a bounded source."""
    topic = create_topic(partitions=2)
    await produce_in_transactions(kafka, topic, f"{topic}-{level}", aborted=True)
    aborted = [] if level == "read_committed" else [99]
    async with running(bounded(kafka, topic, isolation_level=level)) as job:
        assert sorted(await job.read_all(20)) == [0, 0, 1, 1, 2, 2, *aborted]


async def test_an_emptied_partition_ends_at_once(kafka: str, create_topic: TopicCreator) -> None:
    """First and end offset are equal and above zero."""
    from aiokafka import TopicPartition
    from aiokafka.admin import RecordsToDelete

    topic = create_topic()
    await produce(kafka, topic, numbers(5))
    async with admin(kafka) as client:
        await client.delete_records({TopicPartition(topic, 0): RecordsToDelete(before_offset=5)})
    async with running(bounded(kafka, topic)) as job:
        assert await job.read_all() == []


async def test_starting_and_stopping_offsets(kafka: str, create_topic: TopicCreator) -> None:
    """Given offsets, timestamps and ends; partitions left out follow the strategy."""
    topic = create_topic(partitions=2)
    async with producer(kafka) as client:
        for partition in range(2):
            for number in range(10):
                await client.send(
                    topic,
                    b"%d" % (partition * 100 + number),
                    partition=partition,
                    timestamp_ms=1_000 + number,
                )
    initializer = KafkaOffsetsInitializer
    first = {KafkaTopicPartition(topic, 0): 8}
    cases = [
        (initializer.offsets(first), [8, 9, *range(100, 110)]),
        (initializer.offsets(first, KafkaOffsetResetStrategy.LATEST), [8, 9]),
        (initializer.timestamp(1_007), [7, 8, 9, 107, 108, 109]),
        (initializer.timestamp(5_000), []),
        (initializer.latest(), []),
    ]
    for start, expected in cases:
        async with running(bounded(kafka, topic, starting_offsets=start)) as job:
            assert sorted(await job.read_all()) == expected
    stop = initializer.timestamp(1_002)
    async with running(bounded(kafka, topic, bounded=stop)) as job:
        assert sorted(await job.read_all()) == [0, 1, 100, 101]
    strict = initializer.offsets(first, KafkaOffsetResetStrategy.NONE)
    with pytest.raises(KafkaOffsetError, match=rf"no given offset for {topic}\[1\]"):
        async with running(bounded(kafka, topic, starting_offsets=strict)):
            pass


async def test_offsets_are_committed_with_a_checkpoint_and_only_then(
    kafka: str, create_topic: TopicCreator
) -> None:
    """The group learns the positions of the completed checkpoint, not later ones."""
    topic = create_topic()
    await produce(kafka, topic, numbers(700))
    group = f"group-of-{topic}"
    start = KafkaOffsetsInitializer.committed_offsets()
    with pytest.raises(KafkaOffsetError, match="no committed offset"):
        async with running(bounded(kafka, topic, group_id=group, starting_offsets=start)):
            pass
    async with running(bounded(kafka, topic, group_id=group)) as job:
        first = await job.next_batch()
        assert isinstance(first, SplitBatch)
        job.checkpoint(1)
        await job.next_batch()
        job.checkpoint(2)
        job.readers[0].notify_checkpoint_complete(1)
    async with running(bounded(kafka, topic, group_id=group, starting_offsets=start)) as job:
        assert await job.read_all() == list(range(len(first.values), 700))


async def test_a_restore_at_another_parallelism_goes_on_where_it_was(
    kafka: str, create_topic: TopicCreator
) -> None:
    """Each record is read once before or after the checkpoint, whoever owns its partition then."""
    topic = create_topic(partitions=4)
    for partition in range(4):
        await produce(kafka, topic, numbers(700, partition * 1000), partition)
    source = bounded(kafka, topic)
    before: list[object] = []
    async with running(source, parallelism=2) as job:
        for subtask in (0, 1, 1):
            batch = await job.next_batch(subtask)
            assert isinstance(batch, SplitBatch)
            before += batch.values
        first = job.checkpoint(1)
    async with running(source, parallelism=3, restored=first) as job:
        batch = await job.next_batch(0)
        assert isinstance(batch, SplitBatch)
        before += batch.values
        second = job.checkpoint(2)
    async with running(source, parallelism=1, restored=second) as job:
        after = await job.read_all()
    assert sorted(before + after) == [p * 1000 + n for p in range(4) for n in range(700)]


async def test_a_source_without_end_gets_one_from_a_restore(
    kafka: str, create_topic: TopicCreator
) -> None:
    """At another parallelism: it reads on to the end of this start and ends there."""
    topic = create_topic(partitions=3)
    for partition in range(3):
        await produce(kafka, topic, numbers(20, partition * 1000), partition)
    unbounded = KafkaSource(bootstrap_servers=kafka, topics=topic, value_deserializer=json.loads)
    async with running(unbounded) as job:
        before = await job.read(60)
        checkpoint = job.checkpoint(1)
    await produce(kafka, topic, numbers(5, 1020), 1)
    async with running(bounded(kafka, topic), parallelism=2, restored=checkpoint) as job:
        after = await job.read_all()
    assert len(before) == 60
    assert sorted(after) == list(range(1020, 1025))


async def test_new_partitions_are_read_from_their_beginning(
    kafka: str, create_topic: TopicCreator
) -> None:
    """Also where the source starts at the latest offsets; the checkpoint holds them."""
    from aiokafka.admin import NewPartitions

    topic = create_topic()
    source = KafkaSource(
        bootstrap_servers=kafka,
        topics=topic,
        value_deserializer=json.loads,
        starting_offsets=KafkaOffsetsInitializer.latest(),
        properties={"partition.discovery.interval.ms": "300"},
    )
    await produce(kafka, topic, [b"0"])
    async with running(source) as job:
        async with admin(kafka) as client:
            await client.create_partitions({topic: NewPartitions(total_count=3)})
        await produce(kafka, topic, [b"1"], 1)
        await produce(kafka, topic, [b"2"], 2)
        assert sorted(await job.read(2)) == [1, 2]
        assert sorted(job.contexts[0].opened) == [f"{topic}[{number}]" for number in range(3)]
        checkpoint = job.checkpoint(1)
    async with admin(kafka) as client:
        await client.create_partitions({topic: NewPartitions(total_count=4)})
    await produce(kafka, topic, [b"3"], 3)
    await produce(kafka, topic, [b"4"], 0)
    async with running(source, restored=checkpoint) as job:
        assert sorted(await job.read(2)) == [3, 4]


async def test_a_pattern_finds_topics_that_come_later(
    kafka: str, create_topic: TopicCreator
) -> None:
    """The whole name has to match."""
    first = create_topic("early")
    token = first.split("-")[1]
    source = KafkaSource(
        bootstrap_servers=kafka,
        topic_pattern=rf"(early|late)-{token}-\d",
        value_deserializer=json.loads,
        properties={"partition.discovery.interval.ms": "300"},
    )
    await produce(kafka, first, [b"1"])
    async with running(source) as job:
        assert await job.read(1) == [1]
        late, other = create_topic("late"), create_topic("later")
        await produce(kafka, other, [b"3"])
        await produce(kafka, late, [b"2"])
        assert await job.read(1) == [2]
        assert sorted(job.contexts[0].opened) == [f"{first}[0]", f"{late}[0]"]


async def test_compressed_records_are_read(kafka: str, create_topic: TopicCreator) -> None:
    """Batches are decompressed when their first record is taken."""
    topic = create_topic()
    async with producer(kafka, compression_type="gzip") as client:
        for number in range(1000):
            await client.send(topic, b"%d" % number, partition=0)
    async with running(bounded(kafka, topic)) as job:
        assert await job.read_all() == list(range(1000))


async def test_the_distance_to_the_end_is_a_metric(kafka: str, create_topic: TopicCreator) -> None:
    """Records that are in Kafka and were not handed out yet."""
    topic = create_topic()
    await produce(kafka, topic, numbers(1200))
    source = KafkaSource(bootstrap_servers=kafka, topics=topic, value_deserializer=json.loads)
    async with running(source) as job:
        batch = await job.next_batch()
        assert isinstance(batch, SplitBatch)
        metrics = {name[-1]: metric.read() for name, metric in job.contexts[0].metrics.walk()}
        assert metrics["pendingRecords"] == 1200 - len(batch.values)
