"""What a window keeps of its elements: all of them, or one value that they are folded into.

Each kind has one rule, used record by record (`first`, `add`) and over a batch (`fold`): the
two ways give the same contents.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, MutableMapping
from itertools import islice, repeat
from typing import Any, Generic, NamedTuple, TypeVar, cast

from operators.functions import AggregateFunction, ReduceFunction, callable_of
from operators.triggers import Window
from operators.window_grid import TimeWindow
from statebackends.descriptors import (
    AggregatingStateDescriptor,
    ListStateDescriptor,
    ReducingStateDescriptor,
    StateDescriptor,
)
from statebackends.mutability import IMMUTABLE_TYPES, copy_value

V = TypeVar("V")
Table = MutableMapping[Hashable, V]
Admit = Callable[[Hashable], Hashable]
"""Gives the representative of a key that is new in a table; raises `UnstableKeyError`."""

STATE_NAME = "window-contents"
ABSENT: Any = object()
"""Stands for "no contents"; None may be an accumulator."""


class WindowCount(NamedTuple):
    """How many records a key had in the window [start, end), in ms."""

    key: Hashable
    start: int
    end: int
    count: int  # type: ignore[assignment]  # hides tuple.count, which nobody asks of a result


class WindowContents(ABC, Generic[V]):
    """One kind of contents; `V` is what the state holds per key and window."""

    function: object = None
    """The user's function, if there is one."""

    overlapping = True
    """Whether a batch may lie in several windows at once; the operator says so."""

    @abstractmethod
    def descriptor(self) -> StateDescriptor:
        """Describes the state."""

    @abstractmethod
    def first(self, value: object) -> V:
        """The contents after the first element."""

    @abstractmethod
    def add(self, value: object, contents: V) -> V:
        """The contents after one more element; may be the object given, changed."""

    @abstractmethod
    def results(self, window: Window, keys: list[Hashable], contents: Iterable[V]) -> list[object]:
        """What a firing puts out (or gives to the window function), one per key."""

    def elements(self, result: object) -> Iterable[object]:
        """What a window function gets as its elements."""
        return [result]

    def detached(self, result: object, contents: V) -> object:
        """`result` with no part that later elements could change, if the window stays."""
        if type(contents) in IMMUTABLE_TYPES:
            return result
        return copy_value(result)

    def fold(
        self,
        table: Table[V],
        keys: Iterable[Hashable],
        values: Iterable[object],
        admit: Admit,
    ) -> list[Hashable]:
        """Adds a batch to one window's table, in order; gives the keys that are new in it.

        `values` is advanced one element per call of user code and not ahead of it, so that the
        caller can tell at which record user code raised. A key that is not found is looked up
        again by its representative: the two may be unequal for Python (times that come twice).
        """
        get, first, add = table.get, self.first, self.add
        new: list[Hashable] = []
        for key, value in zip(keys, values):  # noqa: B905 - strictness costs; the batch is even
            contents = get(key, ABSENT)
            if contents is ABSENT:
                key = admit(key)
                contents = get(key, ABSENT)
            if contents is ABSENT:
                new.append(key)
                table[key] = first(value)
            else:
                table[key] = add(value, contents)
        return new


class ListContents(WindowContents[list[object]]):
    """All elements in the order of their arrival."""

    def descriptor(self) -> StateDescriptor:
        """A list state."""
        return ListStateDescriptor[object](STATE_NAME)

    def first(self, value: object) -> list[object]:
        """A list of one."""
        return [value]

    def add(self, value: object, contents: list[object]) -> list[object]:
        """The same list, longer."""
        contents.append(value)
        return contents

    def results(
        self, window: Window, keys: list[Hashable], contents: Iterable[list[object]]
    ) -> list[object]:
        """The lists themselves."""
        return list(contents)

    def detached(self, result: object, contents: list[object]) -> object:
        """A list of its own with the same elements."""
        return contents.copy()

    def elements(self, result: object) -> Iterable[object]:
        """The list."""
        return cast("list[object]", result)


class ReduceContents(WindowContents[object]):
    """The elements reduced to one; the first stands as it came (Flink: `ReducingState`)."""

    def __init__(self, function: ReduceFunction[Any] | Callable[[Any, Any], object]) -> None:
        self.function = function
        reduce = cast("Callable[[object, object], object]", callable_of(function, "reduce"))
        self._reduce = reduce

    def descriptor(self) -> StateDescriptor:
        """A reducing state."""
        return ReducingStateDescriptor[object](STATE_NAME, self._reduce)

    def first(self, value: object) -> object:
        """The element itself."""
        return value

    def add(self, value: object, contents: object) -> object:
        """What was reduced so far comes first, then the element."""
        return self._reduce(contents, value)

    def results(
        self, window: Window, keys: list[Hashable], contents: Iterable[object]
    ) -> list[object]:
        """The reduced values."""
        return list(contents)

    def fold(
        self,
        table: Table[object],
        keys: Iterable[Hashable],
        values: Iterable[object],
        admit: Admit,
    ) -> list[Hashable]:
        """As `WindowContents.fold`, without a call around the user's."""
        get, reduce = table.get, self._reduce
        new: list[Hashable] = []
        for key, value in zip(keys, values):  # noqa: B905 - strictness costs; the batch is even
            contents = get(key, ABSENT)
            if contents is ABSENT:
                key = admit(key)
                contents = get(key, ABSENT)
            if contents is ABSENT:
                new.append(key)
                table[key] = value
            else:
                table[key] = reduce(contents, value)
        return new


class AggregateContents(WindowContents[object]):
    """The elements folded into an accumulator (Flink: `AggregatingState`)."""

    def __init__(self, function: AggregateFunction[Any, Any, Any]) -> None:
        self.function: AggregateFunction[Any, Any, Any] = function
        self._create = function.create_accumulator
        self._add = function.add
        self._get_result = function.get_result

    def descriptor(self) -> StateDescriptor:
        """An aggregating state."""
        return AggregatingStateDescriptor[Any, Any, Any](STATE_NAME, self.function)

    def first(self, value: object) -> object:
        """A fresh accumulator with the element."""
        return self._add(value, self._create())

    def add(self, value: object, contents: object) -> object:
        """The accumulator with one more element."""
        return self._add(value, contents)

    def results(
        self, window: Window, keys: list[Hashable], contents: Iterable[object]
    ) -> list[object]:
        """The results of the accumulators."""
        return list(map(self._get_result, contents))

    def fold(
        self,
        table: Table[object],
        keys: Iterable[Hashable],
        values: Iterable[object],
        admit: Admit,
    ) -> list[Hashable]:
        """As `WindowContents.fold`, without a call around the user's."""
        get, add = table.get, self._add
        new: list[Hashable] = []
        for key, value in zip(keys, values):  # noqa: B905 - strictness costs; the batch is even
            contents = get(key, ABSENT)
            if contents is ABSENT:
                key = admit(key)
                contents = get(key, ABSENT)
                if contents is ABSENT:
                    new.append(key)
                    contents = self._create()
            table[key] = add(value, contents)
        return new


class _CountFunction(AggregateFunction[object, int, int]):
    """Counting, as an aggregate function: what the state of `CountContents` is described by."""

    def create_accumulator(self) -> int:
        return 0

    def add(self, value: object, accumulator: int) -> int:
        return accumulator + 1

    def get_result(self, accumulator: int) -> int:
        return accumulator

    def merge(self, acc_a: int, acc_b: int) -> int:
        return acc_a + acc_b


class CountContents(WindowContents[int]):
    """How many elements there were; a batch is counted without a step of Python per record."""

    def __init__(self) -> None:
        # A batch that lies in several windows is counted once: it is the same list each time.
        self._counted: Iterable[Hashable] = ()
        self._counts: Counter[Hashable] = Counter()

    def descriptor(self) -> StateDescriptor:
        """An aggregating state of an int."""
        return AggregatingStateDescriptor[object, int, int](STATE_NAME, _CountFunction(), int)

    def first(self, value: object) -> int:
        """One."""
        return 1

    def add(self, value: object, contents: int) -> int:
        """One more."""
        return contents + 1

    def results(
        self, window: Window, keys: list[Hashable], contents: Iterable[int]
    ) -> list[object]:
        """A `WindowCount` per key."""
        start, end = window if isinstance(window, TimeWindow) else (None, None)
        rows = zip(keys, repeat(start), repeat(end), contents)
        # Skips the constructor of the named tuple, which takes twice as long as the rest.
        return [tuple.__new__(WindowCount, row) for row in rows]

    def fold(
        self,
        table: Table[int],
        keys: Iterable[Hashable],
        values: Iterable[object],
        admit: Admit,
    ) -> list[Hashable]:
        """As `WindowContents.fold`, without a step of Python per record.

        In a window of its own a batch is counted straight into the table; one that lies in
        several is counted once, and the counts are added to each.
        """
        if type(table) is dict and not self.overlapping:
            return _count_into(table, keys, admit)
        if keys is not self._counted:
            self._counted, self._counts = keys, Counter(keys)
        get = table.get
        new: list[Hashable] = []
        for key, count in self._counts.items():
            before = get(key)
            if before is None:
                key = admit(key)
                before = get(key)
            if before is None:
                new.append(key)
                table[key] = count
            else:
                table[key] = before + count
        return new


def _count_into(
    table: dict[Hashable, int], keys: Iterable[Hashable], admit: Admit
) -> list[Hashable]:
    """Counts `keys` in the table itself; the keys that are new in it, admitted, as they came."""
    before = len(table)
    # The loop in C that a Counter is filled by works on any dict.
    Counter.update(table, keys)  # type: ignore[call-overload]  # see above
    new: list[Hashable] = []
    # What was put in last is what is new. Backwards, the order of a window's results would show
    # where batches were cut.
    added = list(islice(reversed(table), len(table) - before))
    for key in reversed(added):
        admitted = admit(key)
        if admitted is key:
            new.append(key)
            continue
        count = table.pop(key)
        known = table.get(admitted)
        if known is None:
            new.append(admitted)
        table[admitted] = count + (known or 0)
    return new
