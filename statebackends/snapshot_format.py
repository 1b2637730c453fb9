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

import struct
from dataclasses import dataclass
from typing import Any, NamedTuple

FORMAT_VERSION = 1
"""The version that is written; files of a newer one are refused."""

CHUNK_ENTRIES_MAX = 1000
"""Most entries in one chunk, so that a writer asks often enough whether it is still wanted."""

MAGIC = b"rvr-head"
END_MAGIC = b"rvr-tail"

HEADER = struct.Struct("<8sII")
"""Magic, version, crc of both (over zero in its own place)."""

TRAILER = struct.Struct("<QQII8s")
"""Offset, length and crc of the index, crc of the trailer (as above), magic."""

CHUNK_PREFIX = struct.Struct("<I")
"""Length of the chunk that follows."""


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


def section_to_json(section: StateSection) -> list[object]:
    """A state's entry in the index."""
    groups = [[key_group, *span] for key_group, span in section.groups.items()]
    return [
        section.name,
        section.kind,
        section.layout,
        section.key_serializer,
        section.value_serializer,
        groups,
    ]


def section_from_json(section: list[Any]) -> StateSection:
    """The state of an entry in the index."""
    name, kind, layout, key_serializer, value_serializer, groups = section
    spans = {key_group: GroupSpan(*span) for key_group, *span in groups}
    return StateSection(name, kind, layout, key_serializer, value_serializer, spans)
