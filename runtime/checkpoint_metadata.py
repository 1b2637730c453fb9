"""The metadata of a checkpoint: which files hold the state of which operator, as JSON.

Layout: `{"format": 1, "crc32": ..., "checkpoint": {...}}`, the crc over the compact, sorted text
of the inner object. Operators of one chain share their subtask's file, so files are listed once
and operators refer to them by position.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TypeVar
from zlib import crc32

from runtime.checkpoint_messages import AttemptId, StoreMetadata, SubtaskId
from runtime.errors import RecoveryError
from runtime.plan import Vertex
from statebackends.errors import CorruptCheckpointError
from statebackends.keygroups import check_max_parallelism
from statebackends.storage import StateFile

FORMAT_VERSION = 1
"""What this version writes, and all that it reads."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class SavedOperator:
    """An operator as a checkpoint has it.

    `files` holds the state file of each subtask by its index, None where it had no state;
    `finished` says that all its subtasks had put out their last element.
    """

    uid: str
    name: str
    parallelism: int
    max_parallelism: int
    finished: bool
    files: tuple[StateFile | None, ...]


@dataclass(frozen=True, slots=True)
class CheckpointMetadata:
    """Everything a restore needs to know besides the state files.

    `enumerators` holds the states of the split enumerators by the uid of their source.
    """

    job_name: str
    checkpoint_id: int
    attempt: AttemptId
    timestamp_ms: int
    operators: tuple[SavedOperator, ...]
    enumerators: Mapping[str, bytes] = field(default_factory=dict)

    def files(self) -> list[StateFile]:
        """The state files, each once, in the order of their names."""
        found = {file for operator in self.operators for file in operator.files if file}
        return sorted(found)

    def dump(self) -> bytes:
        """The bytes that `parse_metadata` reads."""
        files = self.files()
        position = {file: index for index, file in enumerate(files)}
        checkpoint = {
            "job": self.job_name,
            "id": self.checkpoint_id,
            "epoch": self.attempt.epoch,
            "attempt": self.attempt.attempt,
            "timestamp_ms": self.timestamp_ms,
            "files": [list(file) for file in files],
            "operators": [
                {
                    "uid": operator.uid,
                    "name": operator.name,
                    "parallelism": operator.parallelism,
                    "max_parallelism": operator.max_parallelism,
                    "finished": operator.finished,
                    "files": [position[file] if file else None for file in operator.files],
                }
                for operator in self.operators
            ],
            "enumerators": {
                uid: base64.b64encode(state).decode("ascii")
                for uid, state in self.enumerators.items()
            },
        }
        document = {
            "format": FORMAT_VERSION,
            "crc32": crc32(_compact(checkpoint)),
            "checkpoint": checkpoint,
        }
        return json.dumps(document, indent=1).encode("ascii")


def collect_metadata(
    job_name: str,
    stored: StoreMetadata,
    vertices: Iterable[Vertex],
    enumerators: Mapping[str, bytes],
) -> CheckpointMetadata:
    """The metadata of a checkpoint that every subtask of `vertices` has acknowledged."""
    saved = []
    for vertex in vertices:
        acknowledgements = [
            stored.acknowledgements[SubtaskId(vertex.id, index)]
            for index in range(vertex.parallelism)
        ]
        files = tuple(acknowledgement.file for acknowledgement in acknowledgements)
        finished = all(acknowledgement.finished for acknowledgement in acknowledgements)
        saved += [
            SavedOperator(
                operator.uid,
                operator.name,
                operator.parallelism,
                operator.max_parallelism,
                finished,
                files,
            )
            for operator in vertex.operators
        ]
    return CheckpointMetadata(
        job_name,
        stored.checkpoint_id,
        stored.attempt,
        stored.timestamp_ms,
        tuple(saved),
        dict(enumerators),
    )


def parse_metadata(data: bytes, label: str) -> CheckpointMetadata:
    """Reads metadata; `label` names the file in errors.

    Raises:
        CorruptCheckpointError: these are not the bytes that were written.
        RecoveryError: another version of the format.
    """
    try:
        document = json.loads(data)
    except ValueError as error:
        raise CorruptCheckpointError(f"{label}: is not JSON ({error})") from error
    reader = _Reader(label)
    outer = reader.mapping(document, "the document")
    version = reader.number(outer, "format")
    if version != FORMAT_VERSION:
        raise RecoveryError(
            f"{label}: has format {version}, this version of riverrun reads format"
            f" {FORMAT_VERSION} only; run the version that wrote it"
        )
    checkpoint = reader.mapping(outer.get("checkpoint"), "checkpoint")
    if reader.number(outer, "crc32") != crc32(_compact(checkpoint)):
        raise CorruptCheckpointError(f"{label}: is damaged (checksum differs)")
    return reader.checkpoint(checkpoint)


def _compact(checkpoint: Mapping[str, object]) -> bytes:
    return json.dumps(checkpoint, separators=(",", ":"), sort_keys=True).encode("ascii")


class _Reader:
    """Takes parsed JSON apart; whatever is not as expected is corrupt, by file and field."""

    def __init__(self, label: str) -> None:
        self._label = label

    def checkpoint(self, fields: Mapping[str, object]) -> CheckpointMetadata:
        files = self._list(fields, "files", self._file)
        operators = self._list(fields, "operators", lambda one: self._operator(one, files))
        self._refuse_doubles("operator uid", [operator.uid for operator in operators])
        enumerators = self.mapping(fields.get("enumerators"), "enumerators")
        return CheckpointMetadata(
            self._text(fields, "job"),
            self.number(fields, "id"),
            AttemptId(self.number(fields, "epoch"), self.number(fields, "attempt")),
            self.number(fields, "timestamp_ms"),
            tuple(operators),
            {uid: self._binary(enumerators, uid) for uid in enumerators},
        )

    def mapping(self, value: object, what: str) -> dict[str, object]:
        if not isinstance(value, dict):
            raise self._wrong(what, value)
        return value

    def number(self, fields: Mapping[str, object], name: str) -> int:
        value = fields.get(name)
        if not isinstance(value, int) or isinstance(value, bool):
            raise self._wrong(name, value)
        return value

    def _operator(self, value: object, files: list[StateFile]) -> SavedOperator:
        fields = self.mapping(value, "an operator")
        parallelism = self.number(fields, "parallelism")
        max_parallelism = self.number(fields, "max_parallelism")
        try:
            check_max_parallelism(max_parallelism)
        except ValueError as error:
            raise self._wrong("max_parallelism", max_parallelism) from error
        chosen = self._list(fields, "files", lambda position: self._chosen(position, files))
        if not 1 <= parallelism <= max_parallelism or len(chosen) != parallelism:
            raise self._wrong("parallelism", parallelism)
        finished = fields.get("finished")
        if not isinstance(finished, bool):
            raise self._wrong("finished", finished)
        uid, name = self._text(fields, "uid"), self._text(fields, "name")
        return SavedOperator(uid, name, parallelism, max_parallelism, finished, tuple(chosen))

    def _file(self, value: object) -> StateFile:
        match value:
            case [str(name), int(size), int(checksum)]:
                return StateFile(name, size, checksum)
        raise self._wrong("a state file", value)

    def _chosen(self, position: object, files: list[StateFile]) -> StateFile | None:
        if position is None:
            return None
        if isinstance(position, int) and 0 <= position < len(files):
            return files[position]
        raise self._wrong("a file's position", position)

    def _text(self, fields: Mapping[str, object], name: str) -> str:
        value = fields.get(name)
        if not isinstance(value, str):
            raise self._wrong(name, value)
        return value

    def _binary(self, fields: Mapping[str, object], name: str) -> bytes:
        try:
            return base64.b64decode(self._text(fields, name), validate=True)
        except binascii.Error as error:
            raise self._wrong(f"the state of enumerator {name!r}", fields[name]) from error

    def _list(
        self, fields: Mapping[str, object], name: str, read: Callable[[object], T]
    ) -> list[T]:
        value = fields.get(name)
        if not isinstance(value, list):
            raise self._wrong(name, value)
        return [read(one) for one in value]

    def _refuse_doubles(self, what: str, names: Collection[str]) -> None:
        for name in names:
            if list(names).count(name) > 1:
                raise CorruptCheckpointError(f"{self._label}: {what} {name!r} occurs twice")

    def _wrong(self, what: str, value: object) -> CorruptCheckpointError:
        return CorruptCheckpointError(f"{self._label}: {what} cannot be {value!r}")
