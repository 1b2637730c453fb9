"""Jobs on a real Kafka that are told to stop, with the broker there and without."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from connectors.kafka.local import LocalBroker
from tests.connectors.kafka.produced import consume, produce
from tests.job_process import JobFolder, Outcome, outcome, read_until
from tests.kafka_fixtures import BrokerMaker, TopicCreator, create_topic_at

STOP_TIMEOUT = "riverrun.stop.timeout=3s"
GRACE_SECONDS = 13
"""How long an end may take: 10 s beyond the timeout of the stop (by default 30 s in all)."""

COPY = """
import sys
from connectors.datagen import RateLimiter
from connectors.kafka import KafkaSink, KafkaSource
from connectors.rate_limit import RateLimitedSource
from runtime import StreamExecutionEnvironment, WatermarkStrategy

kafka, topic, target, interval = sys.argv[1:]
env = StreamExecutionEnvironment.get_execution_environment()
env.enable_checkpointing(interval)
source = KafkaSource(
    bootstrap_servers=kafka, topics=topic, value_deserializer=bytes, group_id=topic,
)
sink = KafkaSink(bootstrap_servers=kafka, topic=target, value_serializer=bytes)
no_watermarks = WatermarkStrategy.no_watermarks()

def tell(value):
    if value == b"2000":
        print("reads 2000", file=sys.stderr)
    return value

limited = RateLimitedSource(source, RateLimiter.per_second(6_000))
copied = env.from_source(limited, no_watermarks, "in").uid("in").map(tell).uid("tell")
copied.sink_to(sink).uid("out")
env.execute("copy")
"""

MORE = """
from connectors.datagen import DataGeneratorSource

def tick(number):
    if number == 100:
        print("ticks", file=sys.stderr)
    return b"tick-%d" % number

ticks = DataGeneratorSource(tick, rate_limiter=1_000)
env.from_source(ticks, no_watermarks, "ticks").uid("ticks").sink_to(sink).uid("more")
env.execute("copy")
"""

FEW = [b"%d" % number for number in range(100)]


@pytest.fixture
def folder(tmp_path: Path) -> JobFolder:
    made = JobFolder(tmp_path)
    made.write(COPY)
    return made


@pytest.fixture
def started() -> Iterator[list[subprocess.Popen[str]]]:
    """Processes that are killed after the test."""
    processes: list[subprocess.Popen[str]] = []
    yield processes
    for process in processes:
        process.kill()
        process.wait()


def stopped(process: subprocess.Popen[str], number: signal.Signals = signal.SIGTERM) -> Outcome:
    """Tells a process to stop; asserts that it ends in time and that nothing was left open."""
    began = time.monotonic()
    process.send_signal(number)
    ended = outcome(process)
    assert time.monotonic() - began < GRACE_SECONDS
    for complaint in ("never retrieved", "was destroyed", "never awaited", "Unclosed", "Traceback"):
        assert complaint not in ended.err
    return ended


def values(kafka: str, topic: str) -> list[bytes]:
    """What a topic holds now."""
    return [record.value for record in asyncio.run(consume(kafka, topic))]


def stopped_without_a_broker(
    broker: LocalBroker,
    folder: JobFolder,
    started: list[subprocess.Popen[str]],
    interval: str,
) -> Sequence[str]:
    """Stops a job whose broker is away and which has records to send; gives its arguments."""
    broker.start()
    for topic in ("in", "out"):
        create_topic_at(broker.bootstrap, topic)
    asyncio.run(produce(broker.bootstrap, "in", FEW))
    folder.write(COPY.replace('env.execute("copy")\n', MORE))
    arguments = ("--set", STOP_TIMEOUT, "--", broker.bootstrap, "in", "out", interval)
    process = folder.start(*arguments)
    started.append(process)
    read_until(process, "ticks")
    if interval != "off":
        read_until(process, "is complete")
    broker.kill()
    read_until(process, "Kafka s")
    ended = stopped(process)
    assert ended.code == 128 + signal.SIGTERM, ended.err
    return arguments


def test_a_stop_without_a_broker_ends_the_job_in_time(
    local_broker: BrokerMaker, folder: JobFolder, started: list[subprocess.Popen[str]]
) -> None:
    """It leaves with the code of a stop, though records are waiting to be sent."""
    stopped_without_a_broker(local_broker(), folder, started, "off")


def test_a_stop_without_a_broker_is_made_good_by_a_restart(
    local_broker: BrokerMaker, folder: JobFolder, started: list[subprocess.Popen[str]]
) -> None:
    """Once the broker is back each record is there, also those that waited to be sent."""
    broker = local_broker()
    arguments = stopped_without_a_broker(broker, folder, started, "200ms")
    broker.start()
    before = values(broker.bootstrap, "out")
    asyncio.run(produce(broker.bootstrap, "in", [b"last"]))
    process = folder.start("--from", "latest", *arguments)
    started.append(process)
    newer = b"tick-%d" % (sum(each.startswith(b"tick-") for each in before) + 500)
    while not {b"last", newer} <= set(values(broker.bootstrap, "out")):
        read_until(process, "is complete")
    ended = stopped(process)
    assert ended.code == 128 + signal.SIGTERM, ended.err
    written = set(values(broker.bootstrap, "out"))
    ticks = {each for each in written if each.startswith(b"tick-")}
    assert ticks == {b"tick-%d" % number for number in range(len(ticks))}
    assert written - ticks == {*FEW, b"last"}


def test_a_stop_copies_each_record_once(
    kafka: str,
    create_topic: TopicCreator,
    folder: JobFolder,
    started: list[subprocess.Popen[str]],
) -> None:
    """Under load and idle; what was on its way is in the final checkpoint."""
    topic, target = create_topic(), create_topic()
    records = [b"%d" % n for n in range(30_000)]
    asyncio.run(produce(kafka, topic, records))
    arguments = ("--", kafka, topic, target, "50ms")
    process = folder.start(*arguments)
    started.append(process)
    read_until(process, "reads 2000")
    # The second one after it has begun while records were on their way.
    for _ in range(2):
        read_until(process, "is complete")
    ended = stopped(process)
    assert ended.code == 128 + signal.SIGTERM, ended.err
    first = values(kafka, target)
    assert 2_000 <= len(first) < len(records)
    assert first == records[: len(first)]
    asyncio.run(produce(kafka, topic, [b"last"]))
    process = folder.start("--from", "latest", *arguments)
    started.append(process)
    while values(kafka, target)[-1] != b"last":
        read_until(process, "is complete")
    ended = stopped(process)
    assert ended.code == 128 + signal.SIGTERM, ended.err
    assert values(kafka, target) == [*records, b"last"]
