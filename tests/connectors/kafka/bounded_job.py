"""A bounded job on a topic, as a process: it prints what it reads and ends by itself."""

from __future__ import annotations

from pathlib import Path

from tests.job_process import JobFolder

END_SECONDS = 30
"""How long such a job may take; the process is given up by then."""

JOB = """
import sys
from connectors.kafka import KafkaOffsetsInitializer, KafkaSource
from runtime import StreamExecutionEnvironment, WatermarkStrategy

kafka, topic, level = sys.argv[1:]
source = KafkaSource(
    bootstrap_servers=kafka, topics=topic, value_deserializer=bytes.decode,
    bounded=KafkaOffsetsInitializer.latest(), isolation_level=level,
)
env = StreamExecutionEnvironment.get_execution_environment()
env.enable_checkpointing(200)
env.from_source(source, WatermarkStrategy.no_watermarks(), "in").uid("in").print().uid("out")
env.execute("bounded")
"""


def values_read(folder: Path, kafka: str, topic: str, level: str = "read_committed") -> list[str]:
    """Runs the job to its own end, which must be a good one; the values in order."""
    job = JobFolder(folder)
    job.write(JOB)
    ended = job.run("--fresh", "--", kafka, topic, level)
    assert ended.code == 0, ended.err
    return ended.out.split()
