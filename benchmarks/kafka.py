"""`python -m benchmarks.kafka`: K1, the windowed count from and to a real Kafka.

The hand-written loop and the job read the same topic of JSON records and write their results to
a topic each, with the same acknowledgements. Both run in this process, in turn; the ratio is of
CPU time. A broker is started for the run unless KAFKA_BOOTSTRAP_SERVERS names one.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import uvloop
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewTopic

from benchmarks.data import DISORDER_MS, records
from benchmarks.plain import SIZE_MS
from connectors.kafka import (
    KafkaOffsetsInitializer,
    KafkaRecordSerializationSchema,
    KafkaSink,
    KafkaSource,
)
from connectors.kafka.local import LocalBroker
from runtime import StreamExecutionEnvironment, TumblingEventTimeWindows, WatermarkStrategy

ACKS = "all"
INPUT, LOOP_OUTPUT, JOB_OUTPUT = "k1-input", "k1-loop", "k1-job"


@contextmanager
def broker() -> Iterator[str]:
    """The address of a broker for the length of the run."""
    given = os.environ.get("KAFKA_BOOTSTRAP_SERVERS")
    if given:
        yield given
        return
    with tempfile.TemporaryDirectory() as folder, LocalBroker(Path(folder)) as local:
        yield local.bootstrap


async def fill(bootstrap: str, count: int, partitions: int) -> None:
    """Makes the topics and writes the input, partition by partition in order."""
    admin = AIOKafkaAdminClient(bootstrap_servers=bootstrap)
    await admin.start()
    new = [NewTopic(INPUT, partitions, 1), NewTopic(LOOP_OUTPUT, 1, 1), NewTopic(JOB_OUTPUT, 1, 1)]
    await admin.create_topics(new)
    await admin.close()
    producer = AIOKafkaProducer(bootstrap_servers=bootstrap, max_batch_size=1 << 17)
    await producer.start()
    batches = [producer.create_batch() for _ in range(partitions)]
    for number, (key, timestamp, value) in enumerate(records(count)):
        partition = number % partitions
        data = json.dumps({"key": key, "ts": timestamp, "value": value}).encode()
        while batches[partition].append(key=None, value=data, timestamp=timestamp) is None:
            await producer.send_batch(batches[partition], INPUT, partition=partition)
            batches[partition] = producer.create_batch()
    for partition, batch in enumerate(batches):
        await producer.send_batch(batch, INPUT, partition=partition)
    await producer.stop()


async def loop(bootstrap: str, partitions: int) -> int:
    """What a good Python programmer writes: getmany, json.loads, a dict of windows, send."""
    places = [TopicPartition(INPUT, number) for number in range(partitions)]
    consumer = AIOKafkaConsumer(bootstrap_servers=bootstrap, enable_auto_commit=False)
    producer = AIOKafkaProducer(bootstrap_servers=bootstrap, acks=ACKS, linger_ms=5)
    await consumer.start()
    await producer.start()
    consumer.assign(places)
    await consumer.seek_to_beginning()
    ends = await consumer.end_offsets(places)
    windows: dict[int, dict[str, int]] = {}
    highest = -1
    due = SIZE_MS
    sent: list[asyncio.Future[Any]] = []

    async def fire(start: int) -> None:
        for key, count in windows.pop(start, {}).items():
            result = {"key": key, "start": start, "end": start + SIZE_MS, "count": count}
            sent.append(
                await producer.send(LOOP_OUTPUT, json.dumps(result).encode(), key=key.encode())
            )

    left = set(places)
    while left:
        for place, messages in (
            await consumer.getmany(timeout_ms=1000, max_records=10_000)
        ).items():
            for message in messages:
                record = json.loads(message.value)
                timestamp = record["ts"]
                start = timestamp - timestamp % SIZE_MS
                window = windows.get(start)
                if window is None:
                    window = windows[start] = {}
                key = record["key"]
                window[key] = window.get(key, 0) + 1
                if timestamp > highest:
                    highest = timestamp
                    if highest - DISORDER_MS - 1 >= due - 1:
                        await fire(due - SIZE_MS)
                        due += SIZE_MS
            if messages[-1].offset + 1 >= ends[place]:
                left.discard(place)
    for start in sorted(windows):
        await fire(start)
    await producer.flush()
    results = len(sent)
    await consumer.stop()
    await producer.stop()
    return results


def job(bootstrap: str) -> int:
    """The same as a job on default settings."""
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)
    source: KafkaSource[dict[str, Any]] = KafkaSource(
        bootstrap_servers=bootstrap,
        topics=INPUT,
        bounded=KafkaOffsetsInitializer.latest(),
        value_deserializer=json.loads,
    )
    schema = (
        KafkaRecordSerializationSchema.builder()
        .set_topic(JOB_OUTPUT)
        .set_key_serialization_schema(lambda count: count.key.encode())
        .set_value_serialization_schema(lambda count: json.dumps(count._asdict()).encode())
        .build()
    )
    sink: KafkaSink[Any] = KafkaSink(bootstrap_servers=bootstrap, record_serializer=schema)
    watermarks = WatermarkStrategy.for_bounded_out_of_orderness(
        timedelta(milliseconds=DISORDER_MS)
    ).with_timestamp_assigner(lambda record, _: record["ts"])
    (
        env.from_source(source, watermarks, "clicks")
        .key_by("key")
        .window(TumblingEventTimeWindows.of(timedelta(milliseconds=SIZE_MS)))
        .count()
        .sink_to(sink)
    )
    return env.execute("k1").statistics.records_out


def main() -> int:
    """Prints the ratio of each repeat and the median."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.kafka", description=__doc__)
    parser.add_argument("--records", type=int, default=1_000_000)
    parser.add_argument("--partitions", type=int, default=1)
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    with broker() as bootstrap:
        uvloop.run(fill(bootstrap, options.records, options.partitions))
        ratios = []
        for repeat in range(options.repeats + 1):
            gc.collect()
            began, wall = time.process_time(), time.perf_counter()
            by_hand = uvloop.run(loop(bootstrap, options.partitions))
            loop_cpu, loop_wall = time.process_time() - began, time.perf_counter() - wall
            gc.collect()
            began, wall = time.process_time(), time.perf_counter()
            ours = job(bootstrap)
            job_cpu, job_wall = time.process_time() - began, time.perf_counter() - wall
            if options.partitions == 1 and by_hand != ours:
                raise SystemExit(f"the loop gave {by_hand} results, the job {ours}")
            print(
                f"loop {loop_cpu:.2f} s CPU {loop_wall:.2f} s, job {job_cpu:.2f} s CPU"
                f" {job_wall:.2f} s, results {ours}: ratio by CPU {loop_cpu / job_cpu:.2f}",
                flush=True,
            )
            if repeat:
                ratios.append(loop_cpu / job_cpu)
    print(
        f"K1, {options.partitions} partition(s):"
        f" ratio by CPU {statistics.median(ratios):.2f} (bar 0.5)"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
