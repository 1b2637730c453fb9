"""The keyed state backend that keeps its state as Python objects."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator
from typing import TYPE_CHECKING, Final, TypeVar

from statebackends.backend import VOID_NAMESPACE, KeyedStateBackend, NamespaceTable
from statebackends.bucket_queue import BucketTimerQueue
from statebackends.descriptors import StateDescriptor
from statebackends.errors import StateError
from statebackends.heap_cells import Row, Tables
from statebackends.heap_restore import load_state, load_timers
from statebackends.heap_snapshot import (
    KEY_SERIALIZER,
    TIMER_KIND,
    TIMER_LAYOUT,
    TIMER_PREFIX,
    TIMER_SERIALIZER,
    HeapSnapshot,
)
from statebackends.heap_states import ROW_STATES, TABLE_STATES, bind
from statebackends.heap_tables import HeapNamespaceTable, HeapRows, HeapState
from statebackends.key_memo import KeyMemo, check_hashable, make_room, unhashable
from statebackends.keygroups import KeyGroupRange, check_max_parallelism
from statebackends.keys import SELF_REPRESENTING
from statebackends.late_changes import WatchedObjects
from statebackends.mutability import IMMUTABLE_TYPES, copy_value
from statebackends.restored_states import RestoredState, read_restored
from statebackends.state import State
from statebackends.timer_queue import TimerQueue

if TYPE_CHECKING:
    from statebackends.snapshot import RestoredKeyedState

V = TypeVar("V")


class _NoKey:
    """What stands for the key before there is one."""

    def __repr__(self) -> str:
        return "<no key>"


_NO_KEY: Final = _NoKey()

_NAMESPACES_COUNTED_MAX = 10_000
"""Up to so many namespaces a cut counts the entries one by one."""


class HeapKeyedStateBackend(KeyedStateBackend):
    """Keyed state on the heap (Flink: `HeapKeyedStateBackend`).

    States in the void namespace share one row per key, so a record costs one look-up whatever
    their number; rows lie by key group. States with namespaces are tables by namespace.

    With `detect_late_changes` an object that was changed after the call that had it raises
    `StateError` when it is next touched; slow, for the search of mistakes.

    Raises:
        ValueError: the max parallelism is out of its bounds.
    """

    def __init__(
        self,
        key_group_range: KeyGroupRange,
        max_parallelism: int,
        timer_queue_factory: Callable[[], TimerQueue] = BucketTimerQueue,
        *,
        detect_late_changes: bool = False,
    ) -> None:
        check_max_parallelism(max_parallelism)
        self.key_group_range = key_group_range
        self.max_parallelism = max_parallelism
        self.current_key: Hashable = _NO_KEY
        self.fold_position = 0
        self.row: Row | None = None
        """The row of the current key, None while it has no entry."""
        self.touched: list[object] = (
            WatchedObjects(lambda: self.current_key) if detect_late_changes else []
        )
        """Mutable objects stored or handed out since `set_current_key` (elements of tuples
        for themselves); while there are any, outputs that can change are copied at emit."""
        self._first_key_group = key_group_range.start
        self._last_key_group = key_group_range.end
        self._timer_queue_factory = timer_queue_factory
        self._timer_queues: dict[str, TimerQueue] = {}
        self._states: dict[str, HeapState] = {}
        self._restored: dict[str, RestoredState] = {}
        self._rows = HeapRows()
        self.row_memo: dict[Hashable, Row] = {}
        self._key_memo = KeyMemo(max_parallelism)

    # -- keys ---------------------------------------------------------------------------------

    def set_current_key(self, key: Hashable) -> None:
        """See `KeyedStateBackend`; forgets what was touched under the key before."""
        self.current_key = key
        if self.touched:
            self.touched.clear()
        try:
            row = self.row_memo.get(key)
        except TypeError as error:
            raise unhashable(key, error) from error
        self.row = self._locate(key) if row is None else row

    def key_group_of(self, key: Hashable) -> int:
        """See `KeyedStateBackend`."""
        return self._key_memo.known(key)[1]

    def representative(self, key: Hashable) -> Hashable:
        """See `KeyedStateBackend`."""
        return key if type(key) in SELF_REPRESENTING else self._key_memo.known(key)[0]

    def current_representative(self) -> Hashable:
        """The representative of the current key; raises `StateError` if there is none."""
        key = self.current_key
        if type(key) in SELF_REPRESENTING:
            return key
        self.require_key()
        return self._key_memo.known(key)[0]

    def require_key(self) -> None:
        """Raises `StateError` while no key was set."""
        if self.current_key is _NO_KEY:
            raise StateError(
                "keyed state was used without a current key; use it in process_element and"
                " on_timer, not in open"
            )

    def _locate(self, key: Hashable) -> Row | None:
        """The row of a key that is not in the memo."""
        representative, key_group = self._key_memo.known(key)
        group = self._rows.groups.get(key_group)
        if group is not None:
            row = group.get(representative)
            if row is not None:
                self._remember(key, representative, row)
                return row
        elif not self._first_key_group <= key_group <= self._last_key_group:
            raise StateError(
                f"key {key!r} is of key group {key_group}, which belongs to another subtask than"
                f" that of {self.key_group_range}; the key selector must give the same key for"
                " the same record each time"
            )
        return None

    def _find_current_row(self) -> None:
        """After rows came or went otherwise than through a handle."""
        if self.current_key is not _NO_KEY:
            self.row = self._locate(self.current_key)

    def _remember(self, key: Hashable, representative: Hashable, row: Row) -> None:
        # A key that Python holds for different (a local time that comes twice) would keep a row
        # in the memo after its removal.
        if key is representative or key == representative:
            make_room(self.row_memo)
            self.row_memo[key] = row

    def attach_row(self) -> Row:
        """Makes the row of the current key, which has none."""
        self.require_key()
        self.row = row = self._make_row(self.current_key)
        return row

    def _make_row(self, key: Hashable) -> Row:
        representative, key_group = self._key_memo.known(key)
        row = self._rows.make(key_group, representative)
        self._remember(key, representative, row)
        return row

    def detach_empty_row(self) -> None:
        """Removes the row of the current key if no state has an entry in it."""
        row = self.row
        if row is not None and all(entry is None for entry in row):
            self._remove_row(self.current_key)
            self.row = None

    def _remove_row(self, key: Hashable) -> None:
        representative, key_group = self._key_memo.known(key)
        self._rows.remove(key_group, representative)
        self.row_memo.pop(representative, None)

    # -- state --------------------------------------------------------------------------------

    def get_partitioned_state(self, descriptor: StateDescriptor) -> State:
        """See `KeyedStateBackend`."""
        state = self._registered(descriptor, namespaced=False)
        if state.handle is None:
            handle = ROW_STATES[descriptor.kind](self, self._slot(state))
            state.handle = bind(handle, descriptor)
        return state.handle

    def get_namespaced_state(self, descriptor: StateDescriptor) -> State:
        """See `KeyedStateBackend`."""
        state = self._registered(descriptor, namespaced=True)
        if state.handle is None:
            handle = TABLE_STATES[descriptor.kind](self, state.tables, descriptor.name)
            state.handle = bind(handle, descriptor)
        return state.handle

    def namespace_table(self, descriptor: StateDescriptor) -> NamespaceTable[V]:
        """See `KeyedStateBackend`."""
        state = self._registered(descriptor, namespaced=True)
        if state.namespace_table is None:
            state.namespace_table = HeapNamespaceTable(state.tables)
        return state.namespace_table

    def fold(
        self,
        descriptor: StateDescriptor,
        keys: list[Hashable],
        values: list[V],
        function: Callable[[V, V], V],
    ) -> list[V]:
        """See `KeyedStateBackend`; new values that can change in place are given as copies."""
        slot = self._slot(self._registered(descriptor, namespaced=False))
        memo = self.row_memo
        immutable = IMMUTABLE_TYPES
        # Of the elements of the last pair, which cannot change.
        kind_0: type | None = None
        kind_1: type | None = None
        results: list[V] = []
        append = results.append
        try:
            for key, value in zip(keys, values, strict=True):
                try:
                    row = memo[key]
                except KeyError:
                    row = self._locate(key) or self._make_row(key)
                current = row[slot]
                if current is not None:
                    value = function(current, value)
                row[slot] = value
                kind = type(value)
                if kind is tuple:
                    # The commonest result; most hold nothing that can change.
                    elements: tuple[object, ...] = value  # type: ignore[assignment]  # kind says it
                    if len(elements) == 2:
                        first, second = elements
                        if type(first) is kind_0 and type(second) is kind_1:
                            append(value)
                            continue
                        kind_0, kind_1 = type(first), type(second)
                    for element in elements:
                        if type(element) not in immutable:
                            append(copy_value(value))
                            kind_0 = None
                            break
                    else:
                        append(value)
                elif kind in immutable:
                    if value is None:
                        self._drop_if_empty(key, row)
                    append(value)
                else:
                    append(copy_value(value))
        except TypeError as error:
            check_hashable(keys[len(results)], error)
            raise
        finally:
            self.fold_position = len(results)
            self._find_current_row()
        return results

    def _drop_if_empty(self, key: Hashable, row: Row) -> None:
        if all(entry is None for entry in row):
            self._remove_row(key)

    def keys(self, state_name: str, namespace: Hashable = VOID_NAMESPACE) -> Iterator[Hashable]:
        """See `KeyedStateBackend`; entries may come and go meanwhile."""
        state = self._states.get(state_name)
        if state is None:
            raise StateError(f"no state {state_name!r} was asked for; known: {list(self._states)}")
        if state.slot is None:
            return iter(list(state.tables.get(namespace, ())))
        if namespace is not VOID_NAMESPACE:
            return iter(())
        return self._rows.keys(state.slot)

    def entry_count(self) -> int:
        """See `KeyedStateBackend`; goes over all entries of the states without namespace."""
        in_rows = sum(
            sum(entry is not None for entry in row)
            for group in self._rows.groups.values()
            for row in group.values()
        )
        return in_rows + self._table_entries() + self._restored_entries(timers=False)

    def _table_entries(self) -> int:
        return sum(len(table) for state in self._states.values() for table in state.tables.values())

    def _restored_entries(self, *, timers: bool) -> int:
        return sum(
            state.entries for state in self._restored.values() if timers or state.kind != TIMER_KIND
        )

    def _slot(self, state: HeapState) -> int:
        if state.slot is None:
            raise StateError(f"state {state.descriptor.name!r} has namespaces")
        return state.slot

    def _registered(self, descriptor: StateDescriptor, *, namespaced: bool) -> HeapState:
        state = self._states.get(descriptor.name)
        if state is None:
            return self._register(descriptor, namespaced)
        if state.descriptor is not descriptor and state.descriptor != descriptor:
            raise StateError(
                f"state {descriptor.name!r} was first asked for as {state.descriptor!r} and now"
                f" as {descriptor!r}"
            )
        if (state.slot is None) is not namespaced:
            raise StateError(
                f"state {descriptor.name!r} is {state.layout}; it cannot be asked for as both,"
                " with namespaces and without"
            )
        return state

    def _register(self, descriptor: StateDescriptor, namespaced: bool) -> HeapState:
        name = descriptor.name
        if name.startswith(TIMER_PREFIX):
            raise StateError(f"state {name!r}: names that begin with {TIMER_PREFIX!r} are taken")
        restored = self._restored.get(name)
        state = HeapState(descriptor, None if namespaced else self._rows.width)
        if restored is not None:
            serializer = descriptor.serializer.identity
            restored.require(descriptor.kind, state.layout, KEY_SERIALIZER, serializer)
        if not namespaced:
            self._rows.widen()
        self._states[name] = state
        if restored is not None:
            load_state(state, self._rows, restored)
            del self._restored[name]
            self._find_current_row()
        return state

    # -- timers -------------------------------------------------------------------------------

    def timer_queue(self, name: str) -> TimerQueue:
        """See `KeyedStateBackend`."""
        queue = self._timer_queues.get(name)
        if queue is None:
            queue = self._timer_queues[name] = self._timer_queue_factory()
            restored = self._restored.pop(TIMER_PREFIX + name, None)
            if restored is not None:
                restored.require(TIMER_KIND, TIMER_LAYOUT, KEY_SERIALIZER, TIMER_SERIALIZER)
                load_timers(queue, restored)
        return queue

    # -- life ---------------------------------------------------------------------------------

    def snapshot(self) -> HeapSnapshot:
        """See `KeyedStateBackend`; `write` reads the live tables."""
        entries = self._rows.count() * self._rows.width
        entries += sum(_entries_about(state.tables) for state in self._states.values())
        entries += sum(map(len, self._timer_queues.values()))
        return HeapSnapshot(
            entries + self._restored_entries(timers=True),
            self.key_group_range,
            self.max_parallelism,
            self._rows,
            tuple(self._states.values()),
            dict(self._timer_queues),
            tuple(self._restored.values()),
        )

    def restore(self, snapshots: Iterable[RestoredKeyedState]) -> None:
        """See `KeyedStateBackend`."""
        if self._states or self._timer_queues or self._restored:
            raise StateError("a backend is restored once, before its first state is asked for")
        self._restored = read_restored(snapshots, self.key_group_range, self.max_parallelism)

    def close(self) -> None:
        """See `KeyedStateBackend`."""
        self.row = None
        self.touched.clear()
        self.row_memo.clear()
        self._key_memo.clear()
        self._rows.groups.clear()
        for state in self._states.values():
            state.tables.clear()
        self._restored.clear()
        self._timer_queues.clear()


def _entries_about(tables: Tables) -> int:
    """Entries of a state; where namespaces are many, at least their number, in no time."""
    if len(tables) > _NAMESPACES_COUNTED_MAX:
        return len(tables)
    return sum(map(len, tables.values()))
