"""Checkpoint storages: a checkpoint exists with its metadata, whole, or not at all."""

import errno
import io
import os
from collections.abc import Callable
from pathlib import Path
from zlib import crc32

import pytest

from statebackends.errors import CheckpointStorageError, CorruptCheckpointError
from statebackends.file_storage import FileSystemCheckpointStorage, run_directly
from statebackends.operator_state_format import (
    ListStateEntries,
    OperatorStateSnapshot,
    RedistributionMode,
)
from statebackends.snapshot import SnapshotFileWriter
from statebackends.storage import CheckpointStorage, InMemoryCheckpointStorage, StateFile


@pytest.fixture(params=["memory", "directory", "directory in threads"])
def storage(request: pytest.FixtureRequest, tmp_path: Path) -> CheckpointStorage:
    if request.param == "memory":
        return InMemoryCheckpointStorage()
    if request.param == "directory":
        return FileSystemCheckpointStorage(tmp_path / "job", run_blocking=run_directly)
    return FileSystemCheckpointStorage(tmp_path / "job")


@pytest.fixture
def files(tmp_path: Path) -> FileSystemCheckpointStorage:
    return FileSystemCheckpointStorage(tmp_path, run_blocking=run_directly)


def state_file(entry: bytes = b"x") -> bytes:
    sink = io.BytesIO()
    writer = SnapshotFileWriter(sink)
    state = ListStateEntries(RedistributionMode.UNION, "bytes/1", [entry])
    writer.add_operator_state("op", OperatorStateSnapshot({"s": state}))
    writer.finish()
    return sink.getvalue()


def names_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


async def test_a_state_file_can_be_opened_again(storage: CheckpointStorage) -> None:
    """What was written is what is read."""
    written = await storage.write(3, "op-0-e1-a0", state_file(b"entry"))
    with await storage.open(3, written) as file:
        state = file.operator_state("op")
    assert state is not None
    assert state.states["s"].entries == [b"entry"]


async def test_a_checkpoint_exists_once_it_is_complete(storage: CheckpointStorage) -> None:
    """State files alone make no checkpoint; metadata does."""
    await storage.write(3, "a", state_file())
    before = await storage.checkpoints()
    await storage.complete(3, b"metadata of 3")
    assert before == []
    assert await storage.checkpoints() == [3]
    assert await storage.metadata(3) == b"metadata of 3"


async def test_checkpoints_are_listed_by_number(storage: CheckpointStorage) -> None:
    """Ten comes after nine, whatever the order of completion."""
    for checkpoint_id in (10, 9, 100):
        await storage.complete(checkpoint_id, b"m")
    assert await storage.checkpoints() == [9, 10, 100]


async def test_the_highest_id_counts_what_was_only_begun(storage: CheckpointStorage) -> None:
    """New ids must lie above those of incomplete checkpoints as well."""
    nothing = await storage.highest_id()
    await storage.complete(4, b"m")
    await storage.write(7, "a", b"data")
    assert (nothing, await storage.highest_id()) == (0, 7)


async def test_an_id_is_completed_once(storage: CheckpointStorage) -> None:
    """A second completion would replace a checkpoint that others rely on."""
    await storage.complete(4, b"first")
    with pytest.raises(CheckpointStorageError, match="4"):
        await storage.complete(4, b"second")
    assert await storage.metadata(4) == b"first"


async def test_missing_metadata_is_corrupt(storage: CheckpointStorage) -> None:
    """Asking for the metadata of an incomplete checkpoint says what is missing."""
    await storage.write(4, "a", b"data")
    with pytest.raises(CorruptCheckpointError, match="metadata"):
        await storage.metadata(4)


async def test_verifying_accepts_what_was_written(storage: CheckpointStorage) -> None:
    """Files as recorded pass, however many and however large."""
    written = [await storage.write(1, f"f{n}", bytes([n]) * n * 700_000) for n in range(4)]
    await storage.verify(1, written)


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (lambda f: f._replace(name="gone"), "gone"),
        (lambda f: f._replace(size=f.size + 1), "bytes"),
        (lambda f: f._replace(checksum=f.checksum ^ 1), "checksum"),
    ],
)
async def test_verifying_names_what_differs(
    storage: CheckpointStorage, change: Callable[[StateFile], StateFile], problem: str
) -> None:
    """A missing file, another size and other bytes are each told."""
    written = await storage.write(1, "f", b"data")
    with pytest.raises(CorruptCheckpointError, match=problem):
        await storage.verify(1, [written, change(written)])


async def test_a_file_of_another_size_is_not_opened(storage: CheckpointStorage) -> None:
    """A state file that the metadata describes otherwise is refused before it is read."""
    written = await storage.write(1, "f", state_file())
    with pytest.raises(CorruptCheckpointError, match="bytes"):
        await storage.open(1, written._replace(size=written.size - 1))


async def test_a_discarded_checkpoint_is_gone(storage: CheckpointStorage) -> None:
    """Discarding removes metadata and files, and may be repeated."""
    written = await storage.write(1, "f", state_file())
    await storage.complete(1, b"m")
    await storage.discard(1)
    await storage.discard(1)
    assert (await storage.checkpoints(), await storage.highest_id()) == ([], 0)
    with pytest.raises(CorruptCheckpointError):
        await storage.open(1, written)


async def test_only_older_incomplete_checkpoints_are_orphans(storage: CheckpointStorage) -> None:
    """Complete ones stay, and so do those begun after the newest complete one."""
    for checkpoint_id in (1, 2, 3, 5):
        await storage.write(checkpoint_id, "f", b"data")
    await storage.complete(3, b"m")
    await storage.complete(1, b"m")
    removed = await storage.discard_incomplete(below=3)
    assert (removed, await storage.checkpoints()) == ([2], [1, 3])
    assert await storage.highest_id() == 5


@pytest.mark.parametrize("name", ["", "metadata", "../x", "a/b", ".hidden"])
async def test_a_name_outside_the_checkpoint_is_refused(
    storage: CheckpointStorage, name: str
) -> None:
    """No state file can lie elsewhere or pass for the metadata."""
    with pytest.raises(CheckpointStorageError, match="name"):
        await storage.write(1, name, b"data")


async def test_memory_refuses_large_files_and_says_what_to_use() -> None:
    """State above the bound does not belong into memory."""
    storage = InMemoryCheckpointStorage(file_bytes_max=10)
    await storage.write(1, "f", b"x" * 10)
    with pytest.raises(CheckpointStorageError, match="FileSystemCheckpointStorage"):
        await storage.write(1, "g", b"x" * 11)


async def test_memory_offers_no_place_for_another_process() -> None:
    """What a child would write cannot be adopted from memory."""
    storage = InMemoryCheckpointStorage()
    assert storage.local_path(1, "f") is None
    with pytest.raises(CheckpointStorageError):
        await storage.adopt(1, "f")


async def test_a_file_of_another_process_is_adopted(files: FileSystemCheckpointStorage) -> None:
    """A file written at its local path becomes a state file like any other."""
    path = files.local_path(2, "op-1-e1-a0")
    assert path is not None
    path.write_bytes(state_file(b"child"))
    adopted = await files.adopt(2, "op-1-e1-a0")
    assert adopted == StateFile(
        "op-1-e1-a0", len(state_file(b"child")), crc32(state_file(b"child"))
    )
    await files.verify(2, [adopted])


async def test_adopting_what_is_not_there_fails(files: FileSystemCheckpointStorage) -> None:
    """A child that wrote nothing cannot be mistaken for one that did."""
    path = files.local_path(2, "f")
    with pytest.raises(CheckpointStorageError, match=str(path)):
        await files.adopt(2, "f")


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EIO])
async def test_a_failed_write_names_path_and_cause_and_leaves_nothing(
    files: FileSystemCheckpointStorage,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    code: int,
) -> None:
    """A full or broken disk is one clear error, and the partial file is removed."""

    def fail(descriptor: int) -> None:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(CheckpointStorageError, match=f"chk-1/f.*{os.strerror(code)}"):
        await files.write(1, "f", b"data")
    assert names_in(tmp_path / "chk-1") == []


async def test_a_really_full_device_is_a_clear_error(
    files: FileSystemCheckpointStorage, tmp_path: Path
) -> None:
    """The error of a device without space reaches the caller as such."""
    folder = tmp_path / "chk-1"
    folder.mkdir()
    (folder / "f").symlink_to("/dev/full")
    with pytest.raises(CheckpointStorageError, match=r"chk-1/f: .*space"):
        await files.write(1, "f", b"data")
    assert names_in(folder) == []


async def test_metadata_that_cannot_be_made_durable_makes_no_checkpoint(
    files: FileSystemCheckpointStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If writing the metadata fails the checkpoint does not exist and can be discarded."""
    await files.write(1, "f", b"data")
    with monkeypatch.context() as patch:
        patch.setattr(Path, "rename", _raise_no_space)
        with pytest.raises(CheckpointStorageError, match="metadata"):
            await files.complete(1, b"m")
    assert await files.checkpoints() == []
    assert names_in(files.directory / "chk-1") == ["f"]
    await files.discard(1)
    assert await files.highest_id() == 0


def _raise_no_space(*_: object) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


async def test_everything_is_durable_before_the_metadata_has_its_name(
    files: FileSystemCheckpointStorage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Contents and names are synced first, then comes the rename, then the folder once more."""
    steps: list[str] = []
    fsync, rename = os.fsync, Path.rename

    def watched_fsync(descriptor: int) -> None:
        steps.append(Path(os.readlink(f"/proc/self/fd/{descriptor}")).name)
        fsync(descriptor)

    def watched_rename(self: Path, target: Path) -> Path:
        steps.append("rename")
        return rename(self, target)

    monkeypatch.setattr(os, "fsync", watched_fsync)
    monkeypatch.setattr(Path, "rename", watched_rename)
    await files.write(1, "f", b"data")
    await files.complete(1, b"m")
    assert steps == ["f", "chk-1", tmp_path.name, ".metadata.part", "rename", "chk-1"]


async def test_foreign_files_in_the_directory_are_left_alone(
    files: FileSystemCheckpointStorage, tmp_path: Path
) -> None:
    """Only folders named like a checkpoint count as one."""
    for name in ("chk-", "chk-x", "chk-01", "lock", "xchk-1"):
        (tmp_path / name).mkdir()
    assert await files.discard_incomplete(below=10**9) == []
    assert await files.highest_id() == 0
    assert len(names_in(tmp_path)) == 5


async def test_a_directory_that_is_not_there_yet_has_no_checkpoints(tmp_path: Path) -> None:
    """Reading makes no directory; the first write does."""
    storage = FileSystemCheckpointStorage(tmp_path / "a" / "b", run_blocking=run_directly)
    assert await storage.checkpoints() == []
    assert not (tmp_path / "a").exists()
    await storage.complete(1, b"m")
    assert await storage.checkpoints() == [1]


async def test_a_path_in_the_way_is_named(tmp_path: Path) -> None:
    """A file where the directory should be is told as such."""
    (tmp_path / "file").write_bytes(b"")
    storage = FileSystemCheckpointStorage(tmp_path / "file", run_blocking=run_directly)
    with pytest.raises(CheckpointStorageError, match="file"):
        await storage.write(1, "f", b"data")


@pytest.mark.parametrize(
    ("given", "path"),
    [
        ("some/where", "some/where"),
        ("file:///some/wh%20ere", "/some/wh ere"),
        ("file:/some/where", "/some/where"),
    ],
)
def test_the_directory_may_be_a_file_url(given: str, path: str) -> None:
    """PyFlink programs give URLs, people give paths."""
    assert FileSystemCheckpointStorage(given).get_checkpoint_path() == path


def test_other_urls_are_refused() -> None:
    """A store that is not there must not become a local folder of a strange name."""
    with pytest.raises(CheckpointStorageError, match="s3://bucket"):
        FileSystemCheckpointStorage("s3://bucket/x")


async def test_a_checkpoint_is_removed_though_a_write_is_late(
    files: FileSystemCheckpointStorage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A cancelled subtask's write goes on in its thread; it must not keep the folder."""
    await files.write(1, "op-0-e1-a0", b"x")
    late = ["op-1-e1-a0", "op-2-e1-a0"]
    rmdir = Path.rmdir

    def written_just_before(folder: Path) -> None:
        if late:
            (folder / late.pop()).write_bytes(b"late")
        rmdir(folder)

    monkeypatch.setattr(Path, "rmdir", written_just_before)
    await files.discard(1)
    assert not late
    assert names_in(tmp_path) == []


async def test_a_folder_that_others_keep_filling_is_left(
    files: FileSystemCheckpointStorage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Removing it ends with an error, not never; it is no checkpoint and can be removed later."""
    await files.write(1, "op-0-e1-a0", b"x")
    await files.complete(1, b"metadata")

    def filled_again(folder: Path) -> None:
        raise OSError(errno.ENOTEMPTY, os.strerror(errno.ENOTEMPTY), str(folder))

    with monkeypatch.context() as patch:
        patch.setattr(Path, "rmdir", filled_again)
        with pytest.raises(CheckpointStorageError, match="Directory not empty"):
            await files.discard(1)
    assert await files.checkpoints() == []
    assert await files.discard_incomplete(below=2) == [1]
    assert names_in(tmp_path) == []
