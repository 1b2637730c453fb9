"""The folder of a job: epochs, the lock, the record of the last run."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from runtime.errors import ConfigurationError
from runtime.job_folder import (
    FileSystemJobFolder,
    InMemoryJobFolder,
    JobFolder,
    RunStatus,
    folder_name,
)
from statebackends.errors import CheckpointStorageError
from statebackends.file_storage import run_directly


def open_folder(directory: Path, job_name: str = "page counts") -> FileSystemJobFolder:
    return FileSystemJobFolder(directory, job_name, run_blocking=run_directly)


@pytest.fixture(params=["memory", "disk"])
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[JobFolder]:
    opened = InMemoryJobFolder() if request.param == "memory" else open_folder(tmp_path)
    yield opened
    opened.close()


def test_a_new_folder_knows_of_no_run(folder: JobFolder) -> None:
    """There is no status and no epoch."""
    assert (folder.last_status(), folder.newest_epoch()) == (None, 0)


def test_each_run_takes_the_next_epoch(folder: JobFolder) -> None:
    """Epochs rise by one."""
    assert [folder.begin_run(), folder.begin_run(), folder.newest_epoch()] == [1, 2, 2]


def test_the_status_of_a_run_stays(folder: JobFolder) -> None:
    """It is running until it is said to have ended."""
    folder.begin_run()
    running = folder.last_status()

    folder.end_run(RunStatus.FINISHED)

    assert (running, folder.last_status()) == (RunStatus.RUNNING, RunStatus.FINISHED)


def test_epochs_rise_over_processes(tmp_path: Path) -> None:
    """A folder opened again goes on counting, and only the newest epoch leaves a file."""
    epochs = []
    for _ in range(3):
        opened = open_folder(tmp_path)
        epochs.append(opened.begin_run())
        opened.close()

    assert epochs == [1, 2, 3]
    assert os.listdir(tmp_path / "page%20counts" / "epochs") == ["3"]


def test_a_run_that_is_not_the_newest_records_nothing(tmp_path: Path) -> None:
    """On a store without locks the newer run's record stands."""
    opened = open_folder(tmp_path)
    opened.begin_run()
    (opened.path / "epochs" / "2").touch()

    opened.end_run(RunStatus.FINISHED)

    assert opened.last_status() is RunStatus.RUNNING
    opened.close()


def test_a_damaged_record_counts_as_none(tmp_path: Path) -> None:
    """What the last run came to is then unknown."""
    opened = open_folder(tmp_path)
    opened.begin_run()
    (opened.path / "run.json").write_bytes(b'{"status": "fini')

    assert opened.last_status() is None
    opened.close()


def test_a_second_live_run_is_refused(tmp_path: Path) -> None:
    """The error names the folder, the process and what to do."""
    first = open_folder(tmp_path)

    with pytest.raises(ConfigurationError, match="is running already") as refused:
        open_folder(tmp_path)
    first.close()

    assert str(first.path) in str(refused.value)
    assert f"process {os.getpid()} " in str(refused.value)
    open_folder(tmp_path).close()


def test_the_lock_of_a_killed_process_is_free(tmp_path: Path) -> None:
    """What a kill leaves behind does not keep the next run out."""
    script = (
        "import os, signal, sys; from runtime.job_folder import FileSystemJobFolder;"
        "FileSystemJobFolder(sys.argv[1], 'page counts').begin_run();"
        "os.kill(os.getpid(), signal.SIGKILL)"
    )
    subprocess.run([sys.executable, "-c", script, str(tmp_path)], check=False, timeout=30)

    opened = open_folder(tmp_path)

    assert (opened.last_status(), opened.begin_run()) == (RunStatus.RUNNING, 2)
    opened.close()


def test_two_jobs_of_one_directory_have_folders_of_their_own(tmp_path: Path) -> None:
    """Neither sees the other's lock or epochs."""
    first, second = open_folder(tmp_path, "a/b"), open_folder(tmp_path, "a%2Fb")
    first.begin_run()

    assert second.newest_epoch() == 0
    first.close()
    second.close()


@pytest.mark.parametrize(
    ("job_name", "name"),
    [
        ("counts", "counts"),
        ("a/b", "a%2Fb"),
        ("..", "%2E."),
        (".hidden", "%2Ehidden"),
        ("é", "%C3%A9"),
    ],
)
def test_a_folder_is_named_after_the_job(job_name: str, name: str) -> None:
    """Whatever the name holds, the folder lies directly under the directory."""
    assert folder_name(job_name) == name


@pytest.mark.parametrize("job_name", ["", "x" * 256])
def test_a_name_that_no_folder_can_have_is_refused(job_name: str) -> None:
    """The job needs another name."""
    with pytest.raises(ConfigurationError, match="1 to 255"):
        folder_name(job_name)


def test_a_directory_that_is_a_file_is_refused(tmp_path: Path) -> None:
    """The error names the path."""
    (tmp_path / "taken").touch()

    with pytest.raises(CheckpointStorageError, match="taken"):
        open_folder(tmp_path / "taken")
