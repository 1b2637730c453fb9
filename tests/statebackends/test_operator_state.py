"""Operator list state: registration, snapshots and dealing out at another parallelism."""

from collections import Counter
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from statebackends.descriptors import ListStateDescriptor
from statebackends.errors import CorruptCheckpointError, StateError
from statebackends.operator_state import (
    OperatorStateBackend,
    RestoredOperatorState,
    split_distribute,
    union,
)
from statebackends.state import ListState

LIST = ListStateDescriptor[object]("list")
UNION = ListStateDescriptor[object]("union")
OTHER = ListStateDescriptor[object]("other")


def backend(entries: list[object], unions: list[object] | None = None) -> OperatorStateBackend:
    made = OperatorStateBackend()
    made.get_list_state(LIST).update(entries)
    if unions is not None:
        made.get_union_list_state(UNION).update(unions)
    return made


def saved(backend: OperatorStateBackend) -> RestoredOperatorState:
    return RestoredOperatorState.parse(bytes(backend.snapshot()), "test")


def restored(
    snapshots: list[RestoredOperatorState | None], parallelism: int
) -> list[OperatorStateBackend]:
    backends = [OperatorStateBackend() for _ in range(parallelism)]
    for index, made in enumerate(backends):
        made.restore(snapshots, len(snapshots), parallelism, index)
    return backends


def values(state: ListState[object]) -> list[object]:
    return list(state.get())


parts = st.lists(st.lists(st.integers()), min_size=1, max_size=6)


@given(parts, st.integers(1, 8))
def test_split_distribution_neither_loses_nor_doubles(
    parts: list[list[int]], parallelism: int
) -> None:
    """The new parts together are the old parts together, and of even size after a rescale."""
    dealt = split_distribute(parts, parallelism)
    assert Counter(e for part in dealt for e in part) == Counter(e for part in parts for e in part)
    assert len(dealt) == parallelism
    if parallelism != len(parts):
        assert max(map(len, dealt)) - min(map(len, dealt)) <= 1


@given(parts)
def test_at_unchanged_parallelism_each_keeps_its_own(parts: list[list[int]]) -> None:
    """However uneven the parts are, nothing moves without need."""
    assert split_distribute(parts, len(parts)) == parts


@given(parts, st.integers(1, 8))
def test_union_gives_everything_to_everyone(parts: list[list[int]], parallelism: int) -> None:
    """Each new subtask has all entries, in lists of their own."""
    everything = [e for part in parts for e in part]
    united = union(parts, parallelism)
    assert united == [everything] * parallelism
    assert len({id(part) for part in united}) == parallelism


def test_small_states_do_not_all_go_to_the_first_subtask() -> None:
    """Of two states with one entry each, two subtasks get one."""
    old = backend(["x"])
    old.get_list_state(OTHER).update(["y"])
    new = restored([saved(old)], 2)
    counts = [len(values(b.get_list_state(LIST)) + values(b.get_list_state(OTHER))) for b in new]
    assert counts == [1, 1]


@pytest.mark.parametrize("value", [1, "text", b"bytes", (1, "t"), {"topic": [1, 2]}, 2.5])
def test_an_entry_comes_back_as_it_was(value: object) -> None:
    """Type and value of entries survive a snapshot."""
    (new,) = restored([saved(backend([value]))], 1)
    (read,) = values(new.get_list_state(LIST))
    assert (type(read), read) == (type(value), value)


def test_declared_types_write_compact_entries() -> None:
    """An int state declared as such does not pickle."""
    declared = OperatorStateBackend()
    declared.get_list_state(ListStateDescriptor("n", int)).add(7)
    pickled = OperatorStateBackend()
    pickled.get_list_state(ListStateDescriptor[int]("n")).add(7)
    identities = [b.snapshot().states["n"].serializer for b in (declared, pickled)]
    assert identities[0] != identities[1]


def test_list_and_union_state_are_restored_by_their_modes() -> None:
    """After 2 -> 3 the list is dealt out and the union is with everyone."""
    old = [backend([1, 2], ["a"]), backend([3, 4], ["b"])]
    new = restored([saved(b) for b in old], 3)
    lists = [values(b.get_list_state(LIST)) for b in new]
    unions = [values(b.get_union_list_state(UNION)) for b in new]
    assert sorted(map(len, lists)) == [1, 1, 2]
    assert sorted(str(e) for part in lists for e in part) == ["1", "2", "3", "4"]
    assert unions == [["a", "b"]] * 3


def test_a_subtask_without_operator_state_counts_as_empty() -> None:
    """Former subtasks that wrote nothing still count for the parallelism."""
    new = restored([None, saved(backend([1, 2])), None], 3)
    assert [values(b.get_list_state(LIST)) for b in new] == [[], [1, 2], []]


def test_the_cut_does_not_follow_later_changes() -> None:
    """Entries are serialised at the snapshot, so that mutating one later does not reach it."""
    live = backend([[1]])
    snapshot = live.snapshot()
    (entry,) = values(live.get_list_state(LIST))
    assert isinstance(entry, list)
    entry.append(2)
    live.get_list_state(LIST).add([3])
    (new,) = restored([RestoredOperatorState.parse(bytes(snapshot), "test")], 1)
    assert values(new.get_list_state(LIST)) == [[1]]


def test_the_second_get_returns_the_same_state() -> None:
    """A name stands for one object within a backend."""
    made = OperatorStateBackend()
    state = made.get_list_state(LIST)
    assert made.get_list_state(ListStateDescriptor("list")) is state


@pytest.mark.parametrize("after_restore", [False, True])
def test_a_name_of_the_other_mode_is_refused(after_restore: bool) -> None:
    """List and union state of one name cannot both be meant, now or after a restore."""
    made = backend([1])
    if after_restore:
        (made,) = restored([saved(made)], 1)
    with pytest.raises(StateError, match=r"'list' is a split .* not a union"):
        made.get_union_list_state(LIST)


def test_another_serializer_than_the_written_one_is_refused() -> None:
    """Entries of one form are not read as another; the message names the state."""
    (new,) = restored([saved(backend([1]))], 1)
    with pytest.raises(StateError, match="'list'"):
        new.get_list_state(ListStateDescriptor("list", int))


def test_a_state_nobody_asks_for_stays_in_the_next_snapshot() -> None:
    """Restored and unclaimed entries are written again, once, list and union alike."""
    old = [saved(backend([1, 2], ["a", "b"])), saved(backend([3], ["c"]))]
    again = [saved(b) for b in restored(list(old), 3)]
    new = restored(list(again), 1)[0]
    assert sorted(map(str, values(new.get_list_state(LIST)))) == ["1", "2", "3"]
    assert sorted(map(str, values(new.get_union_list_state(UNION)))) == ["a", "b", "c"]


def test_restoring_needs_the_parts_of_all_former_subtasks() -> None:
    """A missing part would be silently lost state."""
    with pytest.raises(StateError, match="2 wrote it"):
        OperatorStateBackend().restore([None], 2, 1, 0)


def test_restoring_after_the_first_get_is_refused() -> None:
    """What was got before would not show the restored entries."""
    made = backend([1])
    with pytest.raises(StateError, match="before"):
        made.restore([], 0, 1, 0)


def test_subtasks_that_disagree_about_a_state_are_refused() -> None:
    """Parts of one name in two modes cannot be put together."""
    other = OperatorStateBackend()
    other.get_union_list_state(LIST).add(1)
    with pytest.raises(StateError, match="different forms"):
        restored([saved(backend([1])), saved(other)], 1)


@pytest.mark.parametrize(
    "change",
    [
        lambda state: state.add(None),
        lambda state: state.add_all([1, None]),
        lambda state: state.update([None]),
    ],
)
def test_none_is_no_entry(change: Callable[[ListState[object]], None]) -> None:
    """None is refused as in Flink, and leaves the list as it was."""
    state = backend(["kept"]).get_list_state(LIST)
    with pytest.raises(TypeError):
        change(state)
    assert values(state) == ["kept"]


def test_changes_show_in_the_next_get_only() -> None:
    """What get returned is not changed by add, add_all, update or clear."""
    state = backend([1]).get_list_state(LIST)
    before = state.get()
    state.add(2)
    state.add_all([3, 4])
    after = values(state)
    state.clear()
    assert (list(before), after, values(state)) == ([1], [1, 2, 3, 4], [])


@pytest.mark.parametrize(
    "data",
    [b"", b"\x00", b"\x05\x00\x00\x00[", b"\x01\x00\x00\x007", bytes(range(60)), b"\x02\0\0\0[]x"],
)
def test_foreign_bytes_are_no_operator_state(data: bytes) -> None:
    """Whatever is not an operator state is refused as corrupt, naming where it came from."""
    with pytest.raises(CorruptCheckpointError, match="somewhere"):
        RestoredOperatorState.parse(data, "somewhere")
