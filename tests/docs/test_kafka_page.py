"""The page about Kafka: what it shows works with a real broker."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
from ast import literal_eval
from pathlib import Path

from tests.docs.test_documents import ROOT, blocks, commands, run_python
from tests.examples.test_windowed_counts_kafka import consume
from tests.kafka_fixtures import TopicCreator

DOCUMENT = "docs/kafka.md"


def test_topics_are_filled_counted_and_read(
    kafka: str, create_topic: TopicCreator, tmp_path: Path
) -> None:
    """The clicks that the page writes come out of the example as counts, read by the page's job."""
    topic = f"{create_topic('page')}-clicks"
    code = blocks(DOCUMENT, "python").replace("clicks", topic).replace("127.0.0.1:19092", kafka)
    filling, main, reading = code.partition("asyncio.run(main())\n")
    (tmp_path / "fill.py").write_text(filling + main)
    (tmp_path / "read_counts.py").write_text(reading)
    done = run_python(tmp_path, "fill.py")
    assert done.returncode == 0, done.stderr

    example = str(ROOT / "examples" / "windowed_counts.py")
    command = [sys.executable, "-m", "runtime", example, "--quiet", "--"]
    command += ["--bootstrap-servers", kafka, "--topic", topic]
    job = subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True)
    try:
        asyncio.run(consume(kafka, f"{topic}-counts", 6))
    finally:
        job.send_signal(signal.SIGTERM)
        _, errors = job.communicate(timeout=30)
    assert job.returncode == 128 + signal.SIGTERM, errors

    read = run_python(tmp_path, "-m", "runtime", "read_counts.py", "--quiet")
    counts = [literal_eval(line) for line in read.stdout.splitlines()]
    assert sum(each["count"] for each in counts) == 2_000
    assert {each["start"] for each in counts} == {0, 10_000}


def test_the_page_starts_the_example_with_its_own_options() -> None:
    """The example takes the address as the page gives it."""
    shown = [words for words in commands(DOCUMENT) if "--bootstrap-servers" in words]
    assert [words[words.index("--") + 1 :] for words in shown] == [
        ["--bootstrap-servers", "127.0.0.1:19092"]
    ]
