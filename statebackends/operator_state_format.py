"""How the list states of one operator subtask lie in bytes: a JSON head, then the entries."""

from __future__ import annotations

import json
import struct
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from statebackends.errors import CorruptCheckpointError

_HEAD = struct.Struct("<I")


class RedistributionMode(StrEnum):
    """Who gets which entries of a list state after a change of parallelism.

    Flink: `OperatorStateHandle.Mode`.
    """

    SPLIT_DISTRIBUTE = "split"
    UNION = "union"


@dataclass(frozen=True, slots=True)
class ListStateEntries:
    """One list state of one subtask: each entry serialised by itself."""

    mode: RedistributionMode
    serializer: str
    """Identity of the serializer that wrote the entries."""
    entries: list[bytes]


@dataclass(frozen=True, slots=True)
class OperatorStateSnapshot:
    """The list states of one operator subtask at one checkpoint; `bytes()` gives its file form."""

    states: dict[str, ListStateEntries] = field(default_factory=dict)

    @property
    def empty(self) -> bool:
        """True if nothing would be lost by not writing it."""
        return not self.states

    def __bytes__(self) -> bytes:
        head = json.dumps(
            [
                [name, state.mode, state.serializer, [len(entry) for entry in state.entries]]
                for name, state in self.states.items()
            ]
        ).encode()
        entries = [entry for state in self.states.values() for entry in state.entries]
        return b"".join([_HEAD.pack(len(head)), head, *entries])


@dataclass(frozen=True, slots=True)
class RestoredOperatorState:
    """What one former subtask had in its list states."""

    states: dict[str, ListStateEntries]

    @classmethod
    def parse(cls, data: bytes, name: str) -> RestoredOperatorState:
        """Reads what `bytes(OperatorStateSnapshot)` gave; `name` stands for it in errors.

        Raises `CorruptCheckpointError` if the bytes are something else.
        """
        states: dict[str, ListStateEntries] = {}
        try:
            (head_length,) = _HEAD.unpack_from(data)
            position = _HEAD.size + head_length
            head: list[list[Any]] = json.loads(data[_HEAD.size : position])
            for state, mode, serializer, lengths in head:
                entries: list[bytes] = []
                for length in lengths:
                    entries.append(data[position : position + length])
                    position += length
                states[state] = ListStateEntries(RedistributionMode(mode), serializer, entries)
        except (struct.error, ValueError, TypeError) as error:
            raise CorruptCheckpointError(f"{name}: not an operator state: {error}") from error
        if position != len(data):
            raise CorruptCheckpointError(f"{name}: the operator state has another length than said")
        return cls(states)
