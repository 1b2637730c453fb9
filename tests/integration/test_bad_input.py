"""What a user gets wrong is answered by one clear error and the right exit code."""

from pathlib import Path

import pytest

from tests.job_process import JobFolder

FINE = """
from runtime import StreamExecutionEnvironment
env = StreamExecutionEnvironment.get_execution_environment()
env.from_collection([1, 2]).print()
env.execute()
"""


@pytest.fixture
def folder(tmp_path: Path) -> JobFolder:
    """A folder with a job that has nothing wrong."""
    made = JobFolder(tmp_path)
    made.write(FINE)
    return made


def test_an_unknown_option_is_refused_with_the_nearest(folder: JobFolder) -> None:
    """And exit code 2, before anything runs."""
    ended = folder.run("--paralelism", "2")
    assert ended.code == 2
    assert "unknown option '--paralelism'; did you mean '--parallelism'?" in ended.err
    assert ended.out == ""


def test_an_unknown_configuration_key_is_refused_with_the_nearest(folder: JobFolder) -> None:
    """Keys of `--set` are checked before the job file runs."""
    ended = folder.run("--set", "execution.checkpointing.intervall=1s")
    assert ended.code == 2
    assert "did you mean 'execution.checkpointing.interval'?" in ended.err
    assert ended.out == ""


def test_a_missing_job_file_is_named(folder: JobFolder) -> None:
    """With the folder that was searched."""
    folder.job.unlink()
    ended = folder.run()
    assert ended.code == 2
    assert f"there is no job file '{folder.job}' (in {folder.path})" in ended.err


def test_a_folder_is_no_job_file(folder: JobFolder) -> None:
    """It is said so."""
    folder.job = folder.path
    ended = folder.run()
    assert ended.code == 2
    assert "is a folder, not the file of a job" in ended.err


def test_a_job_without_sinks_is_refused(folder: JobFolder) -> None:
    """Naming the line that asked for it."""
    folder.write(FINE.replace(".print()", ".map(str)"))
    ended = folder.run()
    assert ended.code == 2
    assert "the job has no sink" in ended.err
    assert f"({folder.job}:5)" in ended.err


def test_a_job_file_that_raises_shows_its_own_traceback_only(folder: JobFolder) -> None:
    """No line of the runtime stands between the user and the mistake."""
    folder.write("def load():\n    return {}['ts']\nload()\n")
    ended = folder.run()
    assert ended.code == 1
    lines = ended.err.splitlines()
    assert lines[0] == "Traceback (most recent call last):"
    assert lines[-1] == "KeyError: 'ts'"
    assert [line.split('"')[1] for line in lines if line.startswith("  File")] == [
        str(folder.job)
    ] * 2


def test_a_job_file_that_is_no_python_shows_the_place(folder: JobFolder) -> None:
    """As Python does."""
    folder.write("env = (\n")
    ended = folder.run()
    assert ended.code == 1
    assert ended.err.splitlines()[-1].startswith("SyntaxError:")
    assert "runtime" not in ended.err


def test_a_job_file_that_runs_no_job_is_told_what_is_missing(folder: JobFolder) -> None:
    """It would otherwise end as if all were done."""
    folder.write(FINE.replace("env.execute()", ""))
    ended = folder.run()
    assert ended.code == 2
    assert "ended without running a job; it must call env.execute()" in ended.err


@pytest.mark.parametrize("plain", [False, True])
def test_a_failing_function_is_reported_with_its_place_and_traceback(
    folder: JobFolder, plain: bool
) -> None:
    """First what failed where, then the user's own lines; with and without the command line."""
    folder.write(
        FINE.replace("[1, 2])", "[{'ts': 1}, {}]).map(clean).name('clean').uid('clean')").replace(
            "env =", "def clean(click):\n    return click['ts']\nenv =", 1
        )
    )
    ended = folder.run(plain=plain)
    assert ended.code == 1
    report = ended.err[ended.err.index("JobExecutionError") :].splitlines()
    assert report[0].startswith("JobExecutionError: job 'job' failed in operator 'clean'")
    assert "(uid clean, subtask 1/1)" in report[0]
    assert report[0].endswith("KeyError('ts')")
    assert report[2] == "Traceback (most recent call last):"
    assert report[3] == f'  File "{folder.job}", line 4, in clean'
    assert report[-1] == "KeyError: 'ts'"


@pytest.mark.parametrize("hiding", ["runtime.py", "operators/__init__.py", "connectors.py"])
def test_a_module_with_the_name_of_a_package_is_refused(folder: JobFolder, hiding: str) -> None:
    """Imports would mean something else than the author thinks."""
    module = folder.path / hiding
    module.parent.mkdir(exist_ok=True)
    module.write_text("")
    # From elsewhere: Python itself would take a module of the current folder for the runtime.
    folder.path = folder.path.parent
    ended = folder.run()
    assert ended.code == 2
    assert f"{module} beside the job file has the name of a package of riverrun" in ended.err


def test_a_hidden_package_is_named_without_the_command_line_too(folder: JobFolder) -> None:
    """`python job.py` finds the user's module first."""
    (folder.path / "operators.py").write_text("")
    ended = folder.run(plain=True)
    assert ended.code == 1
    assert f"{folder.path / 'operators.py'} hides the package 'operators' of riverrun" in ended.err


def test_an_impossible_setting_in_the_job_names_the_line(folder: JobFolder) -> None:
    """The call, the value and what is allowed."""
    folder.write(FINE.replace("env.execute", "env.set_parallelism(0)\nenv.execute"))
    ended = folder.run()
    assert ended.code == 2
    assert "set_parallelism (parallelism.default): 0 cannot be used" in ended.err
    assert f"({folder.job}:5)" in ended.err
