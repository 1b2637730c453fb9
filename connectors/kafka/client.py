"""One connection to a Kafka cluster, and what it is asked besides fetching and producing."""

from __future__ import annotations

import asyncio
import logging
from collections import defaultdict
from collections.abc import Awaitable, Callable, Collection, Mapping
from typing import Any, TypeVar

from connectors.kafka.binding import (
    AIOKafkaClient,
    CoordinationType,
    MetadataRequest,
    OffsetCommitRequest,
    OffsetFetchRequest,
    OffsetRequest,
    create_conn,
    kafka_errors,
)
from connectors.kafka.complaints import Complaints
from connectors.kafka.errors import (
    KafkaConnectorError,
    KafkaTopicError,
    KafkaUnreachableError,
)
from connectors.kafka.offsets import LATEST_TIMESTAMP
from connectors.kafka.options import CLIENT_OPTIONS, Options
from connectors.kafka.subscription import Subscription
from connectors.kafka.topic_partition import KafkaTopicPartition
from statebackends.clock import Clock

T = TypeVar("T")

ISOLATION_LEVELS = {"read_uncommitted": 0, "read_committed": 1}
CLOSE_SECONDS = 5.0
_CONNECTION = frozenset(CLIENT_OPTIONS) - {
    "bootstrap_servers",
    "metadata_max_age_ms",
    "retry_backoff_ms",
    "connections_max_idle_ms",
}
PATIENCE_SECONDS = 2.0
"""How long a request is repeated in silence."""
_BACKOFF_SECONDS = 0.2
MISSING_TOPIC_SECONDS = 3.0
"""How long a start looks for a topic that is not there: a new one takes a moment to be known."""


class KafkaCluster:
    """A client of one cluster; every call ends within the configured time.

    Args:
        options: settings of the source or sink.
        client_id: names this client at the brokers.
        clock: for pauses between attempts.
        client: the client of a producer that owns it; else one is made.
        timeout_setting: dotted name of the setting that limits each call, for messages.
        timeout_ms: its value.
    """

    def __init__(
        self,
        options: Options,
        client_id: str,
        clock: Clock,
        timeout_setting: str,
        timeout_ms: int,
        client: Any = None,
    ) -> None:
        self.address = options.bootstrap_servers
        self.clock = clock
        self._timeout_setting = timeout_setting
        self._timeout_ms = timeout_ms
        self._group = options.text("group_id", "")
        level = options.text("isolation_level", "read_uncommitted")
        self.isolation_level = ISOLATION_LEVELS[level]
        self._coordinator: Any = None
        quiet_client_logging()
        self._arguments = options.client_arguments(client_id)
        self.client = client or AIOKafkaClient(**self._arguments)
        never_create_topics(self.client)

    async def connect(self) -> None:
        """Connects to any of the bootstrap servers.

        Raises:
            KafkaUnreachableError: none answered in time.
        """
        await self.connect_by(self.client.bootstrap)

    async def connect_by(self, start: Callable[[], Awaitable[None]]) -> None:
        """Connects by the method of a client that does more than to connect; see `connect`."""

        async def connect() -> None:
            try:
                await start()
            except kafka_errors.KafkaConnectionError:
                # It only says that no server would do; the servers' own answers say why.
                await self._ask_for_the_reason()
                raise

        await self._retried("connect", connect)

    async def _ask_for_the_reason(self) -> None:
        """Raises what connecting to a bootstrap server raises, if it does."""
        arguments = {name: self._arguments[name] for name in _CONNECTION if name in self._arguments}
        for host, port, _ in self.client.hosts:
            connection = await create_conn(host, port, **arguments)
            connection.close()

    async def close(self) -> None:
        """Closes all connections, within a few seconds."""
        await close_bounded(self.client.close())

    async def partitions(self, topics: Collection[str] | None) -> dict[str, set[int]]:
        """The partitions of the topics that exist, of all but internal ones where None is given.

        Raises:
            KafkaUnreachableError: no broker answered in time.
            KafkaTopicError: a topic may not be accessed.
        """
        request = MetadataRequest(
            None if topics is None else sorted(topics), allow_auto_topic_creation=False
        )

        async def ask() -> dict[str, set[int]]:
            response = await self._send_to_any(request)
            # The client's knowledge is replaced as a whole: not by less than it has.
            if topics is None or self.client.cluster.topics() <= set(topics):
                self.client.cluster.update_metadata(response)
            return _partitions_by_topic(response, topics is not None)

        return await self._retried("list topics", ask)

    async def select_partitions(
        self, subscription: Subscription, patience_seconds: float = 0.0
    ) -> set[KafkaTopicPartition]:
        """The partitions of a subscription.

        Raises:
            KafkaUnreachableError: no broker answered in time.
            KafkaTopicError: a topic or partition is still missing after `patience_seconds`.
        """
        deadline = self.clock.monotonic() + patience_seconds
        while True:
            found = await self.partitions(subscription.wanted_topics)
            self.client._topics.update(found if subscription.pattern is None else ())
            missing = subscription.missing(found)
            if not missing:
                return subscription.select(found)
            if self.clock.monotonic() >= deadline:
                raise KafkaTopicError(
                    f"{', '.join(missing)} not found at {self.address}: the topic or partition "
                    "does not exist, or may not be described; create it or check the name "
                    "(the connector creates no topics)"
                )
            await self.clock.sleep(_BACKOFF_SECONDS)

    async def offsets_at(
        self, partitions: Collection[KafkaTopicPartition], timestamp: int
    ) -> dict[KafkaTopicPartition, int]:
        """See `OffsetLookup.offsets_at`."""
        found = await self._list_offsets(partitions, timestamp)
        none = [each for each, offset in found.items() if offset < 0]
        return found | (await self._list_offsets(none, LATEST_TIMESTAMP) if none else {})

    async def committed(
        self, partitions: Collection[KafkaTopicPartition]
    ) -> dict[KafkaTopicPartition, int]:
        """See `OffsetLookup.committed`."""
        request = OffsetFetchRequest(
            self._group,
            [(topic, [n for n, _ in numbers]) for topic, numbers in _grouped(partitions)],
        )

        async def ask() -> dict[KafkaTopicPartition, int]:
            response = await self._send_to_coordinator(request)
            found = {}
            for topic, numbers in response.topics:
                for number, offset, _, error_code in numbers:
                    self._check(error_code, f"{topic}[{number}]")
                    if offset >= 0:
                        found[KafkaTopicPartition(topic, number)] = offset
            return found

        return await self._retried(f"read offsets of group {self._group!r}", ask)

    async def commit(self, offsets: Mapping[KafkaTopicPartition, int]) -> None:
        """Commits offsets for the source's group, without being a member of it.

        Raises:
            KafkaConnectorError: the group refused them; its members are consumers, perhaps.
        """
        topics = [
            (topic, [(n, offsets[each], "") for n, each in numbers])
            for topic, numbers in _grouped(offsets)
        ]
        request = OffsetCommitRequest(self._group, -1, "", -1, topics)

        async def ask() -> None:
            response = await self._send_to_coordinator(request)
            for topic, numbers in response.topics:
                for number, error_code in numbers:
                    self._check(error_code, f"{topic}[{number}]")

        await self._retried(f"commit offsets of group {self._group!r}", ask)

    async def _list_offsets(
        self, partitions: Collection[KafkaTopicPartition], timestamp: int
    ) -> dict[KafkaTopicPartition, int]:
        wanted = set(partitions)

        async def ask() -> dict[KafkaTopicPartition, int]:
            found = {}
            for leader, led in self._by_leader(wanted).items():
                topics = [
                    (topic, [(number, timestamp) for number, _ in numbers])
                    for topic, numbers in _grouped(led)
                ]
                request = OffsetRequest(-1, self.isolation_level, topics)
                response = await self.client.send(leader, request)
                for topic, numbers in response.topics:
                    for number, error_code, _, offset in numbers:
                        self._check(error_code, f"{topic}[{number}]")
                        found[KafkaTopicPartition(topic, number)] = offset
            return found

        return await self._retried("look up offsets", ask)

    def _by_leader(
        self, partitions: Collection[KafkaTopicPartition]
    ) -> dict[int, list[KafkaTopicPartition]]:
        leaders: dict[int, list[KafkaTopicPartition]] = defaultdict(list)
        for each in partitions:
            leader = leader_of(self.client, each)
            if leader is None:
                self.client.add_topic(each.topic)
                raise kafka_errors.LeaderNotAvailableError(str(each))
            leaders[leader].append(each)
        return leaders

    async def _send_to_any(self, request: Any) -> Any:
        node = self.client.get_random_node()
        if node is None:
            raise kafka_errors.KafkaConnectionError("no broker is known")
        return await self.client.send(node, request)

    async def _send_to_coordinator(self, request: Any) -> Any:
        if self._coordinator is None:
            self._coordinator = await self.client.coordinator_lookup(
                CoordinationType.GROUP, self._group
            )
        return await self.client.send(self._coordinator, request)

    def _check(self, error_code: int, place: str) -> None:
        if error_code:
            raise kafka_errors.for_code(error_code)(place)

    async def _retried(self, what: str, ask: Callable[[], Awaitable[T]]) -> T:
        """Repeats a request while its failure may pass, up to the configured time."""
        last: BaseException | None = None
        complaints = Complaints(self.clock, "Kafka client")
        began = self.clock.monotonic()
        try:
            async with asyncio.timeout(self._timeout_ms / 1000):
                while True:
                    try:
                        return await ask()
                    except (kafka_errors.KafkaError, OSError, TimeoutError) as error:
                        last = error
                        if not _may_pass(error):
                            raise KafkaConnectorError(
                                f"could not {what} at {self.address}: {describe(error)}"
                            ) from error
                        self._coordinator = None
                        if self.client.cluster.brokers():
                            self.client.force_metadata_update()
                        if self.clock.monotonic() - began > PATIENCE_SECONDS:
                            complaints.say(
                                f"could not {what} at {self.address} yet ({describe(error)}); "
                                f"gives up after {self._timeout_ms} ms ({self._timeout_setting})"
                            )
                    await self.clock.sleep(_BACKOFF_SECONDS)
        except TimeoutError as timeout:
            if isinstance(last, kafka_errors.UnknownTopicOrPartitionError):
                raise KafkaTopicError(
                    f"could not {what} at {self.address}: {last} does not exist"
                ) from last
            raise KafkaUnreachableError(
                f"could not {what} at {self.address} within {self._timeout_ms} ms "
                f"({self._timeout_setting}): {describe(last) if last else 'no answer'}; check "
                "bootstrap.servers and whether the broker runs"
            ) from (last or timeout)


def leader_of(client: Any, partition: KafkaTopicPartition) -> int | None:
    """The broker that leads a partition as far as known; asks for news where it is not."""
    by_topic = client.cluster._partitions.get(partition.topic, {})
    found = by_topic.get(partition.partition)
    return None if found is None or found.leader == -1 else int(found.leader)


def describe(error: BaseException) -> str:
    """A client's error in words; many of them have no message but a description."""
    name = type(error).__name__
    text = str(error)
    shown = text if name in text else f"{name}: {text}".rstrip(": ")
    description = getattr(error, "description", "")
    return f"{shown} ({description.rstrip('.')})" if description else shown


async def close_bounded(closing: Any) -> None:
    """Awaits a client's close for a few seconds and says so if it is not done then."""
    try:
        async with asyncio.timeout(CLOSE_SECONDS):
            await closing
    except (TimeoutError, kafka_errors.KafkaError, OSError) as error:
        logging.getLogger(__name__).warning(
            "a Kafka client was not closed cleanly within %s s: %r", CLOSE_SECONDS, error
        )


def quiet_client_logging() -> None:
    """Silences aiokafka's log unless it was turned up to INFO or DEBUG.

    It writes about a hundred lines a second while a broker is away; the connector reports the
    same in a line of its own every few seconds.
    """
    logger = logging.getLogger("aiokafka")
    if logger.level == logging.NOTSET or logger.level >= logging.WARNING:
        logger.setLevel(logging.CRITICAL)


def never_create_topics(client: Any) -> None:
    """Keeps a client from creating a topic by asking for its metadata.

    aiokafka's own requests let the broker create missing topics where it is allowed to, which
    would bring back a topic that was deleted while a job reads or writes it.
    """

    async def update(cluster: Any, topics: Collection[str]) -> bool:
        request = MetadataRequest(
            sorted(topics) if topics else None, allow_auto_topic_creation=False
        )
        nodes = [broker.nodeId for broker in client.cluster.brokers()]
        for node in nodes:
            connection = await client._get_conn(node)
            if connection is None:
                continue
            try:
                response = await connection.send(request)
            except (kafka_errors.KafkaError, TimeoutError):
                continue
            if response.brokers:
                cluster.update_metadata(response)
                return True
        cluster.failed_update(None)
        return False

    client._metadata_update = update


def _may_pass(error: BaseException) -> bool:
    if isinstance(error, kafka_errors.KafkaConnectionError | OSError | TimeoutError):
        return True
    return bool(getattr(error, "retriable", False))


def _partitions_by_topic(response: Any, named: bool) -> dict[str, set[int]]:
    found = {}
    for error_code, topic, is_internal, partitions in response.topics:
        error = kafka_errors.for_code(error_code)
        if error is kafka_errors.NoError:
            if named or not is_internal:
                found[topic] = {partition[1] for partition in partitions}
        elif named and error is not kafka_errors.UnknownTopicOrPartitionError:
            if not getattr(error, "retriable", False):
                raise KafkaTopicError(f"topic {topic!r}: {describe(error())}")
            raise error(topic)
    return found


def _grouped(
    partitions: Collection[KafkaTopicPartition],
) -> list[tuple[str, list[tuple[int, KafkaTopicPartition]]]]:
    by_topic: dict[str, list[tuple[int, KafkaTopicPartition]]] = defaultdict(list)
    for each in sorted(partitions):
        by_topic[each.topic].append((each.partition, each))
    return list(by_topic.items())
