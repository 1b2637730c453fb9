"""Jobs stopped by signals: the exit codes, and nothing lost or doubled after a new start."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import time
from pathlib import Path

import pytest

from tests.integration.counting_job import CountingJob
from tests.job_process import JobFolder, Outcome, outcome, read_until

GRACE_SECONDS = 10
"""How long a stop may take here: far below the timeout after which a job leaves anyway."""

AT_ONCE_SECONDS = 2
"""From what has to end a process at once to its end; nearly all of it is for a loaded machine."""

LONE_SECONDS = 1
"""How long one signal is left alone: a second one too soon after it would count as the same."""

SLOW_SNAPSHOT = """
import os
MAIN = os.getpid()


class Marker:
    '''The first snapshot child that meets this says so and never comes to an end.'''

    def __reduce__(self):
        if os.getpid() != MAIN:
            try:
                os.close(os.open("begun", os.O_CREAT | os.O_EXCL))
            except FileExistsError:
                pass
            else:
                os.write(2, b"a snapshot child has begun\\n")
                os.open("fifo", os.O_RDONLY)
        return (Marker, ())


class Mark(KeyedProcessFunction):
    def open(self, runtime_context):
        self.mark = runtime_context.get_state(ValueStateDescriptor("mark"))

    def process_element(self, value, ctx):
        self.mark.update(Marker())
        yield value


if not os.path.exists("fifo"):
    os.mkfifo("fifo")
"""


ENDLESS_FLUSH = """
import asyncio, sys
from connectors.datagen import DataGeneratorSource
from runtime import Sink, SinkWriter, StreamExecutionEnvironment, WatermarkStrategy


class Writer(SinkWriter):
    def write(self, values, timestamps):
        print("running", file=sys.stderr)

    async def flush(self, end_of_input):
        print("flushing", file=sys.stderr)
        await asyncio.get_running_loop().create_future()


class EndlessSink(Sink):
    def create_writer(self, context):
        return Writer()


env = StreamExecutionEnvironment.get_execution_environment()
env.enable_checkpointing(3_600_000)
source = DataGeneratorSource(lambda n: n, rate_limiter=1 / 3600)
env.from_source(source, WatermarkStrategy.no_watermarks(), "slow").sink_to(EndlessSink())
env.execute()
"""

DUE_WINDOWS = 50_000
FIRED_BEFORE_STOP = 5_000

WINDOWS_DUE_AT_ONCE = f"""
import os, signal, sys
from connectors.datagen import DataGeneratorSource
from runtime import (
    StreamExecutionEnvironment, TumblingEventTimeWindows, WatermarkGenerator, WatermarkStrategy,
)

WINDOWS = {DUE_WINDOWS}
fired = 0


class AtTheEnd(WatermarkGenerator):
    # No watermark before that of the record behind all windows.
    def on_event(self, event, event_timestamp, output):
        if event == WINDOWS:
            output.emit_watermark(event_timestamp)

    def on_periodic_emit(self, output):
        pass


def count(result):
    global fired
    fired += 1
    if fired == {FIRED_BEFORE_STOP}:
        # Sent from here the signal comes in the middle, however slow the machine is.
        print("firing", file=sys.stderr)
        os.kill(os.getpid(), signal.SIGTERM)
    return ()


env = StreamExecutionEnvironment.get_execution_environment()
watermarks = WatermarkStrategy.for_generator(AtTheEnd)
numbers = env.from_source(
    DataGeneratorSource(lambda number: min(number, WINDOWS)),
    watermarks.with_timestamp_assigner(lambda number, _: number * 10),
    "numbers",
)
windows = numbers.key_by(lambda number: number % 500).window(TumblingEventTimeWindows.of(10))
windows.count().flat_map(count).print()
try:
    env.execute()
finally:
    print(fired)
"""


def ended_cleanly(
    process: subprocess.Popen[str], number: signal.Signals, *, whole_group: bool = False
) -> Outcome:
    """Sends a signal and waits for the end; asserts the exit code and a silent clean-up."""
    if whole_group:
        os.killpg(process.pid, number)
    else:
        process.send_signal(number)
    ended = timely_outcome(process)
    assert_clean(ended, number)
    return ended


def assert_clean(ended: Outcome, number: signal.Signals) -> None:
    """Asserts the exit code of a stop by the signal, and a silent clean-up."""
    assert ended.code == 128 + number, ended.err
    for complaint in ("never retrieved", "was destroyed", "never awaited", "Traceback"):
        assert complaint not in ended.err


def timely_outcome(process: subprocess.Popen[str], seconds: float = GRACE_SECONDS) -> Outcome:
    """The end of a process that has been told to stop; it has to come within the time."""
    began = time.monotonic()
    ended = outcome(process)
    assert time.monotonic() - began < seconds
    return ended


def ended_by_a_second_signal(process: subprocess.Popen[str]) -> Outcome:
    """Sends a second signal after one that has ended nothing; the end has to come at once."""
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(LONE_SECONDS)
    process.send_signal(signal.SIGTERM)
    return timely_outcome(process, AT_ONCE_SECONDS)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_a_stop_under_load_loses_and_doubles_nothing(
    tmp_path: Path, number: signal.Signals
) -> None:
    """The final checkpoint has it all: not even the output has a line twice."""
    job = CountingJob(tmp_path, count=400_000, rate=None)
    process = job.folder.start()
    read_until(process, "is complete")
    stopped = ended_cleanly(process, number)
    final = re.search(r"stops with checkpoint (\d+)", stopped.err)
    assert final is not None, stopped.err
    last = job.folder.run("--from", "latest", "-p", "2")
    assert last.code == 0, last.err
    assert f"starts from checkpoint {final[1]}" in last.err
    await job.assert_exact(stopped.out + last.out)
    assert len((stopped.out + last.out).splitlines()) == len(job.windows())


async def test_a_stop_while_state_is_restored_leaves_the_checkpoint_as_it_was(
    tmp_path: Path,
) -> None:
    """The job leaves before its first record; the next start begins where this one did."""
    job = CountingJob(tmp_path, count=100_000, keys=20_000, rate=None)
    first = job.folder.start()
    read_until(first, "is complete")
    first.kill()
    output = outcome(first).out
    second = job.folder.start("--from", "latest", "-p", "2")
    read_until(second, "starts from checkpoint")
    output = output[: output.rfind("\n") + 1] + ended_cleanly(second, signal.SIGTERM).out
    last = job.folder.run("--from", "latest")
    assert last.code == 0, last.err
    await job.assert_exact(output + last.out)


def test_a_stop_of_an_idle_job_comes_at_once(tmp_path: Path) -> None:
    """While its source waits for an hour."""
    folder = JobFolder(tmp_path)
    folder.write(
        "from connectors.datagen import DataGeneratorSource\n"
        "from runtime import StreamExecutionEnvironment, WatermarkStrategy\n"
        "env = StreamExecutionEnvironment.get_execution_environment()\n"
        "env.enable_checkpointing(50)\n"
        "source = DataGeneratorSource(lambda n: n, rate_limiter=1 / 3600)\n"
        "env.from_source(source, WatermarkStrategy.no_watermarks(), 'slow').print()\n"
        "env.execute()\n"
    )
    process = folder.start()
    read_until(process, "is complete")
    assert "stops with checkpoint" in ended_cleanly(process, signal.SIGTERM).err


async def test_a_burst_of_signals_is_one_clean_stop(tmp_path: Path) -> None:
    """Terminals and process groups repeat a signal; that is no second wish."""
    job = CountingJob(tmp_path, count=200_000, rate=None)
    process = job.folder.start()
    read_until(process, "is complete")
    process.send_signal(signal.SIGTERM)
    stopped = ended_cleanly(process, signal.SIGTERM)
    last = job.folder.run("--from", "latest")
    assert last.code == 0, last.err
    await job.assert_exact(stopped.out + last.out)


def test_a_second_signal_ends_a_job_that_user_code_blocks(tmp_path: Path) -> None:
    """At once, with the code of a stop: the first one cannot get through."""
    folder = JobFolder(tmp_path)
    folder.write(
        "import sys, threading\n"
        "from runtime import StreamExecutionEnvironment\n"
        "env = StreamExecutionEnvironment.get_execution_environment()\n"
        "def block(number):\n"
        "    print('blocking', file=sys.stderr)\n"
        "    threading.Event().wait()\n"
        "env.from_sequence(0, 3).map(block).print()\n"
        "env.execute()\n"
    )
    process = folder.start()
    read_until(process, "blocking")
    process.send_signal(signal.SIGTERM)
    assert ended_by_a_second_signal(process).code == 128 + signal.SIGTERM


def test_a_second_signal_ends_a_stop_that_waits(tmp_path: Path) -> None:
    """At once, though the loop turns and the stop has most of its time left."""
    folder = JobFolder(tmp_path)
    folder.write(ENDLESS_FLUSH)
    process = folder.start()
    read_until(process, "running")
    process.send_signal(signal.SIGTERM)
    read_until(process, "flushing")
    assert ended_by_a_second_signal(process).code == 128 + signal.SIGTERM


def test_a_stop_while_many_windows_fire_comes_at_once(tmp_path: Path) -> None:
    """All are due at one watermark; those that have not come out are left."""
    folder = JobFolder(tmp_path)
    folder.write(WINDOWS_DUE_AT_ONCE)
    process = folder.start()
    read_until(process, "firing")
    ended = timely_outcome(process, AT_ONCE_SECONDS)
    assert_clean(ended, signal.SIGTERM)
    assert FIRED_BEFORE_STOP <= int(ended.out) < DUE_WINDOWS


async def test_an_interrupt_of_the_whole_group_during_a_snapshot_stops_cleanly(
    tmp_path: Path,
) -> None:
    """The snapshot child leaves the decision to the job, which takes its final checkpoint."""
    job = CountingJob(tmp_path, count=60_000, keys=6_000, more=SLOW_SNAPSHOT)
    code = job.folder.job.read_text()
    job.folder.write(
        code.replace(
            "keyed.process(Count())",
            'keyed.process(Mark()).uid("marks").key_by(lambda n: n % KEYS).process(Count())',
        )
    )
    process = job.folder.start("--set", "riverrun.snapshot.fork-threshold=5000", own_group=True)
    read_until(process, "a snapshot child has begun")
    stopped = ended_cleanly(process, signal.SIGINT, whole_group=True)
    assert "stops with checkpoint" in stopped.err
    last = job.folder.run("--from", "latest")
    assert last.code == 0, last.err
    await job.assert_exact(stopped.out + last.out)
