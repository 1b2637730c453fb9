"""A full disk costs the checkpoint, and the job only beyond the tolerated number of them."""

import signal
from pathlib import Path

import pytest

from tests.job_process import JobFolder, outcome

# A limit on the size of files fails writes as a full disk does, for this process alone; the job
# lifts it when so many checkpoints have failed as its argument says.
FULL = """
import logging, resource, sys
from runtime import StreamExecutionEnvironment
failures = 0
class Lift(logging.Handler):
    def emit(self, record):
        global failures
        failures += "was given up" in record.getMessage()
        if failures == int(sys.argv[1]):
            resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY,) * 2)
logging.getLogger().addHandler(Lift())
def fill_disk(n):
    if n == 0:
        resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]), resource.RLIM_INFINITY))
    return n
env = StreamExecutionEnvironment.get_execution_environment()
env.enable_checkpointing(50)
env.get_checkpoint_config().set_tolerable_checkpoint_failure_number(2)
numbers = env.from_sequence(0, 10**12).uid("n").map(fill_disk).uid("fill")
sums = numbers.key_by(lambda n: n % 1000).reduce(lambda a, b: a + b)
sums.name("sums").uid("sums").filter(lambda _: False).uid("none").print().uid("out")
env.execute("full")
"""
STATE_FILE_LIMIT = "1000"
"""Bytes: too few for the sums, enough for the position of the source."""


@pytest.fixture
def folder(tmp_path: Path) -> JobFolder:
    """A folder with the job."""
    made = JobFolder(tmp_path)
    made.write(FULL)
    return made


@pytest.mark.parametrize("entries_to_fork", ["1", "1000000"], ids=["forked", "inline"])
def test_the_job_goes_on_while_failures_are_tolerated(
    folder: JobFolder, entries_to_fork: str
) -> None:
    """The next checkpoint that finds room completes; what the failed ones began is removed."""
    threshold = f"riverrun.snapshot.fork-threshold={entries_to_fork}"
    process = folder.start("--set", threshold, "--", "2", STATE_FILE_LIMIT)
    assert process.stderr is not None
    lines = []
    for line in process.stderr:
        lines.append(line)
        if "is complete" in line:
            break
    process.send_signal(signal.SIGINT)
    assert outcome(process).code == 130
    failed = [line for line in lines if "was given up" in line]
    assert len(failed) == 2
    assert all("'sums" in line and "cannot be written" in line for line in failed)
    assert "File too large" in failed[0]
    assert "checkpoint 3 is complete" in lines[-1]
    assert not list((folder.path / "checkpoints/full").glob("chk-[12]"))


def test_beyond_the_tolerated_number_the_job_fails(folder: JobFolder) -> None:
    """Naming operator, file, cause, count and setting; no partial checkpoint is left."""
    ended = folder.run("--set", "restart-strategy.type=none", "--", "9", "10")
    assert ended.code == 1
    last = ended.err.splitlines()[-1]
    assert last.startswith("JobExecutionError: job 'full' failed with CheckpointFailedError: check")
    assert "how job 'full' ended is not recorded" in ended.err
    assert "cannot be written: File too large" in last
    assert "failure 3 in a row, tolerated are 2" in last
    assert "execution.checkpointing.tolerable-failed-checkpoints" in last
    assert not list((folder.path / "checkpoints/full").glob("chk-*"))
