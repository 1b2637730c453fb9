"""State files: what one subtask wrote at one checkpoint, read key group by key group.

`snapshot_format.py` says how they look, `snapshot_writer.py` writes them.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple, Self
from zlib import crc32

from statebackends.errors import CorruptCheckpointError, StateError
from statebackends.keygroups import KeyGroupRange
from statebackends.operator_state_format import RestoredOperatorState
from statebackends.snapshot_format import (
    CHUNK_ENTRIES_MAX,
    CHUNK_PREFIX,
    END_MAGIC,
    FORMAT_VERSION,
    HEADER,
    MAGIC,
    TRAILER,
    GroupSpan,
    StateSection,
    section_from_json,
)
from statebackends.snapshot_source import SnapshotSource, open_source
from statebackends.snapshot_writer import (
    ChunkSink,
    SectionWriter,
    SnapshotFileWriter,
    SnapshotFooter,
)

__all__ = [
    "CHUNK_ENTRIES_MAX",
    "FORMAT_VERSION",
    "ChunkSink",
    "GroupSpan",
    "RestoredKeyedState",
    "SectionWriter",
    "SnapshotFile",
    "SnapshotFileWriter",
    "SnapshotFooter",
    "StateSection",
]


class RestoredKeyedState:
    """One former subtask's keyed state of one operator."""

    def __init__(
        self,
        source: SnapshotSource,
        key_groups: KeyGroupRange,
        max_parallelism: int,
        sections: list[StateSection],
    ) -> None:
        self._source = source
        self.key_groups = key_groups
        self.max_parallelism = max_parallelism
        self.sections = sections

    def read_group(self, section: StateSection, key_group: int) -> bytes:
        """The group's bytes as they were written, chunk prefixes included; none if empty.

        Raises `CorruptCheckpointError` if they are not those that were written.
        """
        span = section.groups.get(key_group)
        if span is None:
            return b""
        data = self._source.read(span.offset, span.length)
        if crc32(data) != span.crc:
            raise CorruptCheckpointError(
                f"{self._source.name}: key group {key_group} of state {section.name!r} is"
                " damaged (checksum differs)"
            )
        return data

    def read_chunks(self, section: StateSection, key_group: int) -> Iterator[bytes]:
        """The chunks of a group as `SectionWriter.write_chunk` took them."""
        data = self.read_group(section, key_group)
        position = 0
        while position < len(data):
            (length,) = CHUNK_PREFIX.unpack_from(data, position)
            position += CHUNK_PREFIX.size
            yield data[position : position + length]
            position += length


class SnapshotFile:
    """A state file opened for reading; `close` may be left to the garbage collector."""

    def __init__(self, source: SnapshotSource, operators: dict[str, _OperatorIndex]) -> None:
        self._source = source
        self._operators = operators

    @classmethod
    def open(cls, source: Path | bytes, name: str | None = None) -> SnapshotFile:
        """Opens a file or its bytes; `name` stands for it in errors.

        Raises `CorruptCheckpointError` if it is missing, cut short, damaged or no state file,
        and `StateError` if a newer version of the format wrote it.
        """
        opened = open_source(source, name)
        _check_header(opened)
        return cls(opened, _read_index(opened))

    @property
    def operators(self) -> list[str]:
        """The uids of the operators that wrote something."""
        return list(self._operators)

    def keyed(self, operator_uid: str) -> RestoredKeyedState | None:
        """The keyed state of an operator, None if it wrote none."""
        entry = self._operators.get(operator_uid)
        if entry is None or entry.keyed is None:
            return None
        key_groups, max_parallelism, sections = entry.keyed
        return RestoredKeyedState(self._source, key_groups, max_parallelism, sections)

    def operator_state(self, operator_uid: str) -> RestoredOperatorState | None:
        """The operator state of an operator, None if it wrote none; raises as `open` does."""
        entry = self._operators.get(operator_uid)
        if entry is None or entry.operator_state is None:
            return None
        offset, length, crc = entry.operator_state
        data = self._source.read(offset, length)
        if crc32(data) != crc:
            raise CorruptCheckpointError(
                f"{self._source.name}: the operator state of {operator_uid!r} is damaged"
                " (checksum differs)"
            )
        return RestoredOperatorState.parse(data, f"{self._source.name}, operator {operator_uid!r}")

    def close(self) -> None:
        """Releases the descriptor; what was read stays valid."""
        self._source.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class _OperatorIndex(NamedTuple):
    keyed: tuple[KeyGroupRange, int, list[StateSection]] | None
    operator_state: tuple[int, int, int] | None


def _check_header(source: SnapshotSource) -> None:
    head = source.read(0, HEADER.size)
    magic, version, crc = HEADER.unpack(head)
    if magic != MAGIC:
        raise CorruptCheckpointError(f"{source.name}: not a state file (no header)")
    if crc != crc32(HEADER.pack(magic, version, 0)):
        raise CorruptCheckpointError(f"{source.name}: the header is damaged (checksum differs)")
    if version > FORMAT_VERSION:
        raise StateError(
            f"{source.name}: written in format version {version}, newer than version"
            f" {FORMAT_VERSION}, the newest that this program reads"
        )


def _read_index(source: SnapshotSource) -> dict[str, _OperatorIndex]:
    if source.size < HEADER.size + TRAILER.size:
        raise CorruptCheckpointError(f"{source.name}: cut short ({source.size} bytes)")
    trailer = source.read(source.size - TRAILER.size, TRAILER.size)
    offset, length, index_crc, crc, magic = TRAILER.unpack(trailer)
    if magic != END_MAGIC:
        raise CorruptCheckpointError(f"{source.name}: cut short (no trailer at its end)")
    if crc != crc32(TRAILER.pack(offset, length, index_crc, 0, END_MAGIC)):
        raise CorruptCheckpointError(f"{source.name}: the trailer is damaged (checksum differs)")
    if offset + length + TRAILER.size != source.size:
        raise CorruptCheckpointError(f"{source.name}: bytes are missing or too many")
    index = source.read(offset, length)
    if crc32(index) != index_crc:
        raise CorruptCheckpointError(f"{source.name}: the index is damaged (checksum differs)")
    operators = json.loads(index.decode("utf-8", "surrogatepass"))["operators"]
    return {uid: _operator_from_json(entry) for uid, entry in operators.items()}


def _operator_from_json(entry: dict[str, Any]) -> _OperatorIndex:
    keyed = entry.get("keyed")
    blob = entry.get("operator_state")
    return _OperatorIndex(
        None
        if keyed is None
        else (
            KeyGroupRange(*keyed["key_groups"]),
            keyed["max_parallelism"],
            [section_from_json(section) for section in keyed["sections"]],
        ),
        None if blob is None else (blob[0], blob[1], blob[2]),
    )
