"""What a fetch makes of a broker's answers, with a stand-in for the broker."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from connectors.kafka.errors import KafkaConnectorError, KafkaRecordError, KafkaTopicError
from connectors.kafka.fetcher import DELETED_TOPIC_SECONDS, PartitionFetcher
from connectors.kafka.options import source_options
from connectors.kafka.split import PartitionSplit
from connectors.kafka.topic_partition import KafkaTopicPartition
from runtime.clock import SimulatedClock
from tests.connectors.kafka.stand_in_broker import batch_bytes

Log = dict[int, list[tuple[int, bytes]]]
"""What the broker has: partition -> encoded batches with their first offset."""


class StandInCluster:
    """One broker with one topic, whose answers are made by `answer`."""

    def __init__(self, answer: Callable[[int, int], tuple[Any, ...]], partitions: int = 1) -> None:
        leader = SimpleNamespace(leader=1)
        known = {"t": dict.fromkeys(range(partitions), leader)}
        self.client = SimpleNamespace(
            cluster=SimpleNamespace(_partitions=known),
            send=self._send,
            force_metadata_update=self._update,
            add_topic=lambda topic: None,
        )
        self.clock = SimulatedClock()
        self.address = "stand-in:1"
        self.isolation_level = 1
        self.requests: list[list[int]] = []
        self.existing: dict[str, set[int]] = {"t": set(range(partitions))}
        self._answer = answer

    async def _send(self, broker: int, request: Any) -> Any:
        await asyncio.sleep(0)
        [(topic, asked)] = request.topics
        self.requests.append([number for number, _, _ in asked])
        answers = [(number, *self._answer(number, offset)) for number, offset, _ in asked]
        return SimpleNamespace(topics=[(topic, answers)])

    def _update(self) -> asyncio.Future[bool]:
        updated: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        updated.set_result(True)
        return updated

    async def partitions(self, topics: list[str]) -> dict[str, set[int]]:
        return self.existing


def found(data: bytes, end: int, aborted: list[tuple[int, int]] | None = None) -> tuple[Any, ...]:
    """An answer without an error, as protocol version 11 has it."""
    return (0, end, end, 0, aborted, -1, data)


class Fetching:
    """A fetcher at work on some splits."""

    def __init__(self, cluster: StandInCluster, *splits: PartitionSplit) -> None:
        self.cluster = cluster
        self.failures: list[BaseException] = []
        self.fetcher = PartitionFetcher(
            cluster, source_options(), "fail", lambda split: None, self.failures.append
        )
        for split in splits:
            self.fetcher.add(split)

    async def turns(self, count: int = 30) -> None:
        self.fetcher.start()
        for _ in range(count):
            await asyncio.sleep(0)
            self.cluster.clock.advance_by(250)
        await self.fetcher.close()


def split(number: int = 0, stop: int | None = None, start: int = 0) -> PartitionSplit:
    return PartitionSplit(KafkaTopicPartition("t", number), start, stop)


async def test_a_gap_up_to_the_stopping_offset_ends_a_partition() -> None:
    """Where all was compacted away, an answer without records is all that comes."""
    mine, other = split(0, stop=10), split(1, stop=10)

    def answer(number: int, offset: int) -> tuple[Any, ...]:
        if number == 0:
            return found(b"", end=10)
        return found(batch_bytes(offset, [b"x"]), end=10)

    fetching = Fetching(StandInCluster(answer, 2), mine, other)
    await fetching.turns(60)
    assert [0, 1] in fetching.cluster.requests or [1, 0] in fetching.cluster.requests
    # Only an answer to a request for it alone says that there is nothing: others have a limit.
    assert [0] in fetching.cluster.requests
    assert mine.take(10) == []
    assert mine.finished
    assert len(other.take(100)) == 10


async def test_no_records_below_the_stopping_offset_is_no_end_while_they_may_come() -> None:
    """The partition, or its last stable offset, has not got there yet."""
    mine = split(stop=10)
    fetching = Fetching(StandInCluster(lambda number, offset: found(b"", end=9)), mine)
    await fetching.turns()
    assert not mine.fetched_all


async def test_a_corrupt_batch_fails_by_name() -> None:
    """The checksum of every batch is verified."""
    data = bytearray(batch_bytes(7, [b"abc"]))
    data[-2] ^= 1
    fetching = Fetching(
        StandInCluster(lambda number, offset: found(bytes(data), end=9)), split(start=7)
    )
    await fetching.turns()
    assert [type(error) for error in fetching.failures] == [KafkaRecordError]
    assert "t[0]@7" in str(fetching.failures[0])


async def test_fetching_stops_while_the_buffer_is_full() -> None:
    """Nobody takes: at most a few answers are held."""
    mine = split()
    data = b"x" * 500_000
    fetching = Fetching(
        StandInCluster(lambda number, offset: found(batch_bytes(offset, [data]), end=10**6)), mine
    )
    await fetching.turns(100)
    assert 1_000_000 < mine.buffered < 2_100_000


async def test_a_partition_that_is_gone_fails_after_a_while() -> None:
    """It is asked for again before; brokers may not know all for a moment."""
    cluster = StandInCluster(lambda number, offset: (3, -1, -1, -1, None, -1, b""))
    cluster.existing = {}
    fetching = Fetching(cluster, split())
    await fetching.turns(200)
    assert [type(error) for error in fetching.failures] == [KafkaTopicError]
    assert "t[0]" in str(fetching.failures[0])
    assert cluster.clock.monotonic() >= DELETED_TOPIC_SECONDS
    assert len(cluster.requests) > 5


async def test_a_partition_without_leader_is_waited_for() -> None:
    """As long as the brokers say that it exists."""
    cluster = StandInCluster(lambda number, offset: (5, -1, -1, -1, None, -1, b""))
    fetching = Fetching(cluster, split())
    await fetching.turns(200)
    assert fetching.failures == []


async def test_an_error_that_will_not_pass_fails_by_name() -> None:
    """Without a retry."""
    cluster = StandInCluster(lambda number, offset: (29, -1, -1, -1, None, -1, b""))
    fetching = Fetching(cluster, split())
    await fetching.turns()
    [error] = fetching.failures
    assert isinstance(error, KafkaConnectorError)
    assert "t[0] at stand-in:1 cannot be read" in str(error)
    assert "TopicAuthorizationFailedError" in str(error)
    assert len(cluster.requests) == 1


@pytest.mark.parametrize("turns", [1, 2, 3, 50])
async def test_closing_ends_every_task(turns: int) -> None:
    """At whatever point the fetches are."""
    fetching = Fetching(StandInCluster(lambda number, offset: found(b"", end=0)), split())
    before = asyncio.all_tasks()
    await fetching.turns(turns)
    assert asyncio.all_tasks() == before
