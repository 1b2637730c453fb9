"""The handles through which user code reads and writes keyed state.

Names are those of PyFlink. A handle always speaks of the backend's current key; handles of a
namespaced state also of the namespace set last. State hands out live objects: a mutation made
before the end of the same user call counts as written. Changing an object later, or keeping
one object under two keys or states, is undefined.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterable, Iterator, Mapping
from typing import Generic, TypeVar

from statebackends.errors import StateError

T = TypeVar("T")
K = TypeVar("K", bound=Hashable)
V = TypeVar("V")
IN = TypeVar("IN")
OUT = TypeVar("OUT")


class State(ABC):
    """State of the current key (Flink: `State`)."""

    @abstractmethod
    def clear(self) -> None:
        """Removes the entry of the current key; nothing of it stays behind."""

    def set_current_namespace(self, namespace: Hashable) -> None:
        """Chooses the namespace that the handle reads and writes; for operators only.

        Raises:
            StateError: the state has no namespaces, or `namespace` is None.
        """
        raise StateError(f"state without namespaces was given the namespace {namespace!r}")


class ValueState(State, Generic[T]):
    """One value (Flink: `ValueState`)."""

    @abstractmethod
    def value(self) -> T | None:
        """The value, or the descriptor's default (None unless given) where there is none."""

    @abstractmethod
    def update(self, value: T | None) -> None:
        """Replaces the value; None clears."""


class AppendingState(State, Generic[IN, OUT]):
    """State that values are added to (Flink: `AppendingState`)."""

    @abstractmethod
    def get(self) -> OUT | None:
        """What the values added so far come to."""

    @abstractmethod
    def add(self, value: IN) -> None:
        """Adds a value."""


class MergingState(AppendingState[IN, OUT]):
    """Appending state of which two can become one (Flink: `MergingState`)."""


class ListState(MergingState[T, Iterable[T]]):
    """A list of values in the order of their coming (Flink: `ListState`)."""

    @abstractmethod
    def get(self) -> Iterable[T]:
        """The elements at this moment, an empty iterable where there are none.

        Elements are live, the iterable is not: changes of the state do not show in it.
        """

    @abstractmethod
    def add(self, value: T) -> None:
        """Appends a value; raises `TypeError` for None."""

    @abstractmethod
    def add_all(self, values: Iterable[T]) -> None:
        """Appends all values, or none of them if `TypeError` is raised for a None."""

    @abstractmethod
    def update(self, values: Iterable[T]) -> None:
        """Replaces the list; an empty one clears. Raises `TypeError` for a None."""

    def __iter__(self) -> Iterator[T]:
        return iter(self.get())


class MapState(State, Generic[K, V]):
    """A mapping (Flink: `MapState`).

    Keys are stable values as for `key_by`; equal keys are one key and iteration shows their
    representative (1 for True and 1.0). The order of iteration is not promised. Iterating is
    safe while entries are put and removed: it goes over the entries of its beginning.
    """

    @abstractmethod
    def get(self, key: K) -> V | None:
        """The value under `key`, None where there is none."""

    @abstractmethod
    def put(self, key: K, value: V) -> None:
        """Puts a value (None is one) under `key`; raises `UnstableKeyError`."""

    @abstractmethod
    def put_all(self, dict_value: Mapping[K, V]) -> None:
        """Puts all entries of a mapping."""

    @abstractmethod
    def remove(self, key: K) -> None:
        """Removes the entry of `key` if there is one."""

    @abstractmethod
    def contains(self, key: K) -> bool:
        """Whether there is an entry under `key`."""

    @abstractmethod
    def items(self) -> Iterable[tuple[K, V]]:
        """The entries."""

    @abstractmethod
    def keys(self) -> Iterable[K]:
        """The keys."""

    @abstractmethod
    def values(self) -> Iterable[V]:
        """The values."""

    @abstractmethod
    def is_empty(self) -> bool:
        """Whether there is no entry."""

    def __getitem__(self, key: K) -> V | None:
        return self.get(key)

    def __setitem__(self, key: K, value: V) -> None:
        self.put(key, value)

    def __delitem__(self, key: K) -> None:
        self.remove(key)

    def __contains__(self, key: K) -> bool:
        return self.contains(key)

    def __iter__(self) -> Iterator[K]:
        return iter(self.keys())


class ReducingState(MergingState[T, T]):
    """Values folded into one of their kind (Flink: `ReducingState`).

    The first value is stored as it is; `get` gives None where nothing was added; adding None
    clears.
    """


class AggregatingState(MergingState[IN, OUT]):
    """Values folded into an accumulator (Flink: `AggregatingState`).

    `get` gives the function's result, None where nothing was added; adding None clears.
    """


__all__ = [
    "AggregatingState",
    "AppendingState",
    "ListState",
    "MapState",
    "MergingState",
    "ReducingState",
    "State",
    "ValueState",
]
