"""The five kinds of state on the heap, each over a cell that holds the entry.

Entries are live objects: what is put in is what comes out. Those that can change are noted in
`touched` when they are stored or handed out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

from statebackends.descriptors import (
    AggregatingStateDescriptor,
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    StateDescriptor,
    ValueStateDescriptor,
)
from statebackends.heap_cells import Cell, RowCell, TableCell
from statebackends.keys import SELF_REPRESENTING, representative_of
from statebackends.mutability import IMMUTABLE_TYPES, copy_value, note_mutable
from statebackends.state import (
    AggregatingState,
    ListState,
    MapState,
    ReducingState,
    State,
    ValueState,
)

S = TypeVar("S", bound=State)

_NOTED_TYPES = IMMUTABLE_TYPES - {type(None)}
"""Types of which nothing is left to be done; None leads to the default value."""

_LOOKED_UP_AS_IS = SELF_REPRESENTING | {bool, float}
"""Types of map keys that a dict finds by equality; all others by their representatives."""


class HeapValueState(Cell, ValueState[Any]):
    """A value in a cell."""

    _default: Any = None

    def value(self) -> Any:
        """See `ValueState`."""
        value = self._read()
        if type(value) in _NOTED_TYPES:
            return value
        return self._handed_out(value)

    def update(self, value: Any) -> None:
        """See `ValueState`."""
        if value is None:
            self.clear()
            return
        self._write(value)
        if type(value) not in _NOTED_TYPES:
            note_mutable(value, self._backend.touched)

    def _handed_out(self, value: Any) -> Any:
        if value is None:
            self._backend.require_key()
            return copy_value(self._default)
        note_mutable(value, self._backend.touched)
        return value


class HeapListState(Cell, ListState[Any]):
    """A list in a cell; never an empty one."""

    def get(self) -> Iterable[Any]:
        """See `ListState`."""
        elements = self._read()
        if elements is None:
            self._backend.require_key()
            return []
        self._note(elements)
        return list(elements)

    def add(self, value: Any) -> None:
        """See `ListState`."""
        if value is None:
            raise TypeError("a list state holds no None")
        elements = self._read()
        if elements is None:
            self._write([value])
        else:
            elements.append(value)
        if type(value) not in _NOTED_TYPES:
            note_mutable(value, self._backend.touched)

    def add_all(self, values: Iterable[Any]) -> None:
        """See `ListState`."""
        added = self._checked(values)
        elements = self._read()
        if elements is not None:
            elements.extend(added)
        elif added:
            self._write(added)

    def update(self, values: Iterable[Any]) -> None:
        """See `ListState`."""
        elements = self._checked(values)
        if elements:
            self._write(elements)
        else:
            self.clear()

    def _checked(self, values: Iterable[Any]) -> list[Any]:
        if values is None:
            raise TypeError("a list state takes an iterable, not None")
        elements = list(values)
        for element in elements:
            if element is None:
                raise TypeError("a list state holds no None")
        self._note(elements)
        return elements

    def _note(self, elements: list[Any]) -> None:
        if not IMMUTABLE_TYPES.issuperset(map(type, elements)):
            for element in elements:
                note_mutable(element, self._backend.touched)


class HeapMapState(Cell, MapState[Any, Any]):
    """A dict in a cell, keyed by representatives; never an empty one."""

    def get(self, key: Any) -> Any:
        """See `MapState`."""
        entries = self._read()
        if entries is None:
            self._backend.require_key()
            return None
        value = entries.get(key if type(key) in _LOOKED_UP_AS_IS else representative_of(key))
        if type(value) not in IMMUTABLE_TYPES:
            note_mutable(value, self._backend.touched)
        return value

    def put(self, key: Any, value: Any) -> None:
        """See `MapState`."""
        if type(key) not in SELF_REPRESENTING:
            key = representative_of(key)
        entries = self._read()
        if entries is None:
            self._write({key: value})
        else:
            entries[key] = value
        if type(value) not in IMMUTABLE_TYPES:
            note_mutable(value, self._backend.touched)

    def put_all(self, dict_value: Mapping[Any, Any]) -> None:
        """See `MapState`."""
        for key, value in dict_value.items():
            self.put(key, value)

    def remove(self, key: Any) -> None:
        """See `MapState`."""
        entries = self._read()
        if entries is not None:
            entries.pop(key if type(key) in _LOOKED_UP_AS_IS else representative_of(key), None)
            if not entries:
                self.clear()

    def contains(self, key: Any) -> bool:
        """See `MapState`."""
        entries = self._read()
        if entries is None:
            return False
        return (key if type(key) in _LOOKED_UP_AS_IS else representative_of(key)) in entries

    def items(self) -> Iterable[tuple[Any, Any]]:
        """See `MapState`."""
        entries = self._noted()
        return list(entries.items())

    def keys(self) -> Iterable[Any]:
        """See `MapState`."""
        return list(self._read() or ())

    def values(self) -> Iterable[Any]:
        """See `MapState`."""
        return list(self._noted().values())

    def is_empty(self) -> bool:
        """See `MapState`."""
        return self._read() is None

    def _noted(self) -> dict[Any, Any]:
        entries: dict[Any, Any] = self._read() or {}
        if not IMMUTABLE_TYPES.issuperset(map(type, entries.values())):
            for value in entries.values():
                note_mutable(value, self._backend.touched)
        return entries


class HeapReducingState(Cell, ReducingState[Any]):
    """The reduced value in a cell."""

    _reduce: Callable[[Any, Any], Any]

    def get(self) -> Any:
        """See `AppendingState`."""
        value = self._read()
        if type(value) not in IMMUTABLE_TYPES:
            note_mutable(value, self._backend.touched)
        return value

    def add(self, value: Any) -> None:
        """See `AppendingState`."""
        if value is not None:
            current = self._read()
            if current is not None:
                value = self._reduce(current, value)
        if value is None:
            self.clear()
            return
        self._write(value)
        if type(value) not in IMMUTABLE_TYPES:
            note_mutable(value, self._backend.touched)


class HeapAggregatingState(Cell, AggregatingState[Any, Any]):
    """The accumulator in a cell; one that is None counts as none."""

    _function: Any

    def get(self) -> Any:
        """See `AppendingState`."""
        accumulator = self._read()
        if accumulator is None:
            return None
        result = self._function.get_result(accumulator)
        if type(result) not in IMMUTABLE_TYPES:
            note_mutable(result, self._backend.touched)
        return result

    def add(self, value: Any) -> None:
        """See `AppendingState`."""
        if value is None:
            self.clear()
            return
        accumulator = self._read()
        if accumulator is None:
            accumulator = self._function.create_accumulator()
        accumulator = self._function.add(value, accumulator)
        if accumulator is None:
            self.clear()
        else:
            self._write(accumulator)


class RowValueState(RowCell, HeapValueState):
    """A value in a row: the commonest state, so its way is the shortest."""

    _usual: type = int
    """A type of which nothing is left to be done; to compare with it is the quickest test."""

    def value(self) -> Any:
        """See `ValueState`."""
        row = self._backend.row
        if row is None:
            return self._handed_out(None)
        value = row[self._slot]
        if type(value) is self._usual or type(value) in _NOTED_TYPES:
            return value
        return self._handed_out(value)

    def update(self, value: Any) -> None:
        """See `ValueState`."""
        row = self._backend.row
        if row is None or type(value) is not self._usual:
            HeapValueState.update(self, value)
            if type(value) in _NOTED_TYPES:
                self._usual = type(value)
        else:
            row[self._slot] = value


class RowListState(RowCell, HeapListState):
    """A list in a row."""


class RowMapState(RowCell, HeapMapState):
    """A map in a row."""


class RowReducingState(RowCell, HeapReducingState):
    """A reduced value in a row."""


class RowAggregatingState(RowCell, HeapAggregatingState):
    """An accumulator in a row."""


class TableValueState(TableCell, HeapValueState):
    """A value in a table."""


class TableListState(TableCell, HeapListState):
    """A list in a table."""


class TableMapState(TableCell, HeapMapState):
    """A map in a table."""


class TableReducingState(TableCell, HeapReducingState):
    """A reduced value in a table."""


class TableAggregatingState(TableCell, HeapAggregatingState):
    """An accumulator in a table."""


ROW_STATES: dict[str, type[RowCell]] = {
    "value": RowValueState,
    "list": RowListState,
    "map": RowMapState,
    "reducing": RowReducingState,
    "aggregating": RowAggregatingState,
}
TABLE_STATES: dict[str, type[TableCell]] = {
    "value": TableValueState,
    "list": TableListState,
    "map": TableMapState,
    "reducing": TableReducingState,
    "aggregating": TableAggregatingState,
}


def bind(state: S, descriptor: StateDescriptor) -> S:
    """Gives a handle what its descriptor says beside name and serializer."""
    if isinstance(state, HeapValueState) and isinstance(descriptor, ValueStateDescriptor):
        state._default = descriptor.default_value
    elif isinstance(state, HeapReducingState) and isinstance(descriptor, ReducingStateDescriptor):
        state._reduce = descriptor.reduce
    elif isinstance(state, HeapAggregatingState) and isinstance(
        descriptor, AggregatingStateDescriptor
    ):
        state._function = descriptor.agg_function
    elif not isinstance(descriptor, ListStateDescriptor | MapStateDescriptor):
        raise TypeError(f"{descriptor!r} describes no state of this backend")
    return state
