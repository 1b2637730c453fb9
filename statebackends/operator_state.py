"""State of an operator subtask that belongs to no key: lists that are dealt out anew.

Flink: `OperatorStateBackend`, `RoundRobinOperatorStateRepartitioner`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Generic, TypeVar

from statebackends.descriptors import ListStateDescriptor
from statebackends.errors import StateError
from statebackends.operator_state_format import (
    ListStateEntries,
    OperatorStateSnapshot,
    RedistributionMode,
    RestoredOperatorState,
)
from statebackends.serializers import TypeSerializer
from statebackends.state import ListState

T = TypeVar("T")

__all__ = [
    "OperatorStateBackend",
    "OperatorStateSnapshot",
    "PartitionableListState",
    "RedistributionMode",
    "RestoredOperatorState",
    "broadcast",
    "split_distribute",
    "union",
]


def split_distribute(
    parts: Sequence[Sequence[T]], new_parallelism: int, first: int = 0
) -> list[list[T]]:
    """Deals the entries of the former subtasks out to the new ones, in runs of nearly one size.

    At unchanged parallelism each subtask keeps its own, however uneven. Else sizes differ by at
    most one, and the longer runs go to the subtasks from `first` on (modulo the parallelism), so
    that several small states do not all land on subtask 0.
    """
    if len(parts) == new_parallelism:
        return [list(part) for part in parts]
    entries = [entry for part in parts for entry in part]
    size, longer = divmod(len(entries), new_parallelism)
    dealt: list[list[T]] = []
    position = 0
    for index in range(new_parallelism):
        end = position + size + ((index - first) % new_parallelism < longer)
        dealt.append(entries[position:end])
        position = end
    return dealt


def union(parts: Sequence[Sequence[T]], new_parallelism: int) -> list[list[T]]:
    """Gives the entries of all former subtasks to each new one."""
    entries = [entry for part in parts for entry in part]
    return [list(entries) for _ in range(new_parallelism)]


def broadcast(parts: Sequence[Sequence[T]], new_parallelism: int) -> list[list[T]]:
    """Gives each new subtask a copy of what one former subtask had; all of them had the same."""
    return [list(parts[index % len(parts)]) for index in range(new_parallelism)]


class PartitionableListState(ListState[T], Generic[T]):
    """A list state of one subtask (Flink: `PartitionableListState`)."""

    def __init__(self, name: str, mode: RedistributionMode, serializer: TypeSerializer[T]) -> None:
        self.name = name
        self.mode = mode
        self._serializer = serializer
        self._values: list[T] = []

    def get(self) -> Iterable[T]:
        """The entries at this moment; later changes of the state do not show in it."""
        return list(self._values)

    def add(self, value: T) -> None:
        """Appends a value; raises `TypeError` for None."""
        self._values.append(_present(value, self.name))

    def add_all(self, values: Iterable[T]) -> None:
        """Appends all values, or none of them if `TypeError` is raised for a None."""
        self._values += [_present(value, self.name) for value in values]

    def update(self, values: Iterable[T]) -> None:
        """Replaces the entries; raises `TypeError` for a None."""
        self._values = [_present(value, self.name) for value in values]

    def clear(self) -> None:
        """Removes all entries."""
        self._values = []

    def entries(self) -> ListStateEntries:
        """The state in bytes, as it is now."""
        serialize = self._serializer.serialize
        return ListStateEntries(
            self.mode, self._serializer.identity, [serialize(value) for value in self._values]
        )

    def take_in(self, entries: Iterable[bytes]) -> None:
        """Replaces the entries by what is in bytes."""
        self._values = [self._serializer.deserialize(entry) for entry in entries]


class OperatorStateBackend:
    """The list states of one operator subtask, registered under their names.

    Order of calls: `restore` (at most once), then states are got, then `snapshot` at any time.
    Restored states that nobody asks for stay in the next snapshots.
    """

    def __init__(self) -> None:
        self._states: dict[str, PartitionableListState[object]] = {}
        self._unclaimed: dict[str, ListStateEntries] = {}
        self._subtask_index = 0
        self._parallelism = 1

    def get_list_state(self, descriptor: ListStateDescriptor[T]) -> ListState[T]:
        """The state whose entries are dealt out anew when the parallelism changes.

        A second get returns the same object. Raises `StateError` if the name stands for a state
        of another mode, or was restored from entries of another serializer.
        """
        return self._get(descriptor, RedistributionMode.SPLIT_DISTRIBUTE)

    def get_union_list_state(self, descriptor: ListStateDescriptor[T]) -> ListState[T]:
        """The state of which every subtask is restored with all entries of all subtasks.

        A subtask has to cut it down to what is its own: the next snapshot again unites what all
        subtasks have then. Returns and raises as `get_list_state`.
        """
        return self._get(descriptor, RedistributionMode.UNION)

    def snapshot(self) -> OperatorStateSnapshot:
        """The states as they are now, each entry serialised by itself."""
        states = {name: self._share_of(name) for name in self._unclaimed}
        states.update((name, state.entries()) for name, state in self._states.items())
        return OperatorStateSnapshot(states)

    def restore(
        self,
        snapshots: Sequence[RestoredOperatorState | None],
        old_parallelism: int,
        new_parallelism: int,
        subtask_index: int,
    ) -> None:
        """Takes this subtask's part of what the former subtasks had.

        `snapshots` are those of all former subtasks in the order of their index, None for one
        that had no operator state. Raises `StateError` if their number is not `old_parallelism`,
        if a state has two modes or serializers among them, or after a state was got.
        """
        if self._states:
            raise StateError("operator state must be restored before the first state is got")
        if len(snapshots) != old_parallelism:
            raise StateError(
                f"operator state of {len(snapshots)} subtasks was found, {old_parallelism} wrote it"
            )
        self._subtask_index = subtask_index
        self._parallelism = new_parallelism
        first = 0
        for name, (mode, serializer) in sorted(_kinds(snapshots).items()):
            parts = [_entries(snapshot, name) for snapshot in snapshots]
            if mode is RedistributionMode.UNION:
                mine = [entry for part in parts for entry in part]
            else:
                mine = split_distribute(parts, new_parallelism, first)[subtask_index]
                first = (first + sum(map(len, parts))) % new_parallelism
            self._unclaimed[name] = ListStateEntries(mode, serializer, mine)

    def _get(self, descriptor: ListStateDescriptor[T], mode: RedistributionMode) -> ListState[T]:
        name = descriptor.name
        state: PartitionableListState[T] | None = self._states.get(name)  # type: ignore[assignment]  # the name stands for its type
        if state is None:
            state = PartitionableListState(name, mode, descriptor.element_serializer)
            restored = self._unclaimed.get(name)
            if restored is not None:
                _check_restored(name, restored, mode, descriptor.element_serializer)
                state.take_in(restored.entries)
                del self._unclaimed[name]
            self._states[name] = state  # type: ignore[assignment]  # as above
        elif state.mode is not mode:
            raise StateError(_wrong_mode(name, state.mode, mode))
        return state

    def _share_of(self, name: str) -> ListStateEntries:
        """What this subtask writes of a state that nobody asked for.

        All subtasks hold the entries of a union state; were all to write all of them, they
        would multiply with each restore.
        """
        state = self._unclaimed[name]
        if state.mode is not RedistributionMode.UNION:
            return state
        mine = state.entries[self._subtask_index :: self._parallelism]
        return ListStateEntries(state.mode, state.serializer, mine)


def _present(value: T, name: str) -> T:
    if value is None:
        raise TypeError(f"list state {name!r} takes no None")
    return value


def _entries(snapshot: RestoredOperatorState | None, name: str) -> list[bytes]:
    state = None if snapshot is None else snapshot.states.get(name)
    return [] if state is None else state.entries


def _kinds(
    snapshots: Iterable[RestoredOperatorState | None],
) -> dict[str, tuple[RedistributionMode, str]]:
    """Mode and serializer of each state; they must be the same wherever it occurs."""
    kinds: dict[str, tuple[RedistributionMode, str]] = {}
    for snapshot in snapshots:
        for name, state in {} if snapshot is None else snapshot.states.items():
            kind = kinds.setdefault(name, (state.mode, state.serializer))
            if kind != (state.mode, state.serializer):
                raise StateError(
                    f"the subtasks wrote operator state {name!r} in different forms: {kind[0]}"
                    f" list of {kind[1]} and {state.mode} list of {state.serializer}"
                )
    return kinds


def _check_restored(
    name: str,
    restored: ListStateEntries,
    mode: RedistributionMode,
    serializer: TypeSerializer[T],
) -> None:
    if restored.mode is not mode:
        raise StateError(_wrong_mode(name, restored.mode, mode))
    if restored.entries and restored.serializer != serializer.identity:
        raise StateError(
            f"operator state {name!r} was written by serializer {restored.serializer}, the"
            f" descriptor has {serializer.identity}: give it the former type, or another name"
        )


def _wrong_mode(name: str, present: RedistributionMode, asked: RedistributionMode) -> str:
    return f"operator state {name!r} is a {present} list state, not a {asked} list state"
