"""A bounded source over a topic that a real broker has compacted."""

from __future__ import annotations

import asyncio
from pathlib import Path

from connectors.kafka import KafkaRecord
from tests.connectors.kafka.bounded_job import values_read
from tests.connectors.kafka.produced import consume, producer
from tests.connectors.kafka.stand_in_context import bounded, running
from tests.kafka_fixtures import BrokerMaker, create_topic_at

CONFIG = {
    "cleanup.policy": "compact",
    "segment.ms": "1000",
    "max.compaction.lag.ms": "100",
    "min.cleanable.dirty.ratio": "0.01",
}
FIRST_MS = 1_700_000_000_000
WRITTEN = [
    (b"a", b"0"),
    (b"b", b"1"),
    (b"a", b"2"),
    (b"gone", b"3"),
    (b"a", b"4"),
    (b"c", b"5"),
    (b"c", b"6"),
    (b"gone", None),
]
LEFT = [(1, b"b", b"1"), (4, b"a", b"4"), (6, b"c", b"6"), (7, b"gone", None)]
"""Offset, key and value of the last record of each key, a tombstone among them."""


async def write_with_gaps(bootstrap: str, topic: str) -> None:
    """Writes what compaction leaves gaps in: at the start, in the middle, and at the end.

    The active segment is never compacted, so each record rolls a new one by its time, and behind
    the last there is only the marker of a transaction, whose aborted record compaction removes.
    """
    async with producer(bootstrap) as client:
        for number, (key, value) in enumerate(WRITTEN):
            time_ms = FIRST_MS + number * 10_000
            await client.send_and_wait(topic, value, key=key, timestamp_ms=time_ms)
    async with producer(bootstrap, transactional_id=topic) as client:
        await client.begin_transaction()
        time_ms = FIRST_MS + len(WRITTEN) * 10_000
        await client.send_and_wait(topic, b"aborted", key=b"d", timestamp_ms=time_ms)
        await client.abort_transaction()


async def test_gaps_of_compaction_do_not_hide_the_end(
    local_broker: BrokerMaker, tmp_path: Path
) -> None:
    """Exactly the records that are left are read, and source and job end by themselves."""
    broker = local_broker({"log.cleaner.backoff.ms": "200"})
    await asyncio.to_thread(broker.start)
    kafka, topic = broker.bootstrap, "compacted"
    create_topic_at(kafka, topic, config=CONFIG)
    await write_with_gaps(kafka, topic)
    async with asyncio.timeout(60):
        # A plain consumer shows aborted records as well, until they are compacted away.
        while [(each.offset, each.key, each.value) for each in await consume(kafka, topic)] != LEFT:
            pass
    async with running(bounded(kafka, topic, deserializer=lambda record: record)) as job:
        records = await job.read_all()
    assert all(isinstance(each, KafkaRecord) for each in records)
    assert [(each.offset, each.key, each.value) for each in records] == LEFT
    printed = await asyncio.to_thread(values_read, tmp_path, kafka, topic)
    assert printed == ["1", "4", "6", "None"]
