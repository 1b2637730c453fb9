"""The local broker against a real Kafka: records survive what happens to the broker."""

import asyncio
import subprocess
import sys
from pathlib import Path

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition

from connectors.kafka.local import LocalBroker, LocalBrokerError
from connectors.kafka.local.waiting import wait_until
from tests.kafka_fixtures import BrokerMaker, TopicCreator, create_topic_at

RECORDS = [f"record {number}".encode() for number in range(10)]


async def produce(bootstrap: str, topic: str, values: list[bytes]) -> None:
    async with AIOKafkaProducer(bootstrap_servers=bootstrap) as producer:
        for value in values:
            await producer.send_and_wait(topic, value, partition=0)


async def consume(bootstrap: str, topic: str, count: int) -> list[bytes]:
    async with AIOKafkaConsumer(bootstrap_servers=bootstrap) as consumer:
        partition = TopicPartition(topic, 0)
        consumer.assign([partition])
        await consumer.seek_to_beginning(partition)
        return [(await consumer.getone()).value for _ in range(count)]


async def test_records_written_to_the_shared_broker_are_read_back(
    kafka: str, create_topic: TopicCreator
) -> None:
    """What a producer wrote to a new topic a consumer reads in order."""
    topic = create_topic("letters", partitions=2)
    await produce(kafka, topic, RECORDS)
    assert await consume(kafka, topic, 10) == RECORDS


async def test_records_with_timestamps_far_from_now_are_accepted(
    kafka: str, create_topic: TopicCreator
) -> None:
    """Event time may lie years ahead of the broker's clock."""
    topic = create_topic("future")
    async with AIOKafkaProducer(bootstrap_servers=kafka) as producer:
        written = await producer.send_and_wait(topic, b"later", timestamp_ms=32_503_680_000_000)
    assert written.timestamp == 32_503_680_000_000


async def test_records_survive_a_kill_and_a_restart_but_no_fresh_start(
    local_broker: BrokerMaker,
) -> None:
    """Acknowledged records are there after SIGKILL, and again after a clean restart.

    A fresh start forgets them: a topic of the former life can be created anew.
    """
    broker = local_broker()
    bootstrap = broker.start()
    create_topic_at(bootstrap, "letters")
    await produce(bootstrap, "letters", RECORDS)
    assert broker.kill()
    assert broker.pid is None
    assert broker.start() == bootstrap
    assert await consume(bootstrap, "letters", 10) == RECORDS
    assert broker.restart() == bootstrap
    assert await consume(bootstrap, "letters", 10) == RECORDS
    broker.stop()
    create_topic_at(broker.start(fresh=True), "letters")


def test_a_wrong_property_is_answered_with_kafkas_words(local_broker: BrokerMaker) -> None:
    """The message of a start that fails holds what Kafka said about the property."""
    broker = local_broker({"num.io.threads": "none"})
    with pytest.raises(LocalBrokerError, match=r"num\.io\.threads"):
        broker.start()


def test_the_broker_ends_with_a_caller_that_is_killed(
    local_broker: BrokerMaker, tmp_path: Path
) -> None:
    """SIGKILL of the program that started a broker leaves no broker behind."""
    program = (
        "import sys; from pathlib import Path; from connectors.kafka.local import LocalBroker;"
        "broker = LocalBroker(Path(sys.argv[1])); broker.start();"
        "print(broker.pid, flush=True); sys.stdin.read()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program, str(tmp_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as caller:
        assert caller.stdout is not None
        started = int(caller.stdout.readline())
        seen = LocalBroker(tmp_path).pid
        caller.kill()
    assert seen == started
    assert wait_until(lambda: LocalBroker(tmp_path).pid is None, 30)


async def test_a_paused_broker_answers_after_it_goes_on(local_broker: BrokerMaker) -> None:
    """A record sent while the broker is frozen is acknowledged once it goes on."""
    broker = local_broker()
    bootstrap = broker.start()
    create_topic_at(bootstrap, "letters")
    async with AIOKafkaProducer(bootstrap_servers=bootstrap) as producer:
        await producer.send_and_wait("letters", RECORDS[0])
        broker.pause()
        sent = await producer.send("letters", RECORDS[1])
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(asyncio.shield(sent), 0.5)
        broker.resume()
        assert (await sent).offset == 1
