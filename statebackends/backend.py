"""The contract of a keyed state backend: what operators ask of it, what the runtime asks of it.

One backend belongs to one keyed operator instance and is touched by its task only. It holds the
states of the keys whose key group lies in `key_group_range`, and the timers of those keys.

Two ways lead to state:

* the *current key*: `set_current_key` once per record, then state handles (`state.py`) read and
  write the entry of that key (and of their current namespace);
* *namespace tables*: the window operator folds a whole batch into the accumulators of one
  window, so it asks for the table of that namespace and works on it directly.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable, Iterator, MutableMapping
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from statebackends.descriptors import StateDescriptor
from statebackends.keygroups import KeyGroupRange
from statebackends.state import State
from statebackends.timer_queue import TimerQueue

if TYPE_CHECKING:
    from statebackends.snapshot import RestoredKeyedState, StateSection

V = TypeVar("V")

VOID_NAMESPACE: Hashable = None
"""The namespace of state that belongs to a key alone."""


class SnapshotSink(Protocol):
    """Where a snapshot writes: chunks of bytes, in order."""

    def write(self, chunk: bytes) -> None:
        """Appends `chunk`."""

    def tell(self) -> int:
        """Bytes written so far."""


class KeyedSnapshot(Protocol):
    """The cut of one backend, fixed at the barrier, not yet written."""

    @property
    def entries(self) -> int:
        """How many state entries and timers it holds; decides between inline and fork."""

    @property
    def key_group_range(self) -> KeyGroupRange:
        """The key groups of the backend."""

    @property
    def max_parallelism(self) -> int:
        """The number of key groups of the operator."""

    def write(self, sink: SnapshotSink, alive: Callable[[], bool]) -> list[StateSection]:
        """Serialises the cut into `sink` and says where each state's key groups lie in it.

        Called at once after the cut in the same turn (inline), or in a forked child: it must not
        touch event loop, threads, logging or clients. `alive` is asked once per chunk; false
        means give up (raise `InterruptedError`).
        """


class NamespaceTable(Protocol[V]):
    """The accumulators of one window state, by namespace.

    Keys in the tables are representatives. `table(ns)` of a namespace with no entry gives an
    empty table that becomes part of the state with its first entry; a table whose last entry
    was removed leaves nothing behind once `drop(ns)` was called.
    """

    def table(self, namespace: Hashable) -> MutableMapping[Hashable, V]:
        """The table of `namespace`: key -> accumulator, live."""

    def peek(self, namespace: Hashable) -> MutableMapping[Hashable, V] | None:
        """The table of `namespace` if it has entries, without making one."""

    def drop(self, namespace: Hashable) -> None:
        """Removes the table of `namespace` with all that is left in it."""

    def namespaces(self) -> Iterator[Hashable]:
        """The namespaces that have entries."""


class KeyedStateBackend(ABC):
    """Keyed state and timers of one operator instance (Flink: `KeyedStateBackend`).

    Order of calls: constructed, `restore` (at most once), then states are registered by getting
    them, then records. A state is registered under its name once; a second get returns the same
    handle and must name the same kind (`StateError` otherwise).
    """

    key_group_range: KeyGroupRange
    max_parallelism: int
    current_key: Hashable
    """The key of the present record or timer, as the record gave it."""
    row_memo: dict[Hashable, list[Any]]
    """Rows of keys seen lately, always the same dict; empty in a backend without rows.

    A loop over records may make a key in here current itself: set `current_key` and `row`,
    clear `touched`. Any other key takes `set_current_key`.
    """
    row: list[Any] | None
    """The row of the current key, in a backend with rows."""
    touched: list[object]
    """Mutable objects that state took or handed out since `set_current_key`; always the same
    list. An output among them is copied when it is put out."""

    # -- keys ---------------------------------------------------------------------------------

    @abstractmethod
    def set_current_key(self, key: Hashable) -> None:
        """Makes `key` the one that state handles read and write. Called once per record: fast.

        Raises `UnstableKeyError` at the first record of a key without a stable form.
        """

    @abstractmethod
    def key_group_of(self, key: Hashable) -> int:
        """The key group of `key`, remembered in a bounded memo; raises `UnstableKeyError`."""

    @abstractmethod
    def representative(self, key: Hashable) -> Hashable:
        """The one object that stands for all keys equal to `key` (1 for True and 1.0)."""

    # -- state --------------------------------------------------------------------------------

    @abstractmethod
    def get_partitioned_state(self, descriptor: StateDescriptor) -> State:
        """The handle of a state in the void namespace (Flink: `getPartitionedState`)."""

    @abstractmethod
    def get_namespaced_state(self, descriptor: StateDescriptor) -> State:
        """The handle of a state with namespaces; call its `set_current_namespace` before use."""

    @abstractmethod
    def namespace_table(self, descriptor: StateDescriptor) -> NamespaceTable[V]:
        """The tables of a window state; the values are what the operator puts in.

        The same state can be read by `get_namespaced_state` of an equal descriptor.
        """

    @abstractmethod
    def fold(
        self,
        descriptor: StateDescriptor,
        keys: list[Hashable],
        values: list[V],
        function: Callable[[V, V], V],
    ) -> list[V]:
        """A running reduce over a batch, in order: per record the new value of its key.

        The first value of a key is stored as it is (Flink: `ReducingState`). If `function`
        raises, the records before it are applied and `fold_position` says how many they were.
        """

    fold_position: int
    """Records applied by the last `fold`."""

    @abstractmethod
    def keys(self, state_name: str, namespace: Hashable = VOID_NAMESPACE) -> Iterator[Hashable]:
        """The keys that have an entry in a state and namespace."""

    @abstractmethod
    def entry_count(self) -> int:
        """State entries of all states and namespaces (timers not counted)."""

    # -- timers -------------------------------------------------------------------------------

    @abstractmethod
    def timer_queue(self, name: str) -> TimerQueue:
        """The queue of that name, made at the first call; it is part of the snapshot."""

    # -- life ---------------------------------------------------------------------------------

    @abstractmethod
    def snapshot(self) -> KeyedSnapshot:
        """Fixes the cut of all states and timers. Fast: the work is in `KeyedSnapshot.write`."""

    @abstractmethod
    def restore(self, snapshots: Iterable[RestoredKeyedState]) -> None:
        """Takes in the key groups of `key_group_range` from the snapshots of former subtasks.

        States are known by name at once and keep their entries until a descriptor of that name
        is used; a descriptor of another kind or another key serializer raises `StateError`. A
        state that is never asked for stays in the next snapshots.
        """

    @abstractmethod
    def close(self) -> None:
        """Releases what the backend holds; may be called twice."""


KeyedStateBackendFactory = Callable[[KeyGroupRange, int], KeyedStateBackend]
"""Makes the backend of one operator instance from its range and the max parallelism."""


__all__ = [
    "VOID_NAMESPACE",
    "KeyedSnapshot",
    "KeyedStateBackend",
    "KeyedStateBackendFactory",
    "NamespaceTable",
    "SnapshotSink",
]
