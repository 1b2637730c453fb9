"""Jobs killed with -9: what comes after goes on as if nothing had happened."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from tests.integration.counting_job import CountingJob
from tests.job_process import outcome, read_until

COMPLETE = re.compile(r"checkpoint (\d+) is complete")
RESTORED = re.compile(r"starts from checkpoint (\d+)")


def kill_after(process: subprocess.Popen[str], percent: int) -> tuple[int, str, str]:
    """Kills a job once it has read so much and completed another checkpoint.

    Returns the id of that checkpoint, the log up to it and the whole lines of the output.
    """
    log = read_until(process, f"reached {percent} %")
    log += read_until(process, "is complete")
    process.kill()
    ended = outcome(process)
    found = COMPLETE.search(log[-1])
    assert found is not None
    return int(found[1]), "".join(log), ended.out[: ended.out.rfind("\n") + 1]


async def test_a_job_killed_three_times_counts_every_record_once(tmp_path: Path) -> None:
    """At 20, 50 and 80 % of the input, each time going on at another parallelism."""
    job = CountingJob(tmp_path)
    completed, _, output = kill_after(job.folder.start("-p", "1"), 20)
    for percent, parallelism in ((50, 2), (80, 3)):
        process = job.folder.start("--from", "latest", "-p", str(parallelism))
        newest, log, more = kill_after(process, percent)
        restored = RESTORED.search(log)
        assert restored is not None
        # The last checkpoint before the kill may have come behind the line that was read.
        assert completed <= int(restored[1]) < newest
        completed = newest
        output += more
    last = job.folder.run("--from", "latest", "-p", "1")
    assert last.code == 0, last.err
    restored = RESTORED.search(last.err)
    assert restored is not None
    assert int(restored[1]) >= completed
    await job.assert_exact(output + last.out)


@pytest.mark.parametrize("half", ["metadata cut short", "no metadata"])
async def test_latest_passes_over_a_checkpoint_that_was_half_written(
    tmp_path: Path, half: str
) -> None:
    """For the one before it, and says so; the ids go on above it."""
    job = CountingJob(tmp_path, count=20_000)
    process = job.folder.start()
    read_until(process, "is complete")
    newest, _, output = kill_after(process, 50)
    # The kill may have come when one more had just been completed.
    newest = max(
        [newest, *(int(one.parent.name[4:]) for one in job.checkpoints.glob("chk-*/metadata"))]
    )
    metadata = job.checkpoints / f"chk-{newest}" / "metadata"
    if half == "no metadata":
        metadata.unlink()
    else:
        metadata.write_bytes(metadata.read_bytes()[:-20])
    last = job.folder.run("--from", "latest")
    assert last.code == 0, last.err
    assert f"passes over checkpoint {newest}" in last.err
    restored, first = RESTORED.search(last.err), COMPLETE.search(last.err)
    assert restored is not None
    assert first is not None
    assert int(restored[1]) < newest < int(first[1])
    await job.assert_exact(output + last.out)
