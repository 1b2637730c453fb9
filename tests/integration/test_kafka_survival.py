"""A windowed count from and to Kafka, killed three times and restarted at other parallelism."""

from __future__ import annotations

import asyncio
import json
import re
import time
from collections import Counter
from pathlib import Path

import pytest

from tests.connectors.kafka.produced import consume, producer
from tests.job_process import JobFolder
from tests.kafka_fixtures import TopicCreator

RECORDS = 1_000_000
PARTITIONS = 4
KEYS = 100
RATE = 100_000

JOB = """
import json, sys, time
from datetime import timedelta
from connectors.kafka import KafkaOffsetsInitializer, KafkaSink, KafkaSource
from runtime import (
    MapFunction, OutputTag, StreamExecutionEnvironment, TumblingEventTimeWindows,
    WatermarkStrategy,
)

kafka, source, target, rate = sys.argv[1:]

class Limit(MapFunction):
    # Each subtask passes its share of the rate.
    def open(self, context):
        self.rate = float(rate) / context.get_number_of_parallel_subtasks()
        self.count, self.start = 0, time.monotonic()
    def map(self, value):
        self.count += 1
        if self.count % 200 == 0:
            ahead = self.count / self.rate - (time.monotonic() - self.start)
            if ahead > 0:
                time.sleep(ahead)
        return value

env = StreamExecutionEnvironment.get_execution_environment()
env.enable_checkpointing(1000)
watermarks = WatermarkStrategy.for_bounded_out_of_orderness(
    timedelta(seconds=2)
).with_timestamp_assigner(lambda click, _: click["ts"])
late = OutputTag("late")
counts = (
    env.from_source(
        KafkaSource(bootstrap_servers=kafka, topics=source, value_deserializer=json.loads,
                    bounded=KafkaOffsetsInitializer.latest()),
        watermarks, "clicks",
    ).uid("clicks")
    .map(Limit()).uid("limit")
    .key_by(lambda click: click["page"])
    .window(TumblingEventTimeWindows.of(timedelta(seconds=10)))
    .side_output_late_data(late)
    .count().uid("counts")
)
counts.get_side_output(late).map(lambda click: f"late {click}").uid("late").print().uid("lates")
counts.map(lambda each: json.dumps([each.key, each.start, each.count])).uid("lines").sink_to(
    KafkaSink(bootstrap_servers=kafka, topic=target, value_serializer=str.encode)
).uid("out")
env.execute("survivor")
"""


async def fill(kafka: str, topic: str) -> Counter[tuple[str, int]]:
    """Writes the clicks, up to two seconds out of order; returns the right counts."""
    right: Counter[tuple[str, int]] = Counter()
    async with producer(kafka, max_batch_size=1 << 17) as client:
        batches = [client.create_batch() for _ in range(PARTITIONS)]
        for number in range(RECORDS):
            page, ts = f"page-{number * 7919 % KEYS}", number // 10 + number * 31 % 1900
            right[page, ts // 10_000 * 10_000] += 1
            value = json.dumps({"page": page, "ts": ts}).encode()
            partition = number % PARTITIONS
            while batches[partition].append(key=None, value=value, timestamp=ts) is None:
                await client.send_batch(batches[partition], topic, partition=partition)
                batches[partition] = client.create_batch()
        for partition, batch in enumerate(batches):
            await client.send_batch(batch, topic, partition=partition)
        await client.flush()
    return right


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_counts_are_right_after_three_kills(
    kafka: str, create_topic: TopicCreator, tmp_path: Path
) -> None:
    """Results without doubles equal the reference, doubles are identical, nothing counts late."""
    source, target = create_topic(partitions=PARTITIONS), create_topic()
    right = asyncio.run(fill(kafka, source))
    folder = JobFolder(tmp_path)
    folder.write(JOB)
    restored = []
    for parallelism, share in ((1, 0.2), (2, 0.3), (3, 0.3), (1, None)):
        options = ["--parallelism", str(parallelism), "--from", "latest"]
        process = folder.start(*options, "--", kafka, source, target, str(RATE))
        assert process.stderr is not None
        begun = time.monotonic()
        enough = None if share is None else begun + share * RECORDS / RATE
        log = []
        for line in process.stderr:
            log.append(line)
            print(line, end="")
            if enough and "is complete" in line and time.monotonic() > enough:
                process.kill()
                break
        out, _ = process.communicate()
        assert "late" not in out
        restored += re.findall(r"(?:restored|from) checkpoint (\d+)", "".join(log))
        assert share is not None or process.returncode == 0
    assert len(restored) >= 3
    written = [json.loads(record.value) for record in asyncio.run(consume(kafka, target))]
    found: dict[tuple[str, int], set[int]] = {}
    for page, start, count in written:
        found.setdefault((page, start), set()).add(count)
    assert found == {window: {count} for window, count in right.items()}
