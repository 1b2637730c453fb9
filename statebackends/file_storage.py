"""Checkpoints in a directory: a folder for each, the metadata put in place last.

The order of what becomes durable is what makes a checkpoint whole: contents of the state files,
their names, contents of the metadata under another name, then the rename, then the name.
"""

from __future__ import annotations

import asyncio
import errno
import os
import re
from collections.abc import Awaitable, Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Protocol, TypeVar
from urllib.parse import unquote, urlsplit
from zlib import crc32

from statebackends.errors import CheckpointStorageError, CorruptCheckpointError
from statebackends.snapshot import SnapshotFile
from statebackends.storage import (
    METADATA_NAME,
    CheckpointStorage,
    StateFile,
    check_checksum,
    check_name,
    check_size,
)

T = TypeVar("T")

_FOLDER = re.compile(r"chk-(0|[1-9][0-9]*)", re.ASCII)
_TEMPORARY_NAME = ".metadata.part"
_READ_BYTES = 1024 * 1024
_EMPTYING_ROUNDS = 10
"""How often a folder is emptied that others still write to; far more than they take part in."""


class RunBlocking(Protocol):
    """Runs a function that waits for the disk, away from the event loop if it likes."""

    def __call__(self, function: Callable[[], T], /) -> Awaitable[T]:
        """Awaits what `function` returns or raises."""


async def run_in_executor(function: Callable[[], T]) -> T:
    """Runs `function` in the default executor of the running loop."""
    return await asyncio.get_running_loop().run_in_executor(None, function)


async def run_directly(function: Callable[[], T]) -> T:
    """Runs `function` at once, for tests and simulation."""
    return function()


class FileSystemCheckpointStorage(CheckpointStorage):
    """Keeps the checkpoints of one job under `directory` (PyFlink's class of that name).

    `directory` is a path or a `file:` URL; it is made when it is first written to. Checkpoint n
    is the folder `chk-<n>`, complete once it holds `metadata`. All file access but
    `local_path` goes through `run_blocking`.
    """

    def __init__(
        self, directory: str | Path, *, run_blocking: RunBlocking = run_in_executor
    ) -> None:
        self.directory = _local_directory(directory)
        self._run_blocking = run_blocking

    def get_checkpoint_path(self) -> str:
        """The directory (PyFlink's name)."""
        return str(self.directory)

    async def write(self, checkpoint_id: int, name: str, data: bytes) -> StateFile:
        """Writes a state file; durable on return, removed again if that fails."""
        check_name(name)
        path = self._folder(checkpoint_id) / name

        def run() -> StateFile:
            self._make_folder(checkpoint_id)
            _write_durably(path, data)
            return StateFile(name, len(data), crc32(data))

        return await self._run_blocking(run)

    def local_path(self, checkpoint_id: int, name: str) -> Path | None:
        """The path of a state file; its folder is there on return."""
        check_name(name)
        self._make_folder(checkpoint_id)
        return self._folder(checkpoint_id) / name

    async def adopt(self, checkpoint_id: int, name: str) -> StateFile:
        """Makes a file that another process wrote durable and describes it."""
        check_name(name)
        path = self._folder(checkpoint_id) / name

        def run() -> StateFile:
            with _named(path, "cannot be made durable"):
                _sync(path)
                return StateFile(name, *_measure(path))

        return await self._run_blocking(run)

    async def open(self, checkpoint_id: int, file: StateFile) -> SnapshotFile:
        """Opens a state file; its size is checked, each part of it when it is read."""
        path = self._folder(checkpoint_id) / file.name

        def run() -> SnapshotFile:
            _check_there(path, file)
            return SnapshotFile.open(path)

        return await self._run_blocking(run)

    async def complete(self, checkpoint_id: int, metadata: bytes) -> None:
        """Puts the metadata in place: the checkpoint exists, durably, on return."""
        folder = self._folder(checkpoint_id)
        path = folder / METADATA_NAME

        def run() -> None:
            self._make_folder(checkpoint_id)
            if path.exists():
                raise CheckpointStorageError(f"{path}: checkpoint is complete already")
            with _named(folder, "cannot be made durable"):
                _sync(folder)
                _sync(self.directory)
            temporary = folder / _TEMPORARY_NAME
            _write_durably(temporary, metadata)
            with _named(path, "cannot be put in place"), _removed_on_failure(temporary):
                temporary.rename(path)
                _sync(folder)

        await self._run_blocking(run)

    async def checkpoints(self) -> list[int]:
        """The ids of the checkpoints that exist, ascending."""
        return await self._run_blocking(lambda: [id_ for id_ in self._begun() if self._whole(id_)])

    async def highest_id(self) -> int:
        """The highest id that has a folder."""
        return await self._run_blocking(lambda: max(self._begun(), default=0))

    async def metadata(self, checkpoint_id: int) -> bytes:
        """The metadata as it was given."""
        path = self._folder(checkpoint_id) / METADATA_NAME

        def run() -> bytes:
            try:
                return path.read_bytes()
            except OSError as error:
                raise CorruptCheckpointError(f"{path}: cannot be read: {error.strerror}") from error

        return await self._run_blocking(run)

    async def verify(self, checkpoint_id: int, files: Iterable[StateFile]) -> None:
        """Reads the files through; returns if all are there as recorded."""
        folder = self._folder(checkpoint_id)
        recorded = list(files)

        def run() -> None:
            for file in recorded:
                path = folder / file.name
                _check_there(path, file)
                try:
                    _, checksum = _measure(path)
                except OSError as error:
                    raise CorruptCheckpointError(
                        f"{path}: cannot be read: {error.strerror}"
                    ) from error
                check_checksum(str(path), checksum, file)

        await self._run_blocking(run)

    async def discard(self, checkpoint_id: int) -> None:
        """Removes a checkpoint; it stops existing before its first state file goes."""
        await self._run_blocking(lambda: self._remove_folder(checkpoint_id))

    async def discard_incomplete(self, below: int) -> list[int]:
        """Removes the folders without metadata under smaller ids."""

        def run() -> list[int]:
            incomplete = [id_ for id_ in self._begun() if id_ < below and not self._whole(id_)]
            for checkpoint_id in incomplete:
                self._remove_folder(checkpoint_id)
            return incomplete

        return await self._run_blocking(run)

    def _folder(self, checkpoint_id: int) -> Path:
        return self.directory / f"chk-{checkpoint_id}"

    def _make_folder(self, checkpoint_id: int) -> None:
        folder = self._folder(checkpoint_id)
        with _named(folder, "cannot be made"):
            missing = [path for path in folder.parents if not path.exists()]
            folder.mkdir(parents=True, exist_ok=True)
            for path in missing:
                _sync(path.parent)

    def _begun(self) -> list[int]:
        with _named(self.directory, "cannot be listed"):
            try:
                names = os.listdir(self.directory)
            except FileNotFoundError:
                return []
        return sorted(int(match[1]) for name in names if (match := _FOLDER.fullmatch(name)))

    def _whole(self, checkpoint_id: int) -> bool:
        return (self._folder(checkpoint_id) / METADATA_NAME).exists()

    def _remove_folder(self, checkpoint_id: int) -> None:
        folder = self._folder(checkpoint_id)
        with _named(folder, "cannot be removed"):
            try:
                names = os.listdir(folder)
            except FileNotFoundError:
                return
            if METADATA_NAME in names:
                (folder / METADATA_NAME).unlink(missing_ok=True)
                _sync(folder)
            _remove_with_contents(folder)


def _remove_with_contents(folder: Path) -> None:
    """Removes a folder to which a write that nobody awaits any more may still add a file.

    A subtask that was cancelled leaves its write to a thread or a child. One that comes after
    this makes the folder anew, without metadata: `discard_incomplete` finds it later.
    """
    for rest in reversed(range(_EMPTYING_ROUNDS)):
        with suppress(FileNotFoundError):
            for name in os.listdir(folder):
                (folder / name).unlink(missing_ok=True)
            try:
                folder.rmdir()
            except OSError as error:
                if error.errno != errno.ENOTEMPTY or not rest:
                    raise
                continue
        return


def _local_directory(directory: str | Path) -> Path:
    if isinstance(directory, Path) or ":" not in directory:
        return Path(directory)
    url = urlsplit(directory)
    if url.scheme == "file" and url.netloc in {"", "localhost"}:
        return Path(unquote(url.path))
    if url.scheme and "://" in directory:
        raise CheckpointStorageError(
            f"{directory}: checkpoints are kept in local directories only (a path or file:///...)"
        )
    return Path(directory)


@contextmanager
def _named(path: Path, what: str) -> Iterator[None]:
    """Turns errors of the operating system into one that names the path and the cause."""
    try:
        yield
    except OSError as error:
        raise CheckpointStorageError(f"{path}: {what}: {error.strerror or error}") from error


@contextmanager
def _removed_on_failure(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError:
        # What failed is told; that a rest of it could not be removed would only hide it.
        with suppress(OSError):
            path.unlink(missing_ok=True)
        raise


def _write_durably(path: Path, data: bytes) -> None:
    with (
        _named(path, "cannot be written"),
        _removed_on_failure(path),
        path.open("wb", buffering=0) as file,
    ):
        rest = memoryview(data)
        while rest:
            rest = rest[file.write(rest) :]
        os.fsync(file.fileno())


def _sync(path: Path) -> None:
    """Makes a file's contents or a directory's names durable."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _measure(path: Path) -> tuple[int, int]:
    """Size and checksum of a file, read through in pieces."""
    size = 0
    checksum = 0
    with path.open("rb", buffering=0) as file:
        while piece := file.read(_READ_BYTES):
            size += len(piece)
            checksum = crc32(piece, checksum)
    return size, checksum


def _check_there(path: Path, file: StateFile) -> None:
    try:
        size = path.stat().st_size
    except OSError as error:
        raise CorruptCheckpointError(f"{path}: cannot be read: {error.strerror}") from error
    check_size(str(path), size, file)
