"""Where a state file is read from: a file by ranges, or bytes in memory."""

from __future__ import annotations

import os
import weakref
from pathlib import Path
from typing import Protocol

from statebackends.errors import CorruptCheckpointError


class SnapshotSource(Protocol):
    """Random access to the bytes of one state file."""

    @property
    def name(self) -> str:
        """What errors call it."""

    @property
    def size(self) -> int:
        """Bytes in all."""

    def read(self, offset: int, length: int) -> bytes:
        """Exactly `length` bytes; raises `CorruptCheckpointError` if there are fewer."""

    def close(self) -> None:
        """Releases what it holds; may be called twice."""


def open_source(source: Path | bytes, name: str | None) -> SnapshotSource:
    """Opens a file or wraps bytes; raises `CorruptCheckpointError` if there is no such file."""
    if isinstance(source, bytes):
        return _MemorySource(source, name or "state file in memory")
    return _FileSource(source, name or str(source))


class _MemorySource:
    def __init__(self, data: bytes, name: str) -> None:
        self._data = data
        self.name = name
        self.size = len(data)

    def read(self, offset: int, length: int) -> bytes:
        data = self._data[offset : offset + length]
        _check_length(self.name, data, length)
        return data

    def close(self) -> None:
        """Nothing is held open."""


class _FileSource:
    """Reads by position, not through a memory map: a bad disk is an error then, not a signal."""

    def __init__(self, path: Path, name: str) -> None:
        self.name = name
        try:
            self._descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        except OSError as error:
            raise CorruptCheckpointError(f"{name}: cannot be opened: {error.strerror}") from error
        self._close = weakref.finalize(self, os.close, self._descriptor)
        self.size = os.fstat(self._descriptor).st_size

    def read(self, offset: int, length: int) -> bytes:
        parts: list[bytes] = []
        missing = length
        try:
            while missing and (part := os.pread(self._descriptor, missing, offset)):
                parts.append(part)
                offset += len(part)
                missing -= len(part)
        except OSError as error:
            raise CorruptCheckpointError(
                f"{self.name}: cannot be read: {error.strerror}"
            ) from error
        data = b"".join(parts)
        _check_length(self.name, data, length)
        return data

    def close(self) -> None:
        self._close()


def _check_length(name: str, data: bytes, length: int) -> None:
    if len(data) != length:
        raise CorruptCheckpointError(f"{name}: cut short ({length - len(data)} bytes missing)")
