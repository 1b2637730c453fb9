"""Writes state files, in the task's process or in a forked child."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple, Protocol, SupportsBytes
from zlib import crc32

from statebackends.errors import StateError
from statebackends.snapshot_format import (
    CHUNK_PREFIX,
    END_MAGIC,
    FORMAT_VERSION,
    HEADER,
    MAGIC,
    TRAILER,
    GroupSpan,
    StateSection,
    section_to_json,
)

if TYPE_CHECKING:
    from statebackends.backend import KeyedSnapshot, SnapshotSink

_BUFFER_BYTES = 256 * 1024


class SectionWriter:
    """Writes the groups of one state and gathers its `StateSection`.

    Usage: for each non-empty key group `begin_group`, then `write_chunk` for each run of at
    most `CHUNK_ENTRIES_MAX` entries; at the end `finish`. `alive` is asked once per chunk.
    """

    def __init__(self, sink: SnapshotSink, alive: Callable[[], bool]) -> None:
        self._sink = sink
        self._alive = alive
        self._groups: dict[int, GroupSpan] = {}
        self._group = -1
        self._start = 0
        self._crc = 0
        self._count = 0

    def begin_group(self, key_group: int) -> None:
        """Ends the group before and begins the next; a group comes once."""
        self._end_group()
        if key_group in self._groups:
            raise StateError(f"key group {key_group} was written twice")
        self._group = key_group
        self._start = self._sink.tell()
        self._crc = 0
        self._count = 0

    def write_chunk(self, chunk: bytes, count: int) -> None:
        """Appends `chunk`, which holds `count` entries, to the group.

        Raises `InterruptedError` if the snapshot is no longer wanted.
        """
        if not self._alive():
            raise InterruptedError("the snapshot is no longer wanted")
        prefix = CHUNK_PREFIX.pack(len(chunk))
        self._sink.write(prefix)
        self._sink.write(chunk)
        self._crc = crc32(chunk, crc32(prefix, self._crc))
        self._count += count

    def finish(
        self, name: str, kind: str, layout: str, key_serializer: str, value_serializer: str
    ) -> StateSection:
        """Ends the last group and describes the state."""
        self._end_group()
        return StateSection(name, kind, layout, key_serializer, value_serializer, self._groups)

    def _end_group(self) -> None:
        length = self._sink.tell() - self._start
        if self._group >= 0 and length:
            self._groups[self._group] = GroupSpan(self._start, length, self._crc, self._count)
        self._group = -1


class SnapshotFooter(NamedTuple):
    """What identifies a written state file: its size in bytes and the crc of all of them."""

    size: int
    checksum: int


class ChunkSink(Protocol):
    """Where the finished bytes go: a buffer in memory, a descriptor in a child process."""

    def write(self, chunk: bytes, /) -> object:
        """Takes all of `chunk`."""


class SnapshotFileWriter:
    """Writes one state file from front to back; is itself the `SnapshotSink` of its states.

    Serves a forked child as well: it neither imports nor logs, and beyond the index (some
    numbers per state and non-empty key group) it holds no more than a small buffer.
    """

    def __init__(self, sink: ChunkSink) -> None:
        self._sink = sink
        self._buffer = bytearray()
        self._size = 0
        self._checksum = 0
        self._operators: dict[str, dict[str, object]] = {}
        head = HEADER.pack(MAGIC, FORMAT_VERSION, 0)
        self.write(HEADER.pack(MAGIC, FORMAT_VERSION, crc32(head)))

    def write(self, chunk: bytes) -> None:
        """Appends to the body; only `KeyedSnapshot.write` calls this from outside."""
        self._buffer += chunk
        self._size += len(chunk)
        if len(self._buffer) >= _BUFFER_BYTES:
            self._flush()

    def tell(self) -> int:
        """Bytes of the file so far."""
        return self._size

    def add_keyed(
        self, operator_uid: str, snapshot: KeyedSnapshot, alive: Callable[[], bool]
    ) -> None:
        """Writes the keyed state of an operator; at most once per operator."""
        sections = snapshot.write(self, alive)
        names = [section.name for section in sections]
        if len(set(names)) != len(names):
            raise StateError(f"operator {operator_uid}: two states have one name: {sorted(names)}")
        key_groups = snapshot.key_group_range
        self._entry(operator_uid, "keyed")["keyed"] = {
            "key_groups": [key_groups.start, key_groups.end],
            "max_parallelism": snapshot.max_parallelism,
            "sections": [section_to_json(section) for section in sections],
        }

    def add_operator_state(self, operator_uid: str, blob: SupportsBytes) -> None:
        """Writes the operator state of an operator; at most once per operator."""
        data = bytes(blob)
        entry = self._entry(operator_uid, "operator_state")
        entry["operator_state"] = [self._size, len(data), crc32(data)]
        self.write(data)

    def finish(self) -> SnapshotFooter:
        """Writes the index and the trailer; the file is whole after this."""
        offset = self._size
        index = json.dumps(
            {"operators": self._operators}, ensure_ascii=False, separators=(",", ":")
        ).encode("utf-8", "surrogatepass")
        self.write(index)
        fields = (offset, len(index), crc32(index))
        crc = crc32(TRAILER.pack(*fields, 0, END_MAGIC))
        self.write(TRAILER.pack(*fields, crc, END_MAGIC))
        self._flush()
        return SnapshotFooter(self._size, self._checksum)

    def _entry(self, operator_uid: str, part: str) -> dict[str, object]:
        entry = self._operators.setdefault(operator_uid, {})
        if part in entry:
            raise StateError(f"operator {operator_uid} wrote its {part} twice into one file")
        return entry

    def _flush(self) -> None:
        data = bytes(self._buffer)
        self._buffer.clear()
        self._checksum = crc32(data, self._checksum)
        self._sink.write(data)
