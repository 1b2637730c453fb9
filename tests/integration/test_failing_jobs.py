"""User code that raises at some record: the job fails soon, loudly, and names the place."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from tests.job_process import JobFolder, Outcome, outcome, read_until

FAIL_SECONDS = 5
"""From the exception to the end of the process."""

JOB = """
import sys
from connectors.datagen import DataGeneratorSource
from runtime import (
    KeyedProcessFunction, ProcessWindowFunction, Sink, SinkWriter, StreamExecutionEnvironment,
    TumblingEventTimeWindows, WatermarkStrategy,
)

PLACE = {place!r}


def check(place, number):
    if place == PLACE and number >= 1000:
        print("raising in", place, file=sys.stderr)
        raise ValueError(f"record {{number}} is too much")
    return number


class Timers(KeyedProcessFunction):
    def process_element(self, value, ctx):
        ctx.timer_service().register_event_time_timer(value)
        yield value

    def on_timer(self, timestamp, ctx):
        check("timer", timestamp)
        return ()


class Windows(ProcessWindowFunction):
    def process(self, key, context, elements):
        for element in elements:
            yield check("window", element)


class CheckedSink(Sink):
    def create_writer(self, context):
        return CheckedWriter()


class CheckedWriter(SinkWriter):
    def write(self, values, timestamps):
        for value in values:
            check("sink", value)


env = StreamExecutionEnvironment.get_execution_environment()
watermarks = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(
    lambda number, _: number
)
source = DataGeneratorSource(lambda number: check("source", number), count=100_000)
numbers = env.from_source(source, watermarks, "the source").uid("source")
mapped = numbers.map(lambda number: check("map", number)).name("the map").uid("map")
keyed = mapped.key_by(lambda number: check("key selector", number) % 7)
timed = keyed.process(Timers()).name("the timers").uid("timers")
windows = timed.key_by(lambda number: number % 7).window(TumblingEventTimeWindows.of(100))
result = windows.process(Windows()).name("the windows").uid("windows")
result.sink_to(CheckedSink()).name("the sink").uid("sink")
env.execute("failing")
"""

OPERATORS = {
    "map": "the map",
    "key selector": "the map",
    "window": "the windows",
    "timer": "the timers",
    "source": "Source: the source",
    "sink": "the sink",
}
"""The place that raises, and the operator that the error names; keys are selected by a sender."""


def failed(folder: JobFolder, place: str, *arguments: str, failures: int = 1) -> Outcome:
    """Runs the job; after the last of its failures it has to end within seconds."""
    folder.write(JOB.format(place=place))
    process = folder.start(*arguments)
    log = []
    for _ in range(failures):
        log += read_until(process, f"raising in {place}")
    began = time.monotonic()
    ended = outcome(process)
    assert time.monotonic() - began < FAIL_SECONDS
    return Outcome(ended.code, ended.out, "".join(log) + ended.err)


def line_of_the_mistake(folder: JobFolder) -> str:
    """How a traceback names the line that raises."""
    lines = folder.job.read_text().splitlines()
    number = next(i for i, line in enumerate(lines, 1) if "raise ValueError" in line)
    return f'File "{folder.job}", line {number}, in check'


@pytest.mark.parametrize("checkpoints", [False, True])
@pytest.mark.parametrize("place", OPERATORS)
def test_a_function_that_raises_fails_the_job(
    tmp_path: Path, place: str, checkpoints: bool
) -> None:
    """With the operator, the user's own traceback, and exit code 1, within seconds."""
    folder = JobFolder(tmp_path)
    options = ["--checkpoint-interval", "50ms", "--set", "restart-strategy.type=none"]
    ended = failed(folder, place, *(options if checkpoints else []))
    assert ended.code == 1
    assert f"job 'failing' failed in operator {OPERATORS[place]!r}" in ended.err
    report = ended.err[ended.err.rindex("Traceback (most recent call last):") :]
    assert line_of_the_mistake(folder) in report
    assert "ValueError: record 1" in report.splitlines()[-1]
    for complaint in ("never retrieved", "was destroyed", "never awaited"):
        assert complaint not in ended.err


@pytest.mark.parametrize("place", OPERATORS)
def test_three_new_starts_are_three(tmp_path: Path, place: str) -> None:
    """Then the job has failed for good."""
    ended = failed(
        JobFolder(tmp_path),
        place,
        "--set",
        "restart-strategy.type=fixed-delay",
        "--set",
        "restart-strategy.fixed-delay.attempts=3",
        "--set",
        "restart-strategy.fixed-delay.delay=50ms",
        failures=4,
    )
    assert ended.code == 1
    assert ended.err.count(f"raising in {place}") == 4
    assert [f"start {number} of at most 3" in ended.err for number in (1, 2, 3)] == [True] * 3
    assert ended.err.count("starts again in 50 ms") == 3
