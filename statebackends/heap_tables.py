"""What the heap backend holds: rows by key group, tables by namespace, restored sections."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from statebackends.descriptors import StateDescriptor
from statebackends.heap_cells import Row, Tables
from statebackends.state import State

V = TypeVar("V")


@dataclass(slots=True)
class HeapState:
    """A registered state: either a slot in every row, or tables by namespace."""

    descriptor: StateDescriptor
    slot: int | None
    tables: Tables = field(default_factory=dict)
    handle: State | None = None
    namespace_table: HeapNamespaceTable[Any] | None = None

    @property
    def layout(self) -> str:
        """How the entries are addressed; stored with the state."""
        return "namespaced" if self.slot is None else "void"


class HeapRows:
    """The rows of all keys: key group -> representative -> row. Empty groups are not there."""

    def __init__(self) -> None:
        self.groups: dict[int, dict[Hashable, Row]] = {}
        self.width = 0

    def widen(self) -> int:
        """Adds a slot to every row and tells its index."""
        for group in self.groups.values():
            for row in group.values():
                row.append(None)
        self.width += 1
        return self.width - 1

    def make(self, key_group: int, key: Hashable) -> Row:
        """A new row for a representative that has none."""
        group = self.groups.get(key_group)
        if group is None:
            group = self.groups[key_group] = {}
        row = group[key] = [None] * self.width
        return row

    def remove(self, key_group: int, key: Hashable) -> None:
        """Removes the row of a representative that has one."""
        group = self.groups[key_group]
        del group[key]
        if not group:
            del self.groups[key_group]

    def keys(self, slot: int) -> Iterator[Hashable]:
        """The keys with an entry in a slot; rows may come and go meanwhile."""
        for group in list(self.groups.values()):
            for key, row in list(group.items()):
                if row[slot] is not None:
                    yield key

    def count(self) -> int:
        """The number of rows."""
        return sum(map(len, self.groups.values()))


class HeapNamespaceTable(Generic[V]):
    """See `NamespaceTable`."""

    def __init__(self, tables: dict[Hashable, dict[Hashable, V]]) -> None:
        self._tables = tables

    def table(self, namespace: Hashable) -> dict[Hashable, V]:
        """The table of `namespace`: key -> accumulator, live."""
        table = self._tables.get(namespace)
        if table is None:
            table = self._tables[namespace] = {}
        return table

    def peek(self, namespace: Hashable) -> dict[Hashable, V] | None:
        """The table of `namespace` if it has entries."""
        return self._tables.get(namespace) or None

    def drop(self, namespace: Hashable) -> None:
        """Removes the table of `namespace` with all that is left in it."""
        self._tables.pop(namespace, None)

    def namespaces(self) -> Iterator[Hashable]:
        """The namespaces that have entries; they may come and go meanwhile."""
        return iter([namespace for namespace, table in self._tables.items() if table])
