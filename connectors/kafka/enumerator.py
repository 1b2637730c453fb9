"""Discovers the partitions of a source and assigns them to subtasks.

The owner of a partition follows from its name alone (`split_owner`), so partitions need no
hand-over: readers keep what they own at a restore, and the enumerator only speaks of new ones.
Its state is the set of partitions ever discovered and whether the first discovery is done.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Collection
from typing import Protocol

from connectors.kafka.client import MISSING_TOPIC_SECONDS
from connectors.kafka.complaints import Complaints
from connectors.kafka.errors import KafkaTopicError, KafkaUnreachableError
from connectors.kafka.offsets import KafkaOffsetsInitializer, OffsetLookup
from connectors.kafka.settings import SourceSettings
from connectors.kafka.split import SplitAssignment
from connectors.kafka.subscription import Subscription
from connectors.kafka.topic_partition import KafkaTopicPartition, split_owner
from operators.source import SplitEnumerator, SplitEnumeratorContext
from statebackends.errors import CorruptCheckpointError

STATE_VERSION = 1
_GONE_SECONDS = 15.0
"""How long a topic of the list may be missing while the job runs."""


class DiscoveryClient(OffsetLookup, Protocol):
    """What the enumerator asks Kafka (`KafkaCluster`, or a stand-in in tests)."""

    async def connect(self) -> None:
        """Connects; bounded in time."""

    async def close(self) -> None:
        """Closes within a bounded time."""

    async def select_partitions(
        self, subscription: Subscription, patience_seconds: float = 0.0
    ) -> set[KafkaTopicPartition]:
        """The subscribed partitions that exist."""


class KafkaSplitEnumerator(SplitEnumerator):
    """The enumerator of one Kafka source (Flink: `KafkaSourceEnumerator`)."""

    def __init__(
        self,
        context: SplitEnumeratorContext,
        settings: SourceSettings,
        connect: Callable[[], DiscoveryClient],
    ) -> None:
        super().__init__(context)
        self._settings = settings
        self._connect = connect
        self._client: DiscoveryClient | None = None
        self._known: set[KafkaTopicPartition] = set()
        self._initial_discovery_done = False
        self._missing_since: float | None = None

    async def start(self) -> None:
        """Discovers and assigns, with the offsets of this moment.

        After a restore, known partitions are assigned again, from their beginning: a reader
        that has one in its state keeps that, and takes the stopping offset where it has none; one
        that nobody has was assigned too late for the checkpoint.

        Raises:
            KafkaUnreachableError: no broker answered in time.
            KafkaTopicError: a topic does not exist.
            KafkaOffsetError: a partition has no offset to start at.
        """
        self._client = self._connect()
        await self._client.connect()
        found = await self._client.select_partitions(
            self._settings.subscription, MISSING_TOPIC_SECONDS
        )
        if self._initial_discovery_done:
            await self._assign(found, KafkaOffsetsInitializer.earliest())
        else:
            await self._assign(found, self._settings.starting_offsets)
            self._initial_discovery_done = True
        if self._settings.bounded:
            self.context.signal_no_more_splits()

    async def run(self) -> None:
        """Looks for new partitions; they are read from their beginning."""
        interval_ms = self._settings.discovery_interval_ms
        complaints = Complaints(self.context.clock, "Kafka partition discovery")
        while interval_ms:
            await self.context.clock.sleep(interval_ms / 1000)
            try:
                await self._discover()
            except KafkaUnreachableError as error:
                complaints.say(str(error))
            except KafkaTopicError:
                now = self.context.clock.monotonic()
                if self._missing_since is None:
                    self._missing_since = now
                if now - self._missing_since >= _GONE_SECONDS:
                    raise
            else:
                self._missing_since = None

    def snapshot_state(self) -> bytes:
        """See `SplitEnumerator`."""
        partitions = [[each.topic, each.partition] for each in sorted(self._known)]
        state = {
            "version": STATE_VERSION,
            "initial_discovery_done": self._initial_discovery_done,
            "partitions": partitions,
        }
        return json.dumps(state).encode()

    def restore_state(self, state: bytes) -> None:
        """See `SplitEnumerator`; raises `CorruptCheckpointError` for what it cannot read."""
        try:
            read = json.loads(state)
            version = read["version"]
            if version != STATE_VERSION:
                raise CorruptCheckpointError(
                    f"the state of a Kafka source has version {version}, this release reads "
                    f"version {STATE_VERSION}"
                )
            self._known = {KafkaTopicPartition(topic, n) for topic, n in read["partitions"]}
            self._initial_discovery_done = bool(read["initial_discovery_done"])
        except (ValueError, KeyError, TypeError) as error:
            raise CorruptCheckpointError(
                f"the enumerator state of a Kafka source is not readable: {error!r}"
            ) from error

    async def close(self) -> None:
        """See `SplitEnumerator`."""
        if self._client is not None:
            await self._client.close()

    async def _discover(self) -> None:
        assert self._client is not None
        found = await self._client.select_partitions(self._settings.subscription)
        await self._assign(found - self._known, KafkaOffsetsInitializer.earliest())

    async def _assign(
        self, partitions: Collection[KafkaTopicPartition], starting: KafkaOffsetsInitializer
    ) -> None:
        assert self._client is not None
        starts = await starting.resolve(partitions, self._client)
        stopping = self._settings.stopping_offsets
        stops = await stopping.resolve(partitions, self._client) if stopping else {}
        by_owner: dict[int, list[SplitAssignment]] = defaultdict(list)
        for each in sorted(partitions):
            owner = split_owner(each.topic, each.partition, self.context.parallelism)
            by_owner[owner].append(SplitAssignment(each, starts[each], stops.get(each)))
        # From here on without an await: state and assignments change in one step.
        self._known.update(partitions)
        for owner, splits in by_owner.items():
            self.context.assign_splits(owner, splits)
