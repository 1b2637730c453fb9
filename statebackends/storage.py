"""Where checkpoints are kept: the contract, and the storage in memory.

A checkpoint is a set of state files and one metadata object, which comes last: it exists as
soon as its metadata is there, and not a moment before. What the metadata says, the names of the
state files (with epoch and attempt, so that none is ever written twice) and which files belong
to a checkpoint is up to the caller.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple
from zlib import crc32

from statebackends.errors import CheckpointStorageError, CorruptCheckpointError
from statebackends.snapshot import SnapshotFile

METADATA_NAME = "metadata"
"""The name of the object that makes a checkpoint exist; no state file can have it."""

IN_MEMORY_BYTES_MAX = 5 * 1024 * 1024
"""Largest state file that is kept in memory (Flink: `JobManagerCheckpointStorage`)."""


class StateFile(NamedTuple):
    """What the metadata records of a state file."""

    name: str
    size: int
    """Bytes."""
    checksum: int
    """The crc of all of them."""


class CheckpointStorage(ABC):
    """Keeps the checkpoints of one job.

    Methods raise `CheckpointStorageError` if something could not be written or removed and
    `CorruptCheckpointError` if what should be there is missing or differs; both name the file.
    """

    @abstractmethod
    async def write(self, checkpoint_id: int, name: str, data: bytes) -> StateFile:
        """Keeps a state file; durable on return. Leaves nothing behind if it fails."""

    @abstractmethod
    def local_path(self, checkpoint_id: int, name: str) -> Path | None:
        """Where another process may write a state file that is then adopted.

        Its directory is there on return. None if there is no such place.
        """

    @abstractmethod
    async def adopt(self, checkpoint_id: int, name: str) -> StateFile:
        """Makes a file written at `local_path` durable and describes it."""

    @abstractmethod
    async def open(self, checkpoint_id: int, file: StateFile) -> SnapshotFile:
        """Opens a state file; its size is checked, each part of it when it is read."""

    @abstractmethod
    async def complete(self, checkpoint_id: int, metadata: bytes) -> None:
        """Puts the metadata in place: the checkpoint exists, durably, on return.

        If it fails the checkpoint may exist or not (a disk can lose an answer), but never half.
        """

    @abstractmethod
    async def checkpoints(self) -> list[int]:
        """The ids of the checkpoints that exist, ascending."""

    @abstractmethod
    async def highest_id(self) -> int:
        """The highest id that was ever begun here and not discarded since; 0 if there is none."""

    @abstractmethod
    async def metadata(self, checkpoint_id: int) -> bytes:
        """The metadata as it was given."""

    @abstractmethod
    async def verify(self, checkpoint_id: int, files: Iterable[StateFile]) -> None:
        """Returns if all the files are there, each of the size and checksum recorded."""

    @abstractmethod
    async def discard(self, checkpoint_id: int) -> None:
        """Removes a checkpoint, complete or not; nothing happens if there is none."""

    @abstractmethod
    async def discard_incomplete(self, below: int) -> list[int]:
        """Removes what was begun and not completed under ids smaller than `below`.

        Returns their ids. Call it with the newest complete checkpoint.
        """


class InMemoryCheckpointStorage(CheckpointStorage):
    """Keeps checkpoints in this process: for tests, simulation and small trials.

    Refuses a state file above `file_bytes_max`. Never waits.
    """

    def __init__(self, file_bytes_max: int = IN_MEMORY_BYTES_MAX) -> None:
        self._file_bytes_max = file_bytes_max
        self._files: dict[int, dict[str, bytes]] = {}

    async def write(self, checkpoint_id: int, name: str, data: bytes) -> StateFile:
        """Keeps a state file, unless it is too large."""
        check_name(name)
        label = self._label(checkpoint_id, name)
        if len(data) > self._file_bytes_max:
            raise CheckpointStorageError(
                f"{label}: {len(data)} bytes are more than the {self._file_bytes_max} that are"
                " kept in memory; use FileSystemCheckpointStorage"
            )
        self._files.setdefault(checkpoint_id, {})[name] = bytes(data)
        return StateFile(name, len(data), crc32(data))

    def local_path(self, checkpoint_id: int, name: str) -> Path | None:
        """There is no place that another process can write to."""
        return None

    async def adopt(self, checkpoint_id: int, name: str) -> StateFile:
        """Nothing can have been written from outside."""
        raise CheckpointStorageError(f"{self._label(checkpoint_id, name)}: was never written")

    async def open(self, checkpoint_id: int, file: StateFile) -> SnapshotFile:
        """Opens a state file."""
        label = self._label(checkpoint_id, file.name)
        return SnapshotFile.open(self._checked(checkpoint_id, file, whole=False), label)

    async def complete(self, checkpoint_id: int, metadata: bytes) -> None:
        """Makes the checkpoint exist."""
        files = self._files.setdefault(checkpoint_id, {})
        if METADATA_NAME in files:
            raise CheckpointStorageError(f"checkpoint {checkpoint_id} is complete already")
        files[METADATA_NAME] = metadata

    async def checkpoints(self) -> list[int]:
        """The ids of the checkpoints that exist, ascending."""
        return sorted(id_ for id_, files in self._files.items() if METADATA_NAME in files)

    async def highest_id(self) -> int:
        """The highest id that was begun."""
        return max(self._files, default=0)

    async def metadata(self, checkpoint_id: int) -> bytes:
        """The metadata as it was given."""
        return self._read(checkpoint_id, METADATA_NAME)

    async def verify(self, checkpoint_id: int, files: Iterable[StateFile]) -> None:
        """Returns if all the files are there as recorded."""
        for file in files:
            self._checked(checkpoint_id, file, whole=True)

    async def discard(self, checkpoint_id: int) -> None:
        """Forgets a checkpoint."""
        self._files.pop(checkpoint_id, None)

    async def discard_incomplete(self, below: int) -> list[int]:
        """Forgets what was never completed under smaller ids."""
        incomplete = sorted(
            id_ for id_, files in self._files.items() if id_ < below and METADATA_NAME not in files
        )
        for checkpoint_id in incomplete:
            del self._files[checkpoint_id]
        return incomplete

    def _label(self, checkpoint_id: int, name: str) -> str:
        return f"checkpoint {checkpoint_id} in memory, {name}"

    def _read(self, checkpoint_id: int, name: str) -> bytes:
        data = self._files.get(checkpoint_id, {}).get(name)
        if data is None:
            raise CorruptCheckpointError(f"{self._label(checkpoint_id, name)}: is missing")
        return data

    def _checked(self, checkpoint_id: int, file: StateFile, *, whole: bool) -> bytes:
        data = self._read(checkpoint_id, file.name)
        label = self._label(checkpoint_id, file.name)
        check_size(label, len(data), file)
        if whole:
            check_checksum(label, crc32(data), file)
        return data


def check_name(name: str) -> None:
    """Raises `CheckpointStorageError` unless `name` can be that of a state file."""
    if not name or name.startswith((METADATA_NAME, ".")) or "/" in name:
        raise CheckpointStorageError(f"{name!r} cannot be the name of a state file")


def check_size(label: str, size: int, file: StateFile) -> None:
    """Raises `CorruptCheckpointError` unless the size is that recorded."""
    if size != file.size:
        raise CorruptCheckpointError(f"{label}: has {size} bytes, {file.size} were written")


def check_checksum(label: str, checksum: int, file: StateFile) -> None:
    """Raises `CorruptCheckpointError` unless the checksum is that recorded."""
    if checksum != file.checksum:
        raise CorruptCheckpointError(f"{label}: is damaged (checksum differs)")
