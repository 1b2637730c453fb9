"""Starts over saved state that cannot work are refused by one clear error with the remedy."""

import shutil
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.job_process import JobFolder, outcome

COUNT = """
from runtime import KeyedProcessFunction, StreamExecutionEnvironment, Types, ValueStateDescriptor
class Sum(KeyedProcessFunction):
    def open(self, context):
        self.sum = context.get_state(ValueStateDescriptor("sum", Types.LONG()))
    def process_element(self, number, ctx):
        self.sum.update((self.sum.value() or 0) + number)
env = StreamExecutionEnvironment.get_execution_environment()
env.enable_checkpointing(50)
numbers = env.from_sequence(0, 10**12).uid("numbers")
numbers.key_by(lambda n: n % 10).process(Sum()).name("sum up").uid("sums").print().uid("out")
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


def refused(folder: JobFolder, *arguments: str) -> str:
    """The last line of a run that must not start; none may have touched what is saved."""
    before = sorted(folder.path.glob("checkpoints/sums/chk-*/*"))
    ended = folder.run(*arguments)
    assert ended.code == 1, ended.err
    assert sorted(folder.path.glob("checkpoints/sums/chk-*/*")) == before
    assert "Traceback" not in ended.err.splitlines()[-1]
    return ended.err


def test_a_checkpoint_that_was_only_begun_is_passed_over(
    folder: JobFolder, checkpoints: list[Path]
) -> None:
    """A kill in the middle of one leaves files without metadata; it is said which."""
    begun = checkpoints[-1].parent / f"chk-{int(checkpoints[-1].name[4:]) + 7}"
    shutil.copytree(checkpoints[-1], begun)
    (begun / "metadata").unlink()
    log = "".join(stopped_log(folder, "--from", "latest"))
    assert f"passes over checkpoint {begun.name[4:]}: it was begun and not completed" in log
    assert f"starts from checkpoint {checkpoints[-1].name[4:]}" in log


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda chk: (chk / "metadata").unlink(), "holds no complete checkpoint"),
        (lambda chk: (chk / "metadata").write_bytes(b""), "is not JSON"),
        (lambda chk: rewrite(chk, '"parallelism": 1', '"parallelism": 2'), "is damaged"),
        (lambda chk: rewrite(chk, '"format": 1', '"format": 9'), "has format 9, this version"),
        (lambda chk: next(chk.glob("*-e*")).unlink(), "cannot be read: No such file"),
        (lambda chk: chk.rename(chk.parent / "older"), "(no such folder)"),
    ],
    ids=["begun", "empty", "changed", "newer", "file", "folder"],
)
def test_a_checkpoint_asked_for_by_path_must_be_whole(
    folder: JobFolder, checkpoints: list[Path], spoil: Callable[[Path], object], message: str
) -> None:
    """The whole ones beside it do not count: another state would be a surprise."""
    spoil(checkpoints[-1])
    said = refused(folder, "--from", str(checkpoints[-1])).splitlines()[-1]
    assert said.startswith("RecoveryError: ")
    assert str(checkpoints[-1]) in said
    assert message in said


def rewrite(checkpoint: Path, old: str, new: str) -> None:
    """Changes the metadata of a checkpoint."""
    metadata = checkpoint / "metadata"
    text = metadata.read_text()
    assert old in text
    metadata.write_text(text.replace(old, new))


def test_latest_does_not_pass_over_a_checkpoint_of_another_version(
    folder: JobFolder, checkpoints: list[Path]
) -> None:
    """It is whole, so going back behind it would lose what a newer riverrun did."""
    rewrite(checkpoints[-1], '"format": 1', '"format": 9')
    said = refused(folder, "--from", "latest").splitlines()[-1]
    assert "has format 9, this version of riverrun reads format 1 only" in said


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("Types.LONG()", "Types.STRING()", "state 'sum' was restored with value serializer"),
        ('uid("sums")', 'uid("totals")', "holds state of 'sums' (sum up), and the job has no op"),
    ],
    ids=["serializer", "uid"],
)
def test_a_job_that_does_not_fit_its_state_is_refused(
    folder: JobFolder, old: str, new: str, message: str
) -> None:
    """At once, also where a failure would otherwise bring a new start."""
    folder.write(COUNT.replace(old, new))
    said = refused(folder, "--from", "latest")
    assert message in said
    assert "starts again" not in said


def test_the_checkpoint_of_another_job_is_refused(
    folder: JobFolder, checkpoints: list[Path]
) -> None:
    """Its uids say that the state is not this job's."""
    folder.write(COUNT.replace('uid("', 'uid("other-').replace('"sums")', '"other")'))
    said = refused(folder, "--from", str(checkpoints[-1]))
    assert "holds state of 'numbers'" in said
    assert "--allow-non-restored-state" in said


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
    assert ended.err.count("\n") == 1


def test_a_run_whose_checkpoints_are_gone_does_not_begin_anew(tmp_path: Path) -> None:
    """What it had put out since its start would come a second time."""
    folder = JobFolder(tmp_path)
    folder.write(
        COUNT.replace("self.sum.update", "lose(number)\n        self.sum.update").replace(
            "env =",
            "import os, shutil\n"
            "def lose(number):\n"
            "    if os.path.exists('checkpoints/sums/chk-2/metadata'):\n"
            "        shutil.rmtree('checkpoints')\n"
            "        raise OSError('disk lost')\n"
            "env =",
            1,
        )
    )
    settings = (
        "restart-strategy.type=fixed-delay",
        "restart-strategy.fixed-delay.delay=10ms",
        # The one that is being stored at that moment fails as well.
        "execution.checkpointing.tolerable-failed-checkpoints=9",
    )
    ended = folder.run(*(word for setting in settings for word in ("--set", setting)))
    assert ended.code == 1
    said = ended.err.splitlines()[-1]
    assert said.startswith("RecoveryError: this run completed checkpoint ")
    assert "begin anew with --fresh" in said
    assert "OSError(disk lost)" in ended.err
