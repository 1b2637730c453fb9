"""Whole jobs from and to a real Kafka, in this process."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from datetime import timedelta
from typing import Any

import pytest

from connectors.kafka import (
    KafkaOffsetsInitializer,
    KafkaRecordSerializationSchema,
    KafkaSink,
    KafkaSource,
)
from runtime import (
    CollectSink,
    JobExecutionError,
    OutputTag,
    StreamExecutionEnvironment,
    TumblingEventTimeWindows,
    WatermarkStrategy,
)
from tests.connectors.kafka.produced import consume, produce, producer
from tests.kafka_fixtures import TopicCreator

NO_WATERMARKS: WatermarkStrategy[Any] = WatermarkStrategy.no_watermarks()


def environment(parallelism: int = 1) -> StreamExecutionEnvironment:
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(parallelism)
    return env


def bounded(kafka: str, topic: str, **arguments: Any) -> KafkaSource[Any]:
    if "deserializer" not in arguments:
        arguments.setdefault("value_deserializer", json.loads)
    latest = KafkaOffsetsInitializer.latest()
    return KafkaSource(bootstrap_servers=kafka, topics=topic, bounded=latest, **arguments)


class Results:
    """Collects what a job puts out, for a test that waits in the same loop."""

    def __init__(self) -> None:
        self.values: list[Any] = []
        self._news = asyncio.Event()

    def sink(self) -> CollectSink[Any]:
        return CollectSink(self._take)

    def _take(self, value: Any) -> None:
        self.values.append(value)
        self._news.set()

    async def wait_for(self, count: int, seconds: float = 20) -> list[Any]:
        async with asyncio.timeout(seconds):
            while len(self.values) < count:
                self._news.clear()
                await self._news.wait()
        return self.values


@pytest.mark.parametrize("parallelism", [1, 3])
async def test_a_bounded_job_reads_everything_and_ends(
    kafka: str, create_topic: TopicCreator, parallelism: int
) -> None:
    """Windowed counts from one topic to another, whatever the parallelism."""
    source, target = create_topic(partitions=4), create_topic()
    for partition in range(4):
        clicks = [{"page": f"p{n % 3}", "ts": n * 100} for n in range(500)]
        await produce(kafka, source, [json.dumps(click).encode() for click in clicks], partition)
    env = environment(parallelism)
    watermarks = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(
        lambda click, _: click["ts"]
    )
    (
        env.from_source(bounded(kafka, source), watermarks, "clicks")
        .key_by(lambda click: click["page"])
        .window(TumblingEventTimeWindows.of(timedelta(seconds=10)))
        .count()
        .sink_to(
            KafkaSink(
                bootstrap_servers=kafka,
                topic=target,
                value_serializer=lambda each: json.dumps(
                    [each.key, each.start, each.count]
                ).encode(),
            )
        )
    )
    await env.execute_async("counts")
    written = [json.loads(record.value) for record in await consume(kafka, target)]
    expected = Counter((f"p{n % 3}", n * 100 // 10_000 * 10_000) for n in range(500))
    assert sorted(written) == sorted([p, s, 4 * count] for (p, s), count in expected.items())


async def test_none_and_empty_pass_through_a_job(kafka: str, create_topic: TopicCreator) -> None:
    """Keys, values and header values; None is a key of its own; nothing is dropped."""
    source, target = create_topic(), create_topic()
    records: list[tuple[bytes | None, bytes | None]] = [
        (None, b"x"),
        (b"a", None),
        (b"", b""),
        (b"a", b""),
    ]
    headers = [("h", None), ("e", b"")]
    async with producer(kafka) as client:
        for key, value in records:
            await client.send(source, value, key=key, headers=headers)
    env = environment()
    whole = bounded(kafka, source, deserializer=lambda record: record)
    stream = env.from_source(whole, NO_WATERMARKS, "in")
    schema = (
        KafkaRecordSerializationSchema.builder()
        .set_topic(target)
        .set_key_serialization_schema(lambda record: record.key)
        .set_value_serialization_schema(lambda record: record.value)
        .set_header_provider(lambda record: record.headers)
        .build()
    )
    stream.sink_to(KafkaSink(bootstrap_servers=kafka, record_serializer=schema))
    counts: CollectSink[Any] = CollectSink()
    (
        stream.map(lambda record: (record.key, 1))
        .key_by(lambda pair: pair[0])
        .reduce(lambda one, other: (one[0], one[1] + other[1]))
        .sink_to(counts)
    )
    await env.execute_async("pass through")
    written = await consume(kafka, target)
    assert [(record.key, record.value) for record in written] == records
    assert {record.headers for record in written} == {tuple(headers)}
    assert counts.results == [(None, 1), (b"a", 1), (b"", 1), (b"a", 2)]


async def test_a_tombstone_reaches_user_code_as_none_and_is_written_as_one(
    kafka: str, create_topic: TopicCreator
) -> None:
    """Also with deserializer and serializer of values only."""
    source, target = create_topic(), create_topic()
    await produce(kafka, source, [b"1", None, b"3"])
    env = environment()
    seen: CollectSink[Any] = CollectSink()
    stream = env.from_source(bounded(kafka, source), NO_WATERMARKS, "in")
    stream.sink_to(seen)
    stream.sink_to(
        KafkaSink(
            bootstrap_servers=kafka,
            topic=target,
            value_serializer=lambda value: json.dumps(value).encode(),
        )
    )
    await env.execute_async("tombstones")
    assert seen.results == [1, None, 3]
    assert [record.value for record in await consume(kafka, target)] == [b"1", None, b"3"]


async def test_an_unparsable_record_fails_the_job_by_name(
    kafka: str, create_topic: TopicCreator
) -> None:
    """Or goes to its side output, where the job has one."""
    topic = create_topic()
    await produce(kafka, topic, [b"1", b"{oops", b"3"])
    env = environment()
    env.from_source(bounded(kafka, topic), NO_WATERMARKS, "in").sink_to(CollectSink())
    with pytest.raises(JobExecutionError, match=rf"{topic}\[0\]@1"):
        await env.execute_async("fails")
    bad = OutputTag[Any]("bad")
    env = environment()
    lenient = bounded(kafka, topic, deserialization_errors=bad)
    stream = env.from_source(lenient, NO_WATERMARKS, "in")
    good: CollectSink[Any] = CollectSink()
    side: CollectSink[Any] = CollectSink()
    stream.sink_to(good)
    stream.get_side_output(bad).sink_to(side)
    await env.execute_async("goes on")
    assert good.results == [1, 3]
    [(*place, _)] = side.results
    assert place == [topic, 0, 1, b"key", b"{oops"]


async def test_a_user_error_names_the_record(kafka: str, create_topic: TopicCreator) -> None:
    """With topic, partition and offset."""
    topic = create_topic()
    await produce(kafka, topic, [b'{"ts": 1}', b"{}", b'{"ts": 3}'])
    env = environment()
    env.from_source(bounded(kafka, topic), NO_WATERMARKS, "in").map(
        lambda click: click["ts"]
    ).sink_to(CollectSink())
    with pytest.raises(JobExecutionError, match=rf"{topic}\[0\]@1.*KeyError"):
        await env.execute_async("fails")


@pytest.mark.parametrize("idleness", [True, False])
async def test_partitions_without_data_hold_windows_back_unless_idle(
    kafka: str, create_topic: TopicCreator, idleness: bool
) -> None:
    """With idleness windows fire, and a late starter's records count where they are in time."""
    topic = create_topic(partitions=3)
    source = KafkaSource(bootstrap_servers=kafka, topics=topic, value_deserializer=json.loads)
    watermarks = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(
        lambda seconds, _: seconds * 1000
    )
    if idleness:
        watermarks = watermarks.with_idleness(timedelta(seconds=1))
    late = OutputTag[int]("late")
    env = environment()
    read, counts, dropped = Results(), Results(), Results()
    numbers = env.from_source(source, watermarks, "numbers")
    numbers.sink_to(read.sink())
    windows = (
        numbers.key_by(lambda _: "all")
        .window(TumblingEventTimeWindows.of(timedelta(seconds=10)))
        .side_output_late_data(late)
        .count()
    )
    windows.sink_to(counts.sink())
    windows.get_side_output(late).sink_to(dropped.sink())
    client = env.execute_async("idle partitions")
    await produce(kafka, topic, [b"%d" % second for second in range(61)], 0)
    await read.wait_for(61)
    if idleness:
        fired = await counts.wait_for(6, seconds=5)
        assert [(each.start, each.count) for each in fired] == [
            (start, 10) for start in range(0, 60_000, 10_000)
        ]
        await produce(kafka, topic, [b"61", b"5"], 1)
        assert await dropped.wait_for(1) == [5]
        assert len(counts.values) == 6
    else:
        await produce(kafka, topic, [b"61", b"5"], 1)
        await read.wait_for(63)
    await client.stop()
    if not idleness:
        assert counts.values == []
        assert dropped.values == []
