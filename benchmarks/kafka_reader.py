"""The Kafka reader alone against a hand-written aiokafka loop, in records per CPU second.

Both read the same topic of JSON records and parse each: the loop by ``getmany`` and
``json.loads``, the reader by ``poll`` of batches of 1,024. Usage::

    python -m benchmarks.kafka_reader --bootstrap-servers localhost:19092 [--records 300000]
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import statistics
import time
import uuid
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

import uvloop
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewTopic

from connectors.kafka import KafkaOffsetsInitializer, KafkaSource
from operators.metrics import MetricGroup
from operators.source import InputStatus, SourceReader, SplitBatch
from runtime.clock import SystemClock
from statebackends.clock import Clock
from statebackends.operator_state import OperatorStateBackend

BATCH = 1_024


class Context:
    """A reader's and an enumerator's context in one."""

    def __init__(self) -> None:
        self.subtask_index = 0
        self.parallelism = 1
        self.clock: Clock = SystemClock()
        self.metrics = MetricGroup(self.clock)
        self.operator_state = OperatorStateBackend()
        self.operator_name = "source"
        self.restored = False
        self.woken = asyncio.Event()
        self.reader: SourceReader[Any] | None = None

    def available(self) -> None:
        self.woken.set()

    def split_opened(self, split: str) -> None: ...

    def split_closed(self, split: str) -> None: ...

    def fail(self, error: BaseException) -> None:
        raise error

    def assign_splits(self, subtask_index: int, splits: Sequence[object]) -> None:
        assert self.reader is not None
        self.reader.add_splits(splits)

    def signal_no_more_splits(self) -> None:
        assert self.reader is not None
        self.reader.no_more_splits()


async def fill(bootstrap: str, topic: str, records: int, partitions: int) -> None:
    admin = AIOKafkaAdminClient(bootstrap_servers=bootstrap)
    await admin.start()
    await admin.create_topics([NewTopic(topic, partitions, 1)])
    await admin.close()
    producer = AIOKafkaProducer(bootstrap_servers=bootstrap, max_batch_size=1 << 17)
    await producer.start()
    for partition in range(partitions):
        batch = producer.create_batch()
        for number in range(records // partitions):
            page, time_ms = f"page-{number % 1000}", number // 10
            value = json.dumps({"page": page, "user": number % 777, "ts": time_ms}).encode()
            while batch.append(key=None, value=value, timestamp=time_ms) is None:
                await producer.send_batch(batch, topic, partition=partition)
                batch = producer.create_batch()
        await producer.send_batch(batch, topic, partition=partition)
    await producer.stop()


async def read_by_loop(bootstrap: str, topic: str, partitions: int, records: int) -> int:
    consumer = AIOKafkaConsumer(bootstrap_servers=bootstrap, auto_offset_reset="earliest")
    await consumer.start()
    consumer.assign([TopicPartition(topic, number) for number in range(partitions)])
    count = 0
    while count < records:
        for found in (await consumer.getmany(timeout_ms=1000, max_records=10_000)).values():
            count += len([json.loads(record.value) for record in found])
    await consumer.stop()
    return count


async def read_by_reader(bootstrap: str, topic: str) -> int:
    source: KafkaSource[Any] = KafkaSource(
        bootstrap_servers=bootstrap,
        topics=topic,
        value_deserializer=json.loads,
        bounded=KafkaOffsetsInitializer.latest(),
    )
    context = Context()
    reader = context.reader = source.create_reader(context)
    enumerator = source.create_enumerator(context)
    reader.initialize_state()
    await reader.start()
    await enumerator.start()
    count = 0
    while True:
        context.woken.clear()
        polled = reader.poll(BATCH)
        if isinstance(polled, SplitBatch):
            count += len(polled.values)
            await asyncio.sleep(0)
        elif polled is InputStatus.END_OF_INPUT:
            break
        else:
            await context.woken.wait()
    await reader.close()
    await enumerator.close()
    return count


def measure(
    run: Callable[..., Coroutine[Any, Any, int]], *arguments: object
) -> tuple[float, float]:
    """Records per second of CPU and of wall time."""
    gc.collect()
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        wall, cpu = time.perf_counter(), time.process_time()
        count = runner.run(run(*arguments))
        cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
    return count / cpu, count / wall


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bootstrap-servers", required=True)
    parser.add_argument("--records", type=int, default=300_000)
    parser.add_argument("--partitions", type=int, default=1)
    parser.add_argument("--runs", type=int, default=5)
    given = parser.parse_args()
    topic = f"benchmark-{uuid.uuid4().hex[:8]}"
    address, partitions = given.bootstrap_servers, given.partitions
    asyncio.run(fill(address, topic, given.records, partitions))
    records = given.records // partitions * partitions
    results: dict[str, list[tuple[float, float]]] = {"loop": [], "reader": []}
    for _ in range(given.runs):
        results["loop"].append(measure(read_by_loop, address, topic, partitions, records))
        results["reader"].append(measure(read_by_reader, address, topic))
    medians = {}
    for name, figures in results.items():
        cpu, wall = (statistics.median(column) for column in zip(*figures, strict=True))
        medians[name] = cpu
        print(f"{name:8} {cpu:12,.0f} records/CPU s {wall:12,.0f} records/s")
    print(f"reader / loop = {medians['reader'] / medians['loop']:.2f} (medians, CPU)")


if __name__ == "__main__":
    main()
