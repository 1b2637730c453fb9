"""A windowed count from and to a real Kafka, killed with -9 three times and moved about."""

from __future__ import annotations

import asyncio
import json
import re
import threading
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TypeAlias

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition

from tests.job_process import JobFolder
from tests.kafka_fixtures import TopicCreator

JOB = """
import json, sys
from datetime import timedelta
from connectors.datagen import RateLimiter
from connectors.kafka import KafkaOffsetsInitializer, KafkaSink, KafkaSource
from connectors.rate_limit import RateLimitedSource
from runtime import (
    OutputTag, StreamExecutionEnvironment, TumblingEventTimeWindows, WatermarkStrategy,
)

bootstrap, topic, output, rate, told = sys.argv[1:]
LATE = OutputTag("late")
env = StreamExecutionEnvironment.get_execution_environment()
source = KafkaSource(
    bootstrap_servers=bootstrap, topics=topic, bounded=KafkaOffsetsInitializer.latest(),
    value_deserializer=json.loads, group_id="counts",
)
watermarks = WatermarkStrategy.for_bounded_out_of_orderness(
    timedelta(milliseconds=500)
).with_timestamp_assigner(lambda record, _: record[1])
def tell(record):
    if record[2] % int(told) == 0:
        print("READ", record[2], flush=True)
    return record

counts = (
    env.from_source(
        RateLimitedSource(source, RateLimiter.per_second(float(rate))), watermarks, "clicks"
    ).uid("clicks")
    .map(tell).uid("progress")
    .key_by(0)
    .window(TumblingEventTimeWindows.of(timedelta(seconds=10)))
    .side_output_late_data(LATE)
    .count().uid("counts")
)
counts.map(lambda c: json.dumps([c.key, c.start, c.count])).sink_to(
    KafkaSink(bootstrap_servers=bootstrap, topic=output, value_serializer=str.encode)
).uid("output")
counts.get_side_output(LATE).map(lambda r: f"LATE {r}").print().uid("late")
env.execute("kafka counts")
"""

PARTITIONS = 4
WINDOW_MS = 10_000
COMPLETE = re.compile(r"checkpoint (\d+) is complete")
RESTORED = re.compile(r"starts from checkpoint (\d+)")
READ = re.compile(r"READ (\d+)")
PARTS = 100
"""The job says after each hundredth of the input how far it has come."""


@dataclass(frozen=True)
class Size:
    """How much is read, how fast, with how many keys."""

    records: int
    per_second: int
    keys: int


SIZES = [
    pytest.param(Size(120_000, 20_000, 50), id="short"),
    pytest.param(
        Size(1_000_000, 100_000, 1000),
        id="million",
        marks=[pytest.mark.chaos, pytest.mark.timeout(400)],
    ),
]


_Record: TypeAlias = tuple[str, int, int]


def _records(size: Size) -> list[_Record]:
    """One record a millisecond, numbered; each partition is out of order by at most 400 ms."""
    start = 1_700_000_000_000
    return [
        (f"key-{number * 7919 % size.keys:04d}", start + number - number * 31 % 400, number)
        for number in range(size.records)
    ]


def _reference(records: Iterable[_Record]) -> Counter[tuple[str, int]]:
    return Counter((key, time - time % WINDOW_MS) for key, time, _ in records)


async def _produce(bootstrap: str, topic: str, records: list[_Record]) -> None:
    producer = AIOKafkaProducer(bootstrap_servers=bootstrap, max_batch_size=1 << 17)
    await producer.start()
    for partition in range(PARTITIONS):
        batch = producer.create_batch()
        for record in records[partition::PARTITIONS]:
            value = json.dumps(record).encode()
            while batch.append(key=None, value=value, timestamp=record[1]) is None:
                await producer.send_batch(batch, topic, partition=partition)
                batch = producer.create_batch()
        await producer.send_batch(batch, topic, partition=partition)
    await producer.stop()


async def _read_all(bootstrap: str, topic: str) -> list[tuple[str, int, int]]:
    consumer = AIOKafkaConsumer(bootstrap_servers=bootstrap, auto_offset_reset="earliest")
    await consumer.start()
    place = TopicPartition(topic, 0)
    consumer.assign([place])
    end = (await consumer.end_offsets([place]))[place]
    results: list[tuple[str, int, int]] = []
    while await consumer.position(place) < end:
        for messages in (await consumer.getmany(timeout_ms=500)).values():
            results += [tuple(json.loads(message.value)) for message in messages]
    await consumer.stop()
    return results


class _Run:
    """One start of the job, with its log followed line by line."""

    def __init__(self, folder: JobFolder, arguments: list[str]) -> None:
        self.process = folder.start(*arguments)
        self.lines: list[str] = []
        self.out: list[str] = []
        self._changed = threading.Condition()
        self._readers = [
            threading.Thread(target=self._follow, args=(self.process.stderr, self.lines)),
            threading.Thread(target=self._follow, args=(self.process.stdout, self.out)),
        ]
        for reader in self._readers:
            reader.start()

    def _follow(self, stream: IO[str] | None, lines: list[str]) -> None:
        assert stream is not None
        with stream:
            for line in stream:
                with self._changed:
                    lines.append(line)
                    self._changed.notify_all()
        with self._changed:
            self._changed.notify_all()

    def completed(self) -> list[int]:
        """The checkpoints that the log names as complete."""
        return [int(match[1]) for line in self.lines if (match := COMPLETE.search(line))]

    def read(self) -> int:
        """The highest number of a record that the job has told of."""
        return max((int(match[1]) for line in self.out if (match := READ.search(line))), default=0)

    def kill_at(self, record: int) -> int:
        """Kills with -9 once a checkpoint is complete and this record read; the newest id."""
        with self._changed:
            done = self._changed.wait_for(
                lambda: (
                    (self.read() >= record and bool(self.completed()))
                    or self.process.poll() is not None
                ),
                60,
            )
        assert done, "".join(self.lines[-20:])
        assert self.process.poll() is None, "".join(self.lines[-20:])
        self.process.kill()
        self.end()
        return self.completed()[-1]

    def end(self) -> int:
        """Waits for the end of the process and of its output."""
        code = self.process.wait(timeout=120)
        for reader in self._readers:
            reader.join(10)
        return code


@pytest.mark.parametrize("size", SIZES)
def test_kills_lose_nothing_and_double_only_identical_results(
    size: Size, kafka: str, create_topic: TopicCreator, tmp_path: Path
) -> None:
    """Killed at 20, 50 and 80 % and restarted at parallelism 2, 3, 1 the counts are exact."""
    topic = create_topic("clicks", partitions=PARTITIONS, config={"retention.ms": "-1"})
    output = create_topic("counts", partitions=1)
    records = _records(size)
    asyncio.run(_produce(kafka, topic, records))
    folder = JobFolder(tmp_path)
    folder.write(JOB)
    seconds = size.records / size.per_second
    each_ms = int(seconds * 1000 / 10)
    told = str(size.records // PARTS)
    job_arguments = ["--", kafka, topic, output, str(size.per_second), told]
    options = ["--checkpoint-interval", f"{each_ms}ms"]

    newest, restored, late, killed_at = 0, [], [], []
    for parallelism, part in ((1, 0.2), (2, 0.5), (3, 0.8), (1, None)):
        source = ["--from", "latest"] if newest else []
        run = _Run(folder, [*options, *source, "-p", str(parallelism), *job_arguments])
        if part is not None:
            killed_after = run.kill_at(int(size.records * part))
            killed_at.append(run.read() / size.records)
        else:
            assert run.end() == 0, "".join(run.lines[-30:])
        late += [line for line in run.out if "LATE" in line]
        if newest:
            restored.append(next(int(m[1]) for line in run.lines if (m := RESTORED.search(line))))
            assert restored[-1] >= newest
        newest = killed_after

    results = asyncio.run(_read_all(kafka, output))
    distinct = {(key, start): count for key, start, count in results}
    assert killed_at == pytest.approx([0.2, 0.5, 0.8], abs=0.1)
    assert late == []
    assert restored == sorted(set(restored))
    assert len(set(results)) == len(distinct), "a repeated result differs from its first"
    assert distinct == dict(_reference(records))
