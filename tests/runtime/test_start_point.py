"""Which checkpoint a run starts from."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from runtime.checkpoint_messages import AttemptId
from runtime.checkpoint_metadata import CheckpointMetadata, SavedOperator
from runtime.errors import ConfigurationError, RecoveryError
from runtime.job_folder import FileSystemJobFolder, InMemoryJobFolder, RunStatus
from runtime.start_point import StartPoint, choose_start, restart_point
from runtime.survival_settings import RecoverySettings
from statebackends.file_storage import run_directly

LATEST = RecoverySettings(path="latest")


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[FileSystemJobFolder]:
    opened = FileSystemJobFolder(tmp_path, "counts", run_blocking=run_directly)
    yield opened
    opened.close()


async def save(folder: FileSystemJobFolder, *checkpoint_ids: int) -> None:
    for checkpoint_id in checkpoint_ids:
        file = await folder.storage.write(checkpoint_id, "state", b"saved" * checkpoint_id)
        operator = SavedOperator("counts", "counts", 1, 8, finished=False, files=(file,))
        metadata = CheckpointMetadata("counts", checkpoint_id, AttemptId(1, 1), 0, (operator,))
        await folder.storage.complete(checkpoint_id, metadata.dump())


async def choose(folder: FileSystemJobFolder, settings: RecoverySettings) -> StartPoint:
    return await choose_start(folder, settings, run_blocking=run_directly)


def chosen(start: StartPoint) -> int | None:
    return None if start.checkpoint is None else start.checkpoint.metadata.checkpoint_id


async def test_the_newest_whole_checkpoint_is_the_latest(folder: FileSystemJobFolder) -> None:
    """The next id lies above it."""
    await save(folder, 3, 9, 10)

    start = await choose(folder, LATEST)

    assert (chosen(start), start.first_checkpoint_id, start.skipped) == (10, 11, ())
    assert "checkpoint 10" in start.text


@pytest.mark.parametrize("name", ["state", "metadata"])
@pytest.mark.parametrize("damage", ["cut", "changed", "removed"])
async def test_a_damaged_checkpoint_is_passed_over_for_an_older_one(
    folder: FileSystemJobFolder, name: str, damage: str
) -> None:
    """It is reported, and its id is not used again."""
    await save(folder, 3, 4)
    path = folder.path / "chk-4" / name
    data = path.read_bytes()
    if damage == "removed":
        path.unlink()
    else:
        path.write_bytes(
            data[:-3]
            if damage == "cut"
            else data.replace(b"saved", b"paved", 1)
            if name == "state"
            else data.replace(b"counts", b"caunts", 1)
        )

    start = await choose(folder, LATEST)

    assert (chosen(start), start.first_checkpoint_id) == (3, 5)
    assert [skipped.checkpoint_id for skipped in start.skipped] == [4]


async def test_a_checkpoint_that_was_never_completed_is_passed_over(
    folder: FileSystemJobFolder,
) -> None:
    """The process died while it was written."""
    await save(folder, 3)
    await folder.storage.write(7, "state", b"half")

    start = await choose(folder, LATEST)

    assert (chosen(start), start.first_checkpoint_id) == (3, 8)
    assert [skipped.checkpoint_id for skipped in start.skipped] == [7]


async def test_latest_with_nothing_to_start_from_begins_afresh(folder: FileSystemJobFolder) -> None:
    """That is said, and is no error: a supervisor always asks for the latest."""
    start = await choose(folder, LATEST)

    assert (chosen(start), start.first_checkpoint_id) == (None, 1)
    assert "without state" in start.text


async def test_another_format_is_not_passed_over(folder: FileSystemJobFolder) -> None:
    """An older checkpoint would silently lose what was done since."""
    await save(folder, 3, 4)
    path = folder.path / "chk-4" / "metadata"
    path.write_bytes(path.read_bytes().replace(b'"format": 1', b'"format": 2'))

    with pytest.raises(RecoveryError, match="format 2"):
        await choose(folder, LATEST)


@pytest.mark.parametrize("status", [None, RunStatus.RUNNING, RunStatus.FAILED, RunStatus.STOPPED])
async def test_a_start_over_an_unfinished_run_is_refused(
    folder: FileSystemJobFolder, status: RunStatus | None
) -> None:
    """The error names both remedies."""
    await save(folder, 3)
    if status is not None:
        folder.begin_run()
        folder.end_run(status)

    with pytest.raises(ConfigurationError) as refused:
        await choose(folder, RecoverySettings())

    assert "--from latest" in str(refused.value)
    assert "--fresh" in str(refused.value)
    assert str(folder.path) in str(refused.value)


async def test_a_start_after_a_finished_run_begins_afresh(folder: FileSystemJobFolder) -> None:
    """Its ids go on rising."""
    await save(folder, 3)
    folder.begin_run()
    folder.end_run(RunStatus.FINISHED)

    start = await choose(folder, RecoverySettings())

    assert (chosen(start), start.first_checkpoint_id) == (None, 4)


async def test_an_unfinished_run_without_checkpoints_is_nothing_to_lose(
    folder: FileSystemJobFolder,
) -> None:
    """The next start needs no word about it."""
    folder.begin_run()

    assert chosen(await choose(folder, RecoverySettings())) is None


async def test_fresh_ignores_what_is_there(folder: FileSystemJobFolder) -> None:
    """Only the ids are kept in mind."""
    await save(folder, 3)
    folder.begin_run()

    start = await choose(folder, RecoverySettings(fresh=True))

    assert (chosen(start), start.first_checkpoint_id) == (None, 4)


async def test_a_path_names_the_checkpoint(folder: FileSystemJobFolder) -> None:
    """An older one is possible; ids still rise above the newer ones."""
    await save(folder, 3, 4)

    start = await choose(folder, RecoverySettings(path=str(folder.path / "chk-3")))

    assert (chosen(start), start.first_checkpoint_id) == (3, 5)


async def test_a_path_into_another_folder_keeps_ids_above_its_own(
    folder: FileSystemJobFolder, tmp_path: Path
) -> None:
    """A restart always shows a higher id than what it restored."""
    await save(folder, 30)

    start = await choose_start(
        InMemoryJobFolder(),
        RecoverySettings(path=str(folder.path / "chk-30")),
        run_blocking=run_directly,
    )

    assert (chosen(start), start.first_checkpoint_id) == (30, 31)


@pytest.mark.parametrize("path", ["nowhere", "counts", "counts/chk-8", "counts/chk-7"])
async def test_a_path_without_a_checkpoint_is_refused(
    folder: FileSystemJobFolder, tmp_path: Path, path: str
) -> None:
    """Neither a missing nor a half-written one is taken for something else."""
    await folder.storage.write(7, "state", b"half")

    with pytest.raises(RecoveryError, match=path):
        await choose(folder, RecoverySettings(path=str(tmp_path / path)))


async def test_a_damaged_checkpoint_given_by_path_is_an_error(folder: FileSystemJobFolder) -> None:
    """Only the latest may be another one than the newest."""
    await save(folder, 3, 4)
    (folder.path / "chk-4" / "state").write_bytes(b"saved")

    with pytest.raises(RecoveryError, match=r"chk-4.*--from another one"):
        await choose(folder, RecoverySettings(path=str(folder.path / "chk-4")))


async def test_a_restart_goes_on_from_the_newest_checkpoint_of_its_own_run(
    folder: FileSystemJobFolder,
) -> None:
    """Damaged ones are passed over; ids go on from where the run began."""
    await save(folder, 3)
    start = await choose(folder, LATEST)
    await save(folder, 4, 5)
    (folder.path / "chk-5" / "state").unlink()

    again = await restart_point(folder, start)

    assert (chosen(again), again.first_checkpoint_id) == (4, 4)
    assert [skipped.checkpoint_id for skipped in again.skipped] == [5]


async def test_a_restart_before_the_first_checkpoint_starts_as_the_run_did(
    folder: FileSystemJobFolder,
) -> None:
    """A fresh run does not fall back to state that it was told to ignore, an old one to newer."""
    await save(folder, 3, 4)
    fresh = await choose(folder, RecoverySettings(fresh=True))
    older = await choose(folder, RecoverySettings(path=str(folder.path / "chk-3")))

    assert chosen(await restart_point(folder, fresh)) is None
    assert chosen(await restart_point(folder, older)) == 3


async def test_a_run_that_has_lost_its_checkpoints_does_not_begin_anew(
    folder: FileSystemJobFolder,
) -> None:
    """The damaged ones are named, with what to do."""
    start = await choose(folder, RecoverySettings())
    await save(folder, 1)
    (folder.path / "chk-1" / "state").write_bytes(b"")
    with pytest.raises(RecoveryError, match=r"completed checkpoint 1 .*; checkpoint 1: .*--fresh"):
        await restart_point(folder, start, 1)
