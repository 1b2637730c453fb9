"""Fixtures for tests that need a real Kafka; a plugin of the whole suite.

``kafka`` is the address of a broker shared by the session: one of its own on free
ports with its own data, or that of ``KAFKA_BOOTSTRAP_SERVERS``.  ``create_topic``
makes a topic that no other test knows.  ``creating_kafka`` is the address of a broker
that makes missing topics itself, for tests that see to it that nobody lets it.
``local_broker`` makes further brokers, for tests that kill or freeze one.  Whoever
uses one of them is marked ``kafka``, is skipped where Java or Maven is missing, and
fails instead where ``CI`` is set.
"""

import asyncio
import itertools
import os
import shutil
import uuid
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Protocol

import pytest
from aiokafka.admin import AIOKafkaAdminClient, NewTopic

from connectors.kafka.local import LocalBroker, LocalBrokerError
from connectors.kafka.local.artifacts import cache_folder, fetch_jars, missing_requirement
from connectors.kafka.local.waiting import wait_until

ADDRESS_VARIABLE = "KAFKA_BOOTSTRAP_SERVERS"
OWN_BROKERS = frozenset({"local_broker", "creating_kafka"})
FIXTURES = OWN_BROKERS | {"kafka", "create_topic"}
OBSTACLE: pytest.StashKey[str | None] = pytest.StashKey()
# Two broker starts on a loaded machine, above the limit of ordinary tests.
TEST_SECONDS = 180

BROKER_PROPERTIES = {
    # A misspelt topic is an error, not a new topic.
    "auto.create.topics.enable": "false",
}

TopicCreator = Callable[..., str]
"""``create_topic(name="topic", partitions=1, config=None)`` returns the unique name."""


class BrokerMaker(Protocol):
    """What the fixture ``local_broker`` gives."""

    def __call__(
        self,
        properties: Mapping[str, str] | None = None,
        *,
        start_seconds: float = 60.0,
        stop_seconds: float = 15.0,
    ) -> LocalBroker:
        """Make a broker on free ports, not yet started; it is stopped after the test."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark before ``-m`` selects, so that ``-m "not kafka"`` leaves out every such test."""
    for item in items:
        if FIXTURES & set(getattr(item, "fixturenames", ())):
            item.add_marker(pytest.mark.kafka)
        if item.get_closest_marker("kafka") and not item.get_closest_marker("timeout"):
            item.add_marker(pytest.mark.timeout(TEST_SECONDS))


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> None:
    """Fetch the jars before the first test, whose time limit knows nothing of downloads."""
    obstacle = None
    if not session.config.option.collectonly and any(map(_needs_broker, session.items)):
        obstacle = missing_requirement(cache_folder())
        if obstacle is None:
            try:
                fetch_jars(cache_folder(), print)
            except LocalBrokerError as failure:
                obstacle = str(failure)
    session.config.stash[OBSTACLE] = obstacle


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_setupnodes(config: pytest.Config) -> None:
    """Fetch the jars before other processes are started, which cannot show how it goes on."""
    if not config.option.collectonly and missing_requirement(cache_folder()) is None:
        with suppress(LocalBrokerError):  # Each process finds it again and says it in its tests.
            fetch_jars(cache_folder(), print)


def _needs_broker(item: pytest.Item) -> bool:
    """Tell whether the test needs a broker that this machine itself runs."""
    if item.get_closest_marker("kafka") is None:
        return False
    own = OWN_BROKERS & set(getattr(item, "fixturenames", ()))
    return bool(own) or not os.environ.get(ADDRESS_VARIABLE)


def pytest_runtest_setup(item: pytest.Item) -> None:
    obstacle = item.config.stash.get(OBSTACLE, None)
    if obstacle is None or not _needs_broker(item):
        return
    if os.environ.get("CI"):
        pytest.fail(f"no real Kafka, which CI must have: {obstacle}", pytrace=False)
    pytest.skip(f"no real Kafka: {obstacle}")


@pytest.fixture(scope="session")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The bootstrap address of the session's broker; no test may stop it."""
    address = os.environ.get(ADDRESS_VARIABLE)
    if address:
        yield address
        return
    data = tmp_path_factory.mktemp("kafka")
    with LocalBroker(data, properties=BROKER_PROPERTIES) as broker:
        yield broker.bootstrap
    _drop_records(data)


@pytest.fixture(scope="module")
def creating_kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a broker that makes the topics it is asked for, as brokers do by default."""
    data = tmp_path_factory.mktemp("creating-kafka")
    with LocalBroker(data, properties={"auto.create.topics.enable": "true"}) as broker:
        yield broker.bootstrap
    _drop_records(data)


@pytest.fixture
def local_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerMaker]:
    """Make brokers of the test's own, to be killed, frozen and restarted."""
    with ExitStack() as made:

        def make(
            properties: Mapping[str, str] | None = None,
            *,
            start_seconds: float = 60.0,
            stop_seconds: float = 15.0,
        ) -> LocalBroker:
            data = tmp_path_factory.mktemp("broker")
            broker = LocalBroker(
                data,
                properties={**BROKER_PROPERTIES, **(properties or {})},
                start_seconds=start_seconds,
                stop_seconds=stop_seconds,
            )
            made.callback(_drop_records, data)
            made.callback(broker.kill)
            return broker

        yield make


def _drop_records(data: Path) -> None:
    """Leave the logs for whoever looks into a failure, but not the bulk."""
    shutil.rmtree(data / "records", ignore_errors=True)


@pytest.fixture
def create_topic(kafka: str) -> TopicCreator:
    """Create topics with unique names on the session's broker (see TopicCreator)."""
    numbers = itertools.count(1)
    token = uuid.uuid4().hex[:8]

    def create(
        name: str = "topic", partitions: int = 1, config: Mapping[str, str] | None = None
    ) -> str:
        unique = f"{name}-{token}-{next(numbers)}"
        create_topic_at(kafka, unique, partitions, config)
        return unique

    return create


def create_topic_at(
    bootstrap: str, topic: str, partitions: int = 1, config: Mapping[str, str] | None = None
) -> None:
    """Create a topic on any broker and return when each partition has a leader.

    A plain call that also works inside a running event loop: it has its own in a thread.
    """
    with ThreadPoolExecutor(1) as thread:
        thread.submit(_create, bootstrap, topic, partitions, dict(config or {})).result()


def _create(bootstrap: str, topic: str, partitions: int, config: dict[str, str]) -> None:
    with asyncio.Runner() as runner:
        # A client notes the running loop when it is made.
        admin = runner.run(_connected(bootstrap))
        try:
            created = NewTopic(topic, partitions, 1, topic_configs=config)
            answer = runner.run(admin.create_topics([created], timeout_ms=30_000))
            errors = [error for error in answer.topic_errors if error[1] != 0]
            if errors:
                raise RuntimeError(f"topic {topic!r} was not created: {errors}")
            if not wait_until(lambda: runner.run(_led(admin, topic)) == partitions, 30):
                raise TimeoutError(f"topic {topic!r} has no leaders after 30 s")
        finally:
            runner.run(admin.close())


async def _connected(bootstrap: str) -> AIOKafkaAdminClient:
    admin = AIOKafkaAdminClient(bootstrap_servers=bootstrap, request_timeout_ms=30_000)
    await admin.start()
    return admin


async def _led(admin: AIOKafkaAdminClient, topic: str) -> int:
    """Count the partitions that have a leader."""
    (described,) = await admin.describe_topics([topic])
    return sum(partition["leader"] >= 0 for partition in described["partitions"])
