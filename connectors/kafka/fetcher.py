"""Fetches the partitions of one reader in the background, at most up to a bound.

One request at a time is under way to each broker, for all partitions that it leads and whose
buffer has room. What arrives stays undecoded until it is taken.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from connectors.kafka.binding import (
    ABORT_MARKER,
    ControlRecord,
    FetchRequest,
    MemoryRecords,
    kafka_errors,
)
from connectors.kafka.client import KafkaCluster, describe, leader_of
from connectors.kafka.complaints import Complaints
from connectors.kafka.errors import (
    KafkaConnectorError,
    KafkaOffsetError,
    KafkaRecordError,
    KafkaTopicError,
    KafkaUnreachableError,
)
from connectors.kafka.offsets import EARLIEST_TIMESTAMP, LATEST_TIMESTAMP
from connectors.kafka.options import Options
from connectors.kafka.split import PartitionSplit, Segment
from connectors.kafka.topic_partition import KafkaTopicPartition

BUFFER_BYTES = 16 * 1024 * 1024
"""Most bytes a reader holds undecoded, over all its partitions, plus one answer per broker."""

DELETED_TOPIC_SECONDS = 10.0
"""How long a partition may be without a leader before it is checked whether it still exists."""

_BACKOFF_SECONDS = 0.2
_CROWDED_WAIT_MS = 20


class PartitionFetcher:
    """The fetches of one reader.

    Args:
        cluster: a connected client.
        options: settings of the source.
        expired_offsets: "fail", "earliest" or "latest".
        on_data: called when a split has got something to take.
        on_failure: called with what makes the task fail.
    """

    def __init__(
        self,
        cluster: KafkaCluster,
        options: Options,
        expired_offsets: str,
        on_data: Callable[[PartitionSplit], None],
        on_failure: Callable[[BaseException], None],
    ) -> None:
        self._cluster = cluster
        self._clock = cluster.clock
        self._expired_offsets = expired_offsets
        self._on_data = on_data
        self._on_failure = on_failure
        self._complaints = Complaints(cluster.clock, "Kafka source")
        self._max_wait_ms = options.number("fetch_max_wait_ms", 500)
        self._min_bytes = options.number("fetch_min_bytes", 1)
        self._max_bytes = options.number("fetch_max_bytes", 8 * 1024 * 1024)
        self._partition_bytes = options.number("max_partition_fetch_bytes", 1024 * 1024)
        self._check_crcs = options.flag("check_crcs", True)
        self._splits: dict[KafkaTopicPartition, PartitionSplit] = {}
        self._busy: set[int] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._wake = asyncio.Event()
        self._looking_for_leaders = False
        self._failed = False

    def start(self) -> None:
        """Begins to fetch."""
        self._spawn(self._run())

    def add(self, split: PartitionSplit) -> None:
        """Fetches one more partition."""
        self._splits[split.partition] = split
        self._wake.set()

    def room_made(self) -> None:
        """Something was taken; called when a fetch may have waited for it."""
        self._wake.set()

    async def close(self) -> None:
        """Ends all fetches; the client is closed by whoever made it."""
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=5)

    def _spawn(self, work: Any) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._done)

    def _done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        error = None if task.cancelled() else task.exception()
        if error is not None:
            self._fail(error)

    def _fail(self, error: BaseException) -> None:
        if not self._failed:
            self._failed = True
            self._on_failure(error)

    async def _run(self) -> None:
        while not self._failed:
            self._wake.clear()
            for broker, splits in self._due().items():
                self._busy.add(broker)
                self._spawn(self._fetch(broker, splits))
            await self._wake.wait()

    def _due(self) -> dict[int, list[PartitionSplit]]:
        """The splits to fetch now, by broker; those that had their turn come last."""
        due: dict[int, list[PartitionSplit]] = defaultdict(list)
        room = BUFFER_BYTES - sum(split.buffered for split in self._splits.values())
        for split in list(self._splits.values()):
            if split.fetched_all:
                del self._splits[split.partition]
                continue
            broker = leader_of(self._cluster.client, split.partition)
            if broker is None:
                self._look_for_leaders()
            elif broker not in self._busy and split.buffered <= self._partition_bytes and room > 0:
                due[broker].append(split)
        for broker, splits in due.items():
            alone = next((split for split in splits if split.fetch_alone), None)
            if alone is not None:
                due[broker] = [alone]
        for splits in due.values():
            for split in splits:
                self._splits[split.partition] = self._splits.pop(split.partition)
        return due

    async def _fetch(self, broker: int, splits: list[PartitionSplit]) -> None:
        """One request and its answer."""
        try:
            try:
                response = await self._cluster.client.send(broker, self._request(splits))
            except (kafka_errors.KafkaError, OSError, TimeoutError) as error:
                self._complaints.say(
                    f"broker {broker} of {self._cluster.address} does not answer a fetch, "
                    f"trying again: {describe(error)}"
                )
                self._cluster.client.force_metadata_update()
                await self._clock.sleep(_BACKOFF_SECONDS)
                return
            failed = False
            for split, code, answer in self._answers(response):
                if code:
                    failed = True
                    await self._handle_error(split, kafka_errors.for_code(code))
                else:
                    self._accept(split, answer, alone=len(splits) == 1)
            if failed:
                await self._clock.sleep(_BACKOFF_SECONDS)
        except Exception as error:
            self._fail(error)
        finally:
            self._busy.discard(broker)
            self._wake.set()

    def _request(self, splits: list[PartitionSplit]) -> Any:
        by_topic: dict[str, list[tuple[int, int, int]]] = defaultdict(list)
        for split in splits:
            where = split.partition
            by_topic[where.topic].append(
                (where.partition, split.fetch_offset, self._partition_bytes)
            )
        # Where other partitions wait for room, an answer must not wait for new records.
        crowded = any(split.buffered > self._partition_bytes for split in self._splits.values())
        wait_ms = min(self._max_wait_ms, _CROWDED_WAIT_MS) if crowded else self._max_wait_ms
        level = self._cluster.isolation_level
        topics = list(by_topic.items())
        return FetchRequest(wait_ms, self._min_bytes, self._max_bytes, level, topics)

    def _answers(self, response: Any) -> Iterator[tuple[PartitionSplit, int, tuple[Any, ...]]]:
        for topic, partitions in response.topics:
            for number, code, *answer in partitions:
                split = self._splits.get(KafkaTopicPartition(topic, number))
                if split is not None:
                    yield split, code, tuple(answer)

    def _accept(self, split: PartitionSplit, answer: tuple[Any, ...], alone: bool) -> None:
        """Takes what came for one partition.

        The answer of version 4 on is high watermark, last stable offset, ..., aborted
        transactions, (preferred replica,) records.
        """
        if split.fetched_all:
            return
        split.unavailable_since = None
        high_watermark, stable_offset, data = answer[0], answer[1], answer[-1]
        end = stable_offset if self._cluster.isolation_level else high_watermark
        split.end_offset = end
        aborted = next((each for each in reversed(answer[2:-1]) if isinstance(each, list)), [])
        start = split.fetch_offset
        if data:
            batches, next_offset = self._visible(split, MemoryRecords(data), aborted)
            if next_offset > start:
                split.fetch_alone = False
                split.put(Segment(batches, next_offset, len(data)))
                self._on_data(split)
                return
        stop = split.stopping_offset
        if stop is not None and start < stop <= end:
            if alone:
                # Nothing is left between here and the stopping offset: all was compacted away.
                split.skip_to(stop)
                self._on_data(split)
            split.fetch_alone = not alone

    def _visible(
        self, split: PartitionSplit, records: Any, aborted: Iterable[tuple[int, int]]
    ) -> tuple[list[Any], int]:
        """The batches that hold records for users, and the offset behind all batches."""
        batches = []
        next_offset = split.fetch_offset
        waiting = sorted(aborted or (), key=lambda each: each[1], reverse=True)
        aborting: set[int] = set()
        while records.has_next():
            batch = records.next_batch()
            if self._check_crcs and not batch.validate_crc():
                raise KafkaRecordError(
                    f"the batch at {split.name}@{batch.base_offset} is corrupt (checksum)"
                )
            if waiting or aborting:
                while waiting and waiting[-1][1] <= batch.base_offset:
                    aborting.add(waiting.pop()[0])
                if batch.is_control_batch:
                    if ControlRecord.parse(next(iter(batch)).key) == ABORT_MARKER:
                        aborting.discard(batch.producer_id)
                elif batch.is_transactional and batch.producer_id in aborting:
                    next_offset = batch.next_offset
                    continue
            if not batch.is_control_batch and batch.next_offset > split.fetch_offset:
                batches.append(batch)
            next_offset = max(next_offset, batch.next_offset)
        return batches, next_offset

    async def _handle_error(self, split: PartitionSplit, error: Any) -> None:
        if error is kafka_errors.OffsetOutOfRangeError:
            await self._handle_expired(split)
        elif error is kafka_errors.UnknownTopicOrPartitionError or error().retriable:
            self._complaints.say(f"{split.name} cannot be read now: {describe(error())}")
            self._cluster.client.force_metadata_update()
            await self._check_exists(split)
        else:
            raise KafkaConnectorError(
                f"{split.name} at {self._cluster.address} cannot be read: {describe(error())}"
            )

    async def _handle_expired(self, split: PartitionSplit) -> None:
        where = [split.partition]
        earliest = (await self._cluster.offsets_at(where, EARLIEST_TIMESTAMP))[split.partition]
        latest = (await self._cluster.offsets_at(where, LATEST_TIMESTAMP))[split.partition]
        offset = split.fetch_offset
        if earliest <= offset <= latest:
            return
        if self._expired_offsets == "fail":
            lost = "were deleted" if offset < earliest else "are not there"
            raise KafkaOffsetError(
                f"offset {offset} of {split.name} at {self._cluster.address} is out of range: "
                f"the earliest is {earliest}, the latest {latest}; records from {offset} on "
                f"{lost}. Raise retention.ms of the topic, start afresh, or go on with what is "
                "there by set_expired_offsets('earliest')"
            )
        target = earliest if self._expired_offsets == "earliest" else latest
        self._complaints.say(f"offset {offset} of {split.name} is gone, going on at {target}")
        split.skip_to(target)
        self._on_data(split)

    def _look_for_leaders(self) -> None:
        if not self._looking_for_leaders:
            self._looking_for_leaders = True
            self._spawn(self._update_leaders())

    async def _update_leaders(self) -> None:
        try:
            client = self._cluster.client
            lost = [s for s in self._splits.values() if leader_of(client, s.partition) is None]
            for split in lost:
                client.add_topic(split.partition.topic)
            try:
                async with asyncio.timeout(5):
                    await client.force_metadata_update()
            except TimeoutError:
                self._complaints.say(f"no broker of {self._cluster.address} answers")
            for split in lost:
                if leader_of(client, split.partition) is None:
                    self._complaints.say(f"no broker leads {split.name} now")
                    await self._check_exists(split)
            await self._clock.sleep(_BACKOFF_SECONDS)
        finally:
            self._looking_for_leaders = False
            self._wake.set()

    async def _check_exists(self, split: PartitionSplit) -> None:
        """Fails if the partition has been away for a while and the brokers do not know it."""
        now = self._clock.monotonic()
        if split.unavailable_since is None:
            split.unavailable_since = now
        if now - split.unavailable_since < DELETED_TOPIC_SECONDS:
            return
        split.unavailable_since = now
        topic, number = split.partition.topic, split.partition.partition
        try:
            found = await self._cluster.partitions([topic])
        except KafkaUnreachableError as error:
            self._complaints.say(str(error))
            return
        if number not in found.get(topic, ()):
            raise KafkaTopicError(
                f"{split.name} at {self._cluster.address} does not exist any more: topic "
                f"{topic!r} was deleted while the job read it; create it again or leave it out of "
                "the subscription"
            )
