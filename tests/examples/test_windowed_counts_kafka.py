"""The windowed counts from one topic to another of a real broker."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer

from examples.windowed_counts import Click
from tests.kafka_fixtures import TopicCreator, create_topic_at

ROOT = Path(__file__).resolve().parents[2]
CLICKS = [Click(page=f"page-{number % 3}", ts=10 * number) for number in range(3_001)]
LAST_END_MS = 30_000
"""The end of the last window that ends."""
DEADLINE_SECONDS = 60


async def produce(broker: str, topic: str) -> None:
    """Writes the clicks and one that is late enough to end all of their windows."""
    async with AIOKafkaProducer(bootstrap_servers=broker) as producer:
        for click in [*CLICKS, {"page": "end", "ts": 33_000}]:
            await producer.send(topic, json.dumps(click).encode())
        await producer.flush()


async def consume(broker: str, topic: str, results: int) -> list[dict[str, object]]:
    """Reads as many results."""
    counts: list[dict[str, object]] = []
    async with AIOKafkaConsumer(
        topic, bootstrap_servers=broker, auto_offset_reset="earliest"
    ) as consumer:
        async with asyncio.timeout(DEADLINE_SECONDS):
            while len(counts) < results:
                counts.append(json.loads((await consumer.getone()).value))
    return counts


def test_counts_of_a_topic_are_written_to_another(kafka: str, create_topic: TopicCreator) -> None:
    """Every ended window of every page comes out once; the job ends when it is told to."""
    topic = create_topic("clicks")
    create_topic_at(kafka, f"{topic}-counts", 1, {})
    asyncio.run(produce(kafka, topic))
    command = [sys.executable, "-m", "runtime", "examples/windowed_counts.py", "--quiet", "--"]
    command += ["--bootstrap-servers", kafka, "--topic", topic]
    process = subprocess.Popen(command, cwd=ROOT, stderr=subprocess.PIPE, text=True)
    try:
        counts = asyncio.run(consume(kafka, f"{topic}-counts", 9))
    finally:
        process.send_signal(signal.SIGTERM)
        _, errors = process.communicate(timeout=DEADLINE_SECONDS)
    found = {(each["key"], each["start"]): each["count"] for each in counts}
    assert found == Counter(
        (click["page"], click["ts"] // 10_000 * 10_000)
        for click in CLICKS
        if click["ts"] < LAST_END_MS
    )
    assert process.returncode == 128 + signal.SIGTERM, errors
