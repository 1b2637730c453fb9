"""Starts over saved state that cannot work are refused by one clear error with the remedy."""

import shutil
import signal
import subprocess
from pathlib import Path

import pytest

from tests.job_process import JobFolder, outcome

COUNT = """
from runtime import StreamExecutionEnvironment
env = StreamExecutionEnvironment.get_execution_environment()
env.enable_checkpointing(50)
numbers = env.from_sequence(0, 10**12).uid("numbers")
counts = numbers.key_by(lambda n: n % 10).reduce(lambda a, b: a + b).uid("sums")
counts.filter(lambda _: False).uid("none").print().uid("out")
env.execute("sums")
"""


def wait_for_checkpoint(process: subprocess.Popen[str], number: int) -> None:
    """Reads the log of a job until as many checkpoints are complete."""
    assert process.stderr is not None
    complete = 0
    for line in process.stderr:
        complete += "is complete" in line
        if complete == number:
            return
    raise AssertionError("the job ended before its checkpoints were complete")


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory) -> JobFolder:
    """The folder of a job that was killed after its third checkpoint."""
    folder = JobFolder(tmp_path_factory.mktemp("killed"))
    folder.write(COUNT)
    process = folder.start()
    wait_for_checkpoint(process, 3)
    process.kill()
    outcome(process)
    return folder


@pytest.fixture
def folder(killed: JobFolder, tmp_path: Path) -> JobFolder:
    """A copy of that folder."""
    return JobFolder(Path(shutil.copytree(killed.path, tmp_path / "copy")))


@pytest.fixture
def checkpoints(folder: JobFolder) -> list[Path]:
    """The checkpoints in the folder, oldest first."""
    found = (folder.path / "checkpoints" / "sums").glob("chk-*/metadata")
    return sorted((one.parent for one in found), key=lambda one: int(one.name[4:]))


def stopped_log(folder: JobFolder, *arguments: str) -> list[str]:
    """The log of a run that starts well and is stopped after a checkpoint."""
    process = folder.start(*arguments)
    lines: list[str] = []
    assert process.stderr is not None
    for line in process.stderr:
        lines.append(line)
        if "is complete" in line:
            process.send_signal(signal.SIGINT)
            break
    assert outcome(process).code == 130, "".join(lines)
    return lines


def test_a_start_over_an_unfinished_run_names_both_remedies(folder: JobFolder) -> None:
    """The commonest way to lose or to double everything."""
    ended = folder.run()
    assert ended.code == 2
    assert "--from latest" in ended.err
    assert "--fresh" in ended.err


@pytest.mark.parametrize("remedy", [("--from", "latest"), ("--fresh",)])
def test_each_remedy_works(folder: JobFolder, remedy: tuple[str, ...]) -> None:
    """The job goes on, or begins anew, with higher checkpoint ids either way."""
    assert any("checkpoint" in line for line in stopped_log(folder, *remedy))


def test_a_second_live_run_of_a_job_is_refused(folder: JobFolder) -> None:
    """Both would write the same checkpoints; the first goes on."""
    first = folder.start("--from", "latest")
    wait_for_checkpoint(first, 1)
    second = folder.run("--from", "latest")
    assert second.code == 2
    assert f"is running already: process {first.pid}" in second.err
    first.send_signal(signal.SIGTERM)
    assert outcome(first).code == 143


def test_a_changed_max_parallelism_is_refused(folder: JobFolder) -> None:
    """Naming both values and what to set."""
    ended = folder.run("--from", "latest", "--max-parallelism", "64")
    assert ended.code == 1
    assert "max parallelism 64" in ended.err
    assert "set it back to 4096" in ended.err


def test_a_checkpoint_that_is_not_there_is_refused(folder: JobFolder) -> None:
    """Saying what a checkpoint's path looks like."""
    ended = folder.run("--from", "nowhere")
    assert ended.code == 1
    assert "nowhere" in ended.err
    assert "chk-<number>" in ended.err


def damage(checkpoint: Path) -> None:
    """Cuts a state file of a checkpoint short."""
    file = next(one for one in checkpoint.iterdir() if one.name != "metadata")
    file.write_bytes(file.read_bytes()[:-5])


def test_latest_passes_over_a_damaged_checkpoint(
    folder: JobFolder, checkpoints: list[Path]
) -> None:
    """For an older one that is whole, and says so."""
    older, newest = checkpoints[-2:]
    damage(newest)
    log = "".join(stopped_log(folder, "--from", "latest"))
    assert f"passes over checkpoint {newest.name[4:]}" in log
    assert f"starts from checkpoint {older.name[4:]}" in log


def test_a_damaged_checkpoint_that_was_asked_for_is_refused(
    folder: JobFolder, checkpoints: list[Path]
) -> None:
    """Nothing else is taken in its place."""
    newest = checkpoints[-1]
    damage(newest)
    ended = folder.run("--from", str(newest))
    assert ended.code == 1
    assert newest.name in ended.err


@pytest.mark.parametrize(
    ("stream", "message"),
    [
        ("key_by(lambda n: [n]).reduce(lambda a, b: a)", "list"),
        ("flat_map(lambda n: 'text')", "str"),
    ],
)
def test_a_function_that_gives_the_wrong_thing_is_refused_at_the_first_record(
    tmp_path: Path, stream: str, message: str
) -> None:
    """An unstable key, a text where an iterable is meant: type and place are named."""
    folder = JobFolder(tmp_path)
    folder.write(
        "from runtime import StreamExecutionEnvironment\n"
        "env = StreamExecutionEnvironment.get_execution_environment()\n"
        f"env.from_sequence(0, 3).{stream}.print()\nenv.execute()"
    )
    ended = folder.run("--quiet")
    assert ended.code == 1
    first = ended.err.splitlines()[0]
    assert first.startswith("JobExecutionError: job 'job' failed in operator")
    assert message in first
