"""From a checkpoint to the subtasks of a new attempt."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.checkpoint_messages import AttemptId
from runtime.checkpoint_metadata import CheckpointMetadata, SavedOperator
from runtime.errors import RecoveryError
from runtime.plan import PlannedOperator
from runtime.recovery import RestoredCheckpoint, RestorePlan, plan_restore, restore
from runtime.start_point import LocatedCheckpoint
from statebackends.descriptors import ListStateDescriptor, ValueStateDescriptor
from statebackends.heap import HeapKeyedStateBackend
from statebackends.keygroups import key_group_range
from statebackends.operator_state import OperatorStateBackend
from statebackends.snapshot import SnapshotFileWriter
from statebackends.storage import InMemoryCheckpointStorage, StateFile
from tests.runtime.planned import planned

MAX = 16
COUNT = ValueStateDescriptor("count", int)
OFFSETS = ListStateDescriptor("offsets", str)
KEYS = [f"page-{number}" for number in range(200)]


class Bytes:
    def __init__(self) -> None:
        self.data = b""

    def write(self, chunk: bytes, /) -> None:
        self.data += chunk

    def tell(self) -> int:
        return len(self.data)


def saved(uid: str, parallelism: int = 1, *, finished: bool = False) -> SavedOperator:
    files = tuple(StateFile(f"{uid}-{index}", 1, 0) for index in range(parallelism))
    return SavedOperator(uid, f"operator {uid}", parallelism, MAX, finished, files)


def metadata(*operators: SavedOperator, **enumerators: bytes) -> CheckpointMetadata:
    return CheckpointMetadata("job", 7, AttemptId(1, 1), 0, operators, enumerators)


def plan(
    checkpoint: CheckpointMetadata, *operators: PlannedOperator, allowed: bool = False
) -> RestorePlan:
    stateful = {operator.uid for operator in checkpoint.operators} | set(checkpoint.enumerators)
    return plan_restore(
        checkpoint, operators, stateful, label="chk-7", allow_non_restored_state=allowed
    )


@given(old=st.integers(1, MAX), new=st.integers(1, MAX))
def test_each_key_group_is_read_by_its_new_owner_from_its_old_one(old: int, new: int) -> None:
    """No file is opened that holds nothing of the range, none is left out that does."""
    restored = plan(metadata(saved("a", old)), planned("a", max_parallelism=MAX))
    for index in range(new):
        mine = set(key_group_range(MAX, new, index))
        sources = restored.keyed_subtasks("a", key_group_range(MAX, new, index))

        theirs = {i: set(key_group_range(MAX, old, i)) & mine for i in range(old)}

        assert sources == [i for i in range(old) if theirs[i]]


def test_a_changed_max_parallelism_is_refused() -> None:
    """The error names the operator and both numbers."""
    with pytest.raises(RecoveryError, match=r"uid a\) has max parallelism 32.* with 16"):
        plan(metadata(saved("a")), planned("a", max_parallelism=32))


def test_an_operator_without_state_may_change_its_max_parallelism() -> None:
    """No key group of it is written anywhere."""
    operators = [planned("a", max_parallelism=32)]

    assert plan_restore(metadata(saved("a")), operators, (), label="chk-7").new == ()


def test_a_new_operator_begins_without_state() -> None:
    """That is said."""
    restored = plan(metadata(saved("a")), planned("a", max_parallelism=MAX), planned("b"))

    assert restored.new == ("operator b",)


def test_state_that_no_operator_claims_is_refused() -> None:
    """The error names it and the way to allow that."""
    with pytest.raises(RecoveryError, match=r"'b' \(operator b\).*--allow-non-restored-state"):
        plan(metadata(saved("a"), saved("b")), planned("a", max_parallelism=MAX))


def test_unclaimed_state_is_dropped_if_that_is_allowed() -> None:
    """What is dropped is said."""
    checkpoint = metadata(saved("a"), saved("b"), b=b"splits", c=b"splits")

    restored = plan(checkpoint, planned("a", max_parallelism=MAX), allowed=True)

    assert restored.dropped == ("b", "c")
    assert list(restored.operators) == ["a"]


def test_a_vanished_operator_without_state_is_nobodys_loss() -> None:
    """Taking a map out of a job needs no permission."""
    operators = [planned("a", max_parallelism=MAX)]

    restored = plan_restore(metadata(saved("a"), saved("map")), operators, {"a"}, label="chk-7")

    assert restored.dropped == ()


def test_two_operators_of_one_uid_are_refused() -> None:
    """The error names both."""
    with pytest.raises(RecoveryError, match="'a' is used by 2 operators"):
        plan(metadata(), planned("a", 1), planned("a", 2))


def test_a_finished_operator_is_reported_finished() -> None:
    """An unfinished and a new one are not."""
    checkpoint = metadata(saved("a", finished=True), saved("b"))
    operators = [planned(uid, max_parallelism=MAX) for uid in "abc"]

    assert plan(checkpoint, *operators).finished == {"a"}


async def checkpoint_of(parallelism: int) -> LocatedCheckpoint:
    """Keyed state of all keys and one offset per subtask, in the files of one chain."""
    storage = InMemoryCheckpointStorage()
    files = []
    for index in range(parallelism):
        backend = HeapKeyedStateBackend(key_group_range(MAX, parallelism, index), MAX)
        state = backend.get_partitioned_state(COUNT)
        for key in KEYS:
            if backend.key_group_of(key) in backend.key_group_range:
                backend.set_current_key(key)
                state.update(len(key))  # type: ignore[attr-defined]  # a value state by its descriptor
        offsets = OperatorStateBackend()
        offsets.get_union_list_state(OFFSETS).add(f"offset of {index}")
        sink = Bytes()
        writer = SnapshotFileWriter(sink)
        writer.add_keyed("counts", backend.snapshot(), lambda: True)
        writer.add_operator_state("clicks", offsets.snapshot())
        writer.finish()
        files.append(await storage.write(7, f"state-{index}", sink.data))
    operators = tuple(
        SavedOperator(uid, uid, parallelism, MAX, False, tuple(files))
        for uid in ("clicks", "stateless", "counts")
    )
    return LocatedCheckpoint(storage, metadata(*operators), "chk-7")


async def restored_at(checkpoint: LocatedCheckpoint, parallelism: int) -> RestoredCheckpoint:
    uids = ("clicks", "counts")
    operators = [planned(uid, parallelism=parallelism, max_parallelism=MAX) for uid in uids]
    return await restore(checkpoint, operators)


@pytest.mark.parametrize(("old", "new"), [(1, 1), (1, 3), (3, 1), (2, 3), (3, 2), (16, 5)])
async def test_keyed_state_follows_its_keys(old: int, new: int) -> None:
    """At any new parallelism each key is with exactly one subtask, with its value."""
    restored = await restored_at(await checkpoint_of(old), new)
    found = []
    for index in range(new):
        key_groups = key_group_range(MAX, new, index)
        backend = HeapKeyedStateBackend(key_groups, MAX)
        backend.restore(restored.keyed("counts", key_groups))
        state = backend.get_partitioned_state(COUNT)
        for key in KEYS:
            if backend.key_group_of(key) in key_groups:
                backend.set_current_key(key)
                found.append((key, state.value()))  # type: ignore[attr-defined]  # as above

    assert sorted(found) == sorted((key, len(key)) for key in KEYS)


async def test_each_new_subtask_sees_the_operator_state_of_all_former_ones() -> None:
    """Who keeps what is the operator state's own affair."""
    restored = await restored_at(await checkpoint_of(3), 2)

    former = restored.operator_state("clicks")
    assert former is not None
    seen = []
    for index in range(2):
        backend = OperatorStateBackend()
        backend.restore(former, len(former), 2, index)
        seen.append(list(backend.get_union_list_state(OFFSETS).get()))

    assert seen == [["offset of 0", "offset of 1", "offset of 2"]] * 2


async def test_new_and_known_operators_without_state_differ() -> None:
    """Whoever was in the checkpoint counts as restored, even with nothing in it."""
    checkpoint = await checkpoint_of(2)
    operators = [
        planned(uid, max_parallelism=MAX) for uid in ("clicks", "counts", "stateless", "new")
    ]

    restored = await restore(checkpoint, operators)

    assert restored.operator_state("new") is None
    assert restored.operator_state("stateless") == [None, None]
    assert restored.keyed("stateless", key_group_range(MAX, 1, 0)) == []
    assert "new" in restored.describe()[0]


async def test_operators_that_had_finished_are_told_by_name() -> None:
    """A uid that the user did not give is a hash, which tells nothing."""
    storage = InMemoryCheckpointStorage()
    finished = SavedOperator("6a5f", "Source: clicks", 1, MAX, True, (None,))
    checkpoint = LocatedCheckpoint(storage, metadata(finished), "chk-7")

    restored = await restore(checkpoint, [planned("6a5f", max_parallelism=MAX)])

    assert restored.describe() == ["had finished: Source: clicks"]


async def test_what_has_state_is_found_in_the_files() -> None:
    """A chain shares its files, so only what stands in them counts as somebody's state."""
    checkpoint = await checkpoint_of(2)

    with pytest.raises(RecoveryError) as refused:
        await restore(checkpoint, [planned("clicks", max_parallelism=MAX)])

    assert "'counts'" in str(refused.value)
    assert "'stateless'" not in str(refused.value)


async def test_a_missing_state_file_is_one_clear_error() -> None:
    """It names the checkpoint and the file."""
    checkpoint = await checkpoint_of(2)
    await checkpoint.storage.discard(7)

    with pytest.raises(RecoveryError, match=r"chk-7 cannot be restored: .*state-0"):
        await restore(checkpoint, [])
