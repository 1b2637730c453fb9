"""Jobs on a real Kafka as processes: what survives a kill, and what ends them with an error."""

from __future__ import annotations

import asyncio
import re
import subprocess
import time
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest
from aiokafka.admin import NewPartitions

from tests.connectors.kafka.produced import admin, delete_topic, produce
from tests.job_process import JobFolder, outcome
from tests.kafka_fixtures import TopicCreator, create_topic_at

COUNTS = """
import sys
from datetime import timedelta
from connectors.kafka import KafkaSource
from runtime import (
    OutputTag, ProcessFunction, StreamExecutionEnvironment, TumblingEventTimeWindows,
    WatermarkStrategy,
)

kafka, topic = sys.argv[1:]

class Watch(ProcessFunction):
    def __init__(self, place):
        self.place = place
    def open(self, context):
        self.subtask = context.get_index_of_this_subtask()
    def process_element(self, value, context):
        watermark = context.timer_service().current_watermark()
        print(f"mark {self.place}-{self.subtask} {watermark}\\n{self.place} {value}")
        yield value

env = StreamExecutionEnvironment.get_execution_environment()
env.enable_checkpointing(200)
late = OutputTag("late")
watermarks = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(
    lambda value, _: int(value.split()[1]) * 1000
)
counts = (
    env.from_source(
        KafkaSource(bootstrap_servers=kafka, topics=topic, value_deserializer=bytes.decode),
        watermarks, "in",
    ).uid("in")
    .process(Watch("read")).uid("watch")
    .key_by(lambda value: value.split()[0])
    .window(TumblingEventTimeWindows.of(timedelta(seconds=10)))
    .side_output_late_data(late)
    .count().uid("counts")
)
lines = counts.map(lambda each: f"{each.key} {each.start} {each.count}").uid("lines")
for place, stream in ("window", lines), ("late", counts.get_side_output(late)):
    # What is watched has been printed.
    watched = stream.process(Watch(place)).uid(f"watch {place}")
    watched.filter(lambda _: False).uid(f"no {place}").print().uid(f"out {place}")
env.execute("counts")
"""
DISCOVERY_SECONDS = 10
"""How often new partitions are looked for, by default."""

COPY = """
import sys
from connectors.kafka import KafkaSink, KafkaSource
from runtime import StreamExecutionEnvironment, WatermarkStrategy

kafka, source, target = sys.argv[1:]
env = StreamExecutionEnvironment.get_execution_environment()
(
    env.from_source(
        KafkaSource(bootstrap_servers=kafka, topics=source, value_deserializer=bytes,
                    default_api_timeout_ms=2000),
        WatermarkStrategy.no_watermarks(), "in",
    )
    .sink_to(KafkaSink(bootstrap_servers=kafka, topic=target, value_serializer=bytes,
                       max_block_ms=2000))
)
env.execute("copy")
"""


@pytest.fixture
def folder(tmp_path: Path) -> JobFolder:
    return JobFolder(tmp_path)


class Running:
    """A job as a process, read line by line."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        self.seen: list[str] = []

    def read_until(self, wanted: set[str]) -> None:
        """Reads its output until all wanted lines were there."""
        assert self.process.stdout is not None
        missing = set(wanted)
        for line in self.process.stdout:
            # With several subtasks each line begins with the number of its own.
            self.seen.append(line.strip().split("> ")[-1])
            missing.discard(self.seen[-1])
            if not missing:
                return
        _, errors = self.process.communicate()
        raise AssertionError(f"the job ended before it said {missing}: {self.seen} {errors}")

    def wait_for_new_checkpoint(self, folder: Path) -> None:
        """Reads its log until a checkpoint is complete that began after this call."""
        begun = max((int(each.name[4:]) for each in folder.glob("chk-*")), default=0)
        assert self.process.stderr is not None
        for line in self.process.stderr:
            complete = re.search(r"checkpoint (\d+) is complete", line)
            # One that is about to begin has no folder yet.
            if complete is not None and int(complete[1]) > begun + 1:
                return
        raise AssertionError("the job ended before its checkpoints were complete")


@pytest.fixture
def started(folder: JobFolder) -> Iterator[list[subprocess.Popen[str]]]:
    """Processes that are killed after the test."""
    processes: list[subprocess.Popen[str]] = []
    yield processes
    for process in processes:
        process.kill()
        process.communicate()


def records(name: str, seconds: range, partition: int) -> list[str]:
    """Records of a partition, one for each second of event time."""
    return [f"{name} {second} {partition}" for second in seconds]


def put(kafka: str, topic: str, *parts: list[str]) -> set[str]:
    """Writes records, a list for each partition; the lines by which the job says it read them."""
    for part in parts:
        encoded = [each.encode() for each in part]
        asyncio.run(produce(kafka, topic, encoded, int(part[0].split()[-1])))
    return {f"read {each}" for part in parts for each in part}


def assert_watermarks_only_rise(lines: list[str]) -> None:
    """In each subtask, before and behind the windows."""
    marks: dict[str, list[int]] = defaultdict(list)
    for line in lines:
        if line.startswith("mark "):
            _, place, mark = line.split()
            marks[place].append(int(mark))
    assert {place.split("-")[0] for place in marks} == {"read", "window"}
    for seen in marks.values():
        assert seen == sorted(seen)


def test_new_partitions_are_read_wholly_and_survive_a_kill(
    kafka: str,
    create_topic: TopicCreator,
    folder: JobFolder,
    started: list[subprocess.Popen[str]],
) -> None:
    """Found without a restart or an option; after a kill -9 no record counts twice or not at all.

    Records come to the new partitions before they are discovered. Windows are held open for the
    new partitions once they are known, and no watermark goes back.
    """
    topic = create_topic(partitions=2)
    folder.write(COUNTS)

    async def grow() -> None:
        async with admin(kafka) as client:
            await client.create_partitions({topic: NewPartitions(total_count=5)})

    def start(*options: str) -> Running:
        process = folder.start(*options, "--", kafka, topic)
        started.append(process)
        return Running(process)

    old = put(kafka, topic, *(records("old", range(20), each) for each in (0, 1)))
    job = start("--parallelism", "2")
    job.read_until(old | {"window old 0 20"})
    grown = time.monotonic()
    asyncio.run(grow())
    new = put(kafka, topic, *(records("new", range(20, 30), each) for each in (2, 3, 4)))
    job.read_until(new)
    assert time.monotonic() - grown < DISCOVERY_SECONDS + 5
    assert [line for line in job.seen if line.startswith("mark read")][-1].endswith(" 18999")
    more = put(kafka, topic, *(records("old", range(20, 21), each) for each in (0, 1)))
    job.read_until(more | {"window old 10000 20"})
    job.wait_for_new_checkpoint(folder.path / "checkpoints" / "counts")
    job.process.kill()
    job.seen += outcome(job.process).out.splitlines()
    last = put(
        kafka,
        topic,
        *(records("old", range(21, 40), each) for each in (0, 1)),
        *(records("new", range(30, 40), each) for each in (2, 3, 4)),
    )
    again = start("--parallelism", "3", "--from", "latest")
    again.read_until(last | {"window old 20000 20", "window new 20000 30"})
    for run, expected in (
        (job, [*old, *new, *more, "window old 0 20", "window old 10000 20"]),
        (again, [*last, "window old 20000 20", "window new 20000 30"]),
    ):
        assert_watermarks_only_rise(run.seen)
        assert sorted(x for x in run.seen if not x.startswith("mark")) == sorted(expected)


@pytest.mark.parametrize("deleted", ["source", "target"])
def test_a_topic_deleted_under_a_job_fails_it(
    creating_kafka: str,
    folder: JobFolder,
    started: list[subprocess.Popen[str]],
    deleted: str,
) -> None:
    """By an error that names both; no request brings the topic back, though the broker would."""
    kafka = creating_kafka
    topics = {each: f"{each}-without-{deleted}" for each in ("source", "target")}
    for topic in topics.values():
        create_topic_at(kafka, topic)
    name = topics[deleted]
    folder.write(COPY)
    # With checkpoints a failure that may pass is met by new starts; this one is not.
    every = ["--checkpoint-interval", "200ms"]
    process = folder.start(*every, "--", kafka, topics["source"], topics["target"])
    started.append(process)
    # The source reads by then: a topic that is deleted before is only not found.
    Running(process).wait_for_new_checkpoint(folder.path / "checkpoints" / "copy")

    async def delete() -> None:
        await delete_topic(kafka, name)
        if deleted == "target":
            await produce(kafka, topics["source"], [b"x"])

    asyncio.run(delete())
    before = time.monotonic()
    ended = outcome(process)
    assert ended.code == 1
    assert name in ended.err
    operator = "Source: in" if deleted == "source" else "Sink: Unnamed"
    assert f"job 'copy' failed in operator '{operator}' (uid " in ended.err
    assert time.monotonic() - before < 30

    async def listed() -> bool:
        async with admin(kafka) as client:
            return name in await client.list_topics()

    assert not asyncio.run(listed())


def test_a_missing_topic_fails_the_job(
    kafka: str, create_topic: TopicCreator, folder: JobFolder
) -> None:
    """As source or as target, by name."""
    folder.write(COPY)
    topic = create_topic()
    for source, target in (("no-such-topic", topic), (topic, "no-such-topic")):
        ended = folder.run("--checkpoint-interval", "1s", "--fresh", "--", kafka, source, target)
        assert ended.code == 1
        assert f"no-such-topic not found at {kafka}" in ended.err


@pytest.mark.parametrize(
    "options", [(), ("--checkpoint-interval", "1s")], ids=["plain", "restarts"]
)
def test_an_unreachable_broker_fails_the_job(folder: JobFolder, options: tuple[str, ...]) -> None:
    """Within the configured time, naming address and setting; whatever restarts are allowed."""
    folder.write(COPY)
    began = time.monotonic()
    ended = folder.run(*options, "--", "localhost:1", "a", "b")
    # Its two seconds, and the start and end of a process on a loaded machine.
    assert time.monotonic() - began < 12
    assert ended.code == 1
    assert "localhost:1 within 2000 ms" in ended.err
    # Source and sink try at the same time; the first to give up is named first.
    setting = (
        "default.api.timeout.ms" if "'Source: in'" in first_line(ended.err) else "max.block.ms"
    )
    assert setting in first_line(ended.err)
    assert "starts again" not in ended.err
    assert "Traceback" not in ended.err


def first_line(report: str) -> str:
    """The sentence that says how the job failed."""
    return next(line for line in report.splitlines() if "JobExecutionError" in line)


def test_an_unparsable_record_is_named_once_and_for_all(
    kafka: str, create_topic: TopicCreator, folder: JobFolder
) -> None:
    """Topic, partition and offset in the sentence, the deserializer's own lines below it."""
    source = create_topic()
    asyncio.run(produce(kafka, source, [b"1", b"{oops"]))
    strict = "def parse(data):\n    return str(int(data)).encode()\n"
    folder.write(strict + COPY.replace("value_deserializer=bytes", "value_deserializer=parse"))
    ended = folder.run("--", kafka, source, create_topic())
    assert ended.code == 1
    report = ended.err[ended.err.index("JobExecutionError") :].splitlines()
    assert f"{source}[0]@1" in report[0]
    assert [line.split('"')[1] for line in report if line.startswith("  File")] == [str(folder.job)]
    assert report[-1].startswith("ValueError: invalid literal for int()")
