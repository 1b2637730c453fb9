"""Where a state handle of the heap backend finds the entry of the current key."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable
from typing import TYPE_CHECKING, Any

from statebackends.errors import StateError
from statebackends.state import State

if TYPE_CHECKING:
    from statebackends.heap import HeapKeyedStateBackend

Row = list[Any]
"""The entries of one key in the states without namespace; None where there is none."""

Tables = dict[Hashable, dict[Hashable, Any]]
"""Namespace -> key -> entry of one state."""


class Cell(State, ABC):
    """One entry, that of the current key (and namespace); never None."""

    _backend: HeapKeyedStateBackend

    @abstractmethod
    def _read(self) -> Any:
        """The entry, None if there is none."""

    @abstractmethod
    def _write(self, entry: Any) -> None:
        """Puts the entry, which is not None."""


class RowCell(Cell):
    """The entry in a slot of the current key's row."""

    def __init__(self, backend: HeapKeyedStateBackend, slot: int) -> None:
        self._backend = backend
        self._slot = slot

    def _read(self) -> Any:
        row = self._backend.row
        return None if row is None else row[self._slot]

    def _write(self, entry: Any) -> None:
        row = self._backend.row
        if row is None:
            row = self._backend.attach_row()
        row[self._slot] = entry

    def clear(self) -> None:
        """See `State`."""
        row = self._backend.row
        if row is not None and row[self._slot] is not None:
            row[self._slot] = None
            self._backend.detach_empty_row()


class TableCell(Cell):
    """The entry in the table of the current namespace."""

    def __init__(self, backend: HeapKeyedStateBackend, tables: Tables, name: str) -> None:
        self._backend = backend
        self._tables = tables
        self._name = name
        self._namespace: Hashable = None

    def set_current_namespace(self, namespace: Hashable) -> None:
        """See `State`."""
        if namespace is None:
            raise StateError(f"state {self._name!r} was given None as its namespace")
        self._namespace = namespace

    def _table(self) -> dict[Hashable, Any] | None:
        if self._namespace is None:
            raise StateError(f"state {self._name!r} was used before a namespace was set")
        return self._tables.get(self._namespace)

    def _read(self) -> Any:
        table = self._table()
        return None if table is None else table.get(self._backend.current_representative())

    def _write(self, entry: Any) -> None:
        table = self._table()
        if table is None:
            table = self._tables[self._namespace] = {}
        table[self._backend.current_representative()] = entry

    def clear(self) -> None:
        """See `State`."""
        table = self._table()
        if table is not None:
            table.pop(self._backend.current_representative(), None)
            if not table:
                del self._tables[self._namespace]
