"""Puts records into real topics, by aiokafka itself."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient


@asynccontextmanager
async def producer(bootstrap: str, **options: object) -> AsyncIterator[AIOKafkaProducer]:
    """A started producer."""
    logging.getLogger("aiokafka").setLevel(logging.CRITICAL)
    client = AIOKafkaProducer(bootstrap_servers=bootstrap, **options)
    await client.start()
    try:
        yield client
    finally:
        await client.stop()


async def produce_in_transactions(
    bootstrap: str, topic: str, transactional_id: str, *, aborted: bool
) -> None:
    """Commits 0, 1, 2 to each of two partitions; an aborted 99 may follow in the second."""
    async with producer(bootstrap, transactional_id=transactional_id) as client:
        for partition in range(2):
            async with client.transaction():
                for number in range(3):
                    await client.send(topic, b"%d" % number, partition=partition)
        if aborted:
            await client.begin_transaction()
            await client.send(topic, b"99", partition=1)
            await client.abort_transaction()


async def produce(
    bootstrap: str,
    topic: str,
    values: Iterable[bytes | None],
    partition: int | None = 0,
    key: bytes | None = b"key",
) -> None:
    """Writes values in order and waits until they are there."""
    async with producer(bootstrap) as client:
        for value in values:
            await client.send(topic, value, key=key, partition=partition)
        await client.flush()


@asynccontextmanager
async def admin(bootstrap: str) -> AsyncIterator[AIOKafkaAdminClient]:
    """A started client for administration."""
    client = AIOKafkaAdminClient(bootstrap_servers=bootstrap)
    await client.start()
    try:
        yield client
    finally:
        await client.close()


async def delete_topic(bootstrap: str, topic: str) -> None:
    """Deletes a topic and waits until the broker that served it knows."""
    async with admin(bootstrap) as client, asyncio.timeout(20):
        await client.delete_topics([topic])
        while topic in await client.list_topics():
            pass


async def consume(bootstrap: str, topic: str, partitions: int = 1) -> list[object]:
    """All records of a topic, partition by partition, up to the present end."""
    places = [TopicPartition(topic, number) for number in range(partitions)]
    consumer = AIOKafkaConsumer(bootstrap_servers=bootstrap, auto_offset_reset="earliest")
    await consumer.start()
    try:
        consumer.assign(places)
        ends = await consumer.end_offsets(places)
        records: list[object] = []
        for place in places:
            while await consumer.position(place) < ends[place]:
                found = await consumer.getmany(place, timeout_ms=1000)
                records += found.get(place, [])
        return records
    finally:
        await consumer.stop()
