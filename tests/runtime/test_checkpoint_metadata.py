"""The metadata of a checkpoint."""

import json
from zlib import crc32

import pytest

from runtime.checkpoint_messages import Acknowledgement, AttemptId, StoreMetadata, SubtaskId
from runtime.checkpoint_metadata import (
    CheckpointMetadata,
    SavedOperator,
    collect_metadata,
    parse_metadata,
)
from runtime.errors import RecoveryError
from statebackends.errors import CorruptCheckpointError
from statebackends.storage import StateFile
from tests.runtime.planned import planned, vertex

FIRST, SECOND = StateFile("1-0-e2-a1", 100, 77), StateFile("1-1-e2-a1", 50, 88)
METADATA = CheckpointMetadata(
    job_name="page counts",
    checkpoint_id=12,
    attempt=AttemptId(2, 1),
    timestamp_ms=1_700_000_000_000,
    operators=(
        SavedOperator("clicks", "Clicks é", 2, 8, True, (FIRST, SECOND)),
        SavedOperator("counts", "counts", 2, 128, False, (None, SECOND)),
    ),
    enumerators={"clicks": b"\x00partitions"},
)


def changed(**fields: object) -> bytes:
    """Metadata with other contents and a checksum that fits."""
    document = json.loads(METADATA.dump())
    document["checkpoint"].update(fields)
    compact = json.dumps(document["checkpoint"], separators=(",", ":"), sort_keys=True)
    document["crc32"] = crc32(compact.encode("ascii"))
    return json.dumps(document).encode("ascii")


def test_what_was_written_is_read() -> None:
    """Every field survives, names beyond ASCII and binary enumerator state included."""
    assert parse_metadata(METADATA.dump(), "metadata") == METADATA


def test_files_shared_by_a_chain_are_listed_once() -> None:
    """Operators of one chain refer to the same file."""
    assert METADATA.files() == [FIRST, SECOND]
    assert METADATA.dump().count(b"1-1-e2-a1") == 1


def test_each_operator_gets_the_files_of_its_vertex() -> None:
    """An operator is finished if all subtasks of its chain acknowledged as finished."""
    attempt = AttemptId(2, 1)
    source, sink = planned("source", parallelism=2), planned("sink")
    acknowledgements = {
        SubtaskId(1, 0): Acknowledgement(attempt, 5, SubtaskId(1, 0), FIRST, finished=True),
        SubtaskId(1, 1): Acknowledgement(attempt, 5, SubtaskId(1, 1), SECOND, finished=True),
        SubtaskId(2, 0): Acknowledgement(attempt, 5, SubtaskId(2, 0), None, finished=False),
    }
    stored = StoreMetadata(5, attempt, 1_000, acknowledgements)

    metadata = collect_metadata("job", stored, [vertex(1, source), vertex(2, sink)], {})

    assert metadata.operators == (
        SavedOperator("source", "operator source", 2, 8, True, (FIRST, SECOND)),
        SavedOperator("sink", "operator sink", 1, 8, False, (None,)),
    )


@pytest.mark.parametrize("length", [0, 1, 200, len(METADATA.dump()) - 2])
def test_a_half_written_file_is_corrupt(length: int) -> None:
    """The error names the file."""
    with pytest.raises(CorruptCheckpointError, match="chk-12/metadata"):
        parse_metadata(METADATA.dump()[:length], "chk-12/metadata")


def test_a_changed_digit_is_corrupt() -> None:
    """The checksum covers the contents."""
    damaged = METADATA.dump().replace(b"1700000000000", b"1700000000001")

    with pytest.raises(CorruptCheckpointError, match="checksum"):
        parse_metadata(damaged, "metadata")


def test_another_format_is_refused_by_name() -> None:
    """Neither a newer nor an older format is taken for damage."""
    newer = METADATA.dump().replace(b'"format": 1', b'"format": 2')

    with pytest.raises(RecoveryError, match="has format 2"):
        parse_metadata(newer, "metadata")


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("job", None),
        ("id", True),
        ("epoch", "2"),
        ("files", {}),
        ("files", [["name", 1]]),
        ("operators", [None]),
        ("operators", [{"uid": "a"}]),
        ("enumerators", {"clicks": "no base64!"}),
        ("enumerators", []),
    ],
)
def test_a_field_of_another_kind_is_corrupt(field: str, value: object) -> None:
    """Whatever the JSON holds, the answer is one error that names the file."""
    with pytest.raises(CorruptCheckpointError, match="metadata: "):
        parse_metadata(changed(**{field: value}), "metadata")


@pytest.mark.parametrize(
    "change",
    [{"parallelism": 3}, {"parallelism": 0}, {"max_parallelism": 0}, {"files": [0, 9]}],
    ids=str,
)
def test_numbers_that_contradict_each_other_are_corrupt(change: dict[str, object]) -> None:
    """An operator has one file entry per subtask, each of a file that is listed."""
    operators = json.loads(METADATA.dump())["checkpoint"]["operators"]
    operators[0].update(change)

    with pytest.raises(CorruptCheckpointError):
        parse_metadata(changed(operators=operators), "metadata")


def test_a_uid_that_occurs_twice_is_corrupt() -> None:
    """State is found by uid, so a uid is unique."""
    operators = json.loads(METADATA.dump())["checkpoint"]["operators"]
    operators[1]["uid"] = "clicks"

    with pytest.raises(CorruptCheckpointError, match="'clicks' occurs twice"):
        parse_metadata(changed(operators=operators), "metadata")
