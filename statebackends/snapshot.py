"""The state file: what one subtask wrote at one checkpoint, readable key group by key group.

Layout::

    header    magic, format version, crc of both
    body      the groups of each keyed state, the blobs of operator states, in any order
    index     JSON: for each operator its keyed states and where their groups lie
    trailer   offset, length and crc of the index, crc of the trailer, magic

A group is a run of chunks, each with its length before it. Every byte is covered by a crc: a
half-written file has no trailer, a changed one fails where it is read. Only the ranges asked for
are read. Nothing in the format itself is unpickled; what the chunks hold is up to the state's
serializers, whose identities stand in the index.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, Self, SupportsBytes
from zlib import crc32

from statebackends.errors import CorruptCheckpointError, StateError
from statebackends.keygroups import KeyGroupRange
from statebackends.operator_state_format import RestoredOperatorState
from statebackends.snapshot_source import SnapshotSource, open_source

if TYPE_CHECKING:
    from statebackends.backend import KeyedSnapshot, SnapshotSink

FORMAT_VERSION = 1
CHUNK_ENTRIES_MAX = 1000
"""Most entries in one chunk, so that a writer asks often enough whether it is still wanted."""

_MAGIC = b"rvr-head"
_END_MAGIC = b"rvr-tail"
_HEADER = struct.Struct("<8sII")
_TRAILER = struct.Struct("<QQII8s")
_CHUNK = struct.Struct("<I")
_BUFFER_BYTES = 256 * 1024


class GroupSpan(NamedTuple):
    """Where one key group of one state lies in the file, and how many entries it has."""

    offset: int
    length: int
    crc: int
    entries: int


@dataclass(frozen=True, slots=True)
class StateSection:
    """One keyed state (or timer queue) in a state file.

    `kind` and `layout` are words of the backend that wrote it, `key_serializer` and
    `value_serializer` the identities of its serializers. `groups` has the non-empty key groups
    only.
    """

    name: str
    kind: str
    layout: str
    key_serializer: str
    value_serializer: str
    groups: dict[int, GroupSpan]

    @property
    def entries(self) -> int:
        """Entries of all key groups."""
        return sum(span.entries for span in self.groups.values())


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
        prefix = _CHUNK.pack(len(chunk))
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
        head = _HEADER.pack(_MAGIC, FORMAT_VERSION, 0)
        self.write(_HEADER.pack(_MAGIC, FORMAT_VERSION, crc32(head)))

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
            "sections": [_section_to_json(section) for section in sections],
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
        crc = crc32(_TRAILER.pack(*fields, 0, _END_MAGIC))
        self.write(_TRAILER.pack(*fields, crc, _END_MAGIC))
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


class RestoredKeyedState:
    """One former subtask's keyed state of one operator (the concrete class of the contract)."""

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
            (length,) = _CHUNK.unpack_from(data, position)
            position += _CHUNK.size
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


def _section_to_json(section: StateSection) -> list[object]:
    groups = [[key_group, *span] for key_group, span in section.groups.items()]
    return [
        section.name,
        section.kind,
        section.layout,
        section.key_serializer,
        section.value_serializer,
        groups,
    ]


def _section_from_json(section: list[Any]) -> StateSection:
    name, kind, layout, key_serializer, value_serializer, groups = section
    spans = {key_group: GroupSpan(*span) for key_group, *span in groups}
    return StateSection(name, kind, layout, key_serializer, value_serializer, spans)


def _check_header(source: SnapshotSource) -> None:
    head = source.read(0, _HEADER.size)
    magic, version, crc = _HEADER.unpack(head)
    if magic != _MAGIC:
        raise CorruptCheckpointError(f"{source.name}: not a state file (no header)")
    if crc != crc32(_HEADER.pack(magic, version, 0)):
        raise CorruptCheckpointError(f"{source.name}: the header is damaged (checksum differs)")
    if version > FORMAT_VERSION:
        raise StateError(
            f"{source.name}: written in format version {version}, newer than version"
            f" {FORMAT_VERSION}, the newest that this program reads"
        )


def _read_index(source: SnapshotSource) -> dict[str, _OperatorIndex]:
    if source.size < _HEADER.size + _TRAILER.size:
        raise CorruptCheckpointError(f"{source.name}: cut short ({source.size} bytes)")
    trailer = source.read(source.size - _TRAILER.size, _TRAILER.size)
    offset, length, index_crc, crc, magic = _TRAILER.unpack(trailer)
    if magic != _END_MAGIC:
        raise CorruptCheckpointError(f"{source.name}: cut short (no trailer at its end)")
    if crc != crc32(_TRAILER.pack(offset, length, index_crc, 0, _END_MAGIC)):
        raise CorruptCheckpointError(f"{source.name}: the trailer is damaged (checksum differs)")
    if offset + length + _TRAILER.size != source.size:
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
            [_section_from_json(section) for section in keyed["sections"]],
        ),
        None if blob is None else (blob[0], blob[1], blob[2]),
    )
