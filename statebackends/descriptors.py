"""What a state is called and holds: fixed when the state is first asked for.

Argument order is PyFlink's. A type may be left out (values are pickled then), be a Python type,
a `Types.X()` or a serializer.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable
from typing import Any, Generic, Protocol, TypeVar, cast

from statebackends.serializers import KeySerializer, ListSerializer, MapSerializer, TypeSerializer
from statebackends.type_info import serializer_for

T = TypeVar("T")
K = TypeVar("K", bound=Hashable)
V = TypeVar("V")
IN = TypeVar("IN")
ACC = TypeVar("ACC")
OUT = TypeVar("OUT")
IN_contra = TypeVar("IN_contra", contravariant=True)
OUT_co = TypeVar("OUT_co", covariant=True)


class Reduces(Protocol[T]):
    """An object that combines two values into one of their kind."""

    def reduce(self, value1: T, value2: T, /) -> T:
        """What the two values come to."""


class Aggregates(Protocol[IN_contra, ACC, OUT_co]):
    """An object that folds values into an accumulator (Flink: `AggregateFunction`)."""

    def create_accumulator(self) -> ACC:
        """The accumulator of no values."""

    def add(self, value: IN_contra, accumulator: ACC, /) -> ACC:
        """The accumulator with one more value; may be the one given, changed."""

    def get_result(self, accumulator: ACC, /) -> OUT_co:
        """What the accumulator stands for."""

    def merge(self, acc_a: ACC, acc_b: ACC, /) -> ACC:
        """The accumulator of the values of both; may be one of those given, changed."""


class StateDescriptor(ABC):
    """Name, kind and serializer of a state (Flink: `StateDescriptor`).

    Descriptors are equal if kind, name and serializer are.

    Raises:
        ValueError: the name is empty.
        TypeError: the name is no string, or a type is none.
    """

    kind: str
    """One of value, list, map, reducing, aggregating; stored with the state."""

    def __init__(self, name: str) -> None:
        if not isinstance(name, str):
            raise TypeError(f"a state's name is a string, not {name!r}")
        if not name:
            raise ValueError("a state needs a name")
        self.name = name

    @property
    @abstractmethod
    def serializer(self) -> TypeSerializer[Any]:
        """The serializer of all that one key has in this state."""

    def get_name(self) -> str:
        """The name, unique within an operator."""
        return self.name

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, StateDescriptor):
            return NotImplemented
        return (self.kind, self.name, self.serializer.identity) == (
            other.kind,
            other.name,
            other.serializer.identity,
        )

    def __hash__(self) -> int:
        return hash((self.kind, self.name))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r}, {self.serializer.identity})"


class ValueStateDescriptor(StateDescriptor, Generic[T]):
    """Describes a `ValueState`; `default_value` is what it gives where nothing is stored.

    A mutable default is copied each time it is given out.
    """

    kind = "value"

    def __init__(
        self,
        name: str,
        value_type_info: type[T] | TypeSerializer[T] | None = None,
        default_value: T | None = None,
    ) -> None:
        super().__init__(name)
        self._serializer = serializer_for(value_type_info)
        self.default_value = default_value

    @property
    def serializer(self) -> TypeSerializer[T]:
        """See `StateDescriptor`."""
        return self._serializer


class ListStateDescriptor(StateDescriptor, Generic[T]):
    """Describes a `ListState`."""

    kind = "list"

    def __init__(
        self, name: str, elem_type_info: type[T] | TypeSerializer[T] | None = None
    ) -> None:
        super().__init__(name)
        self.element_serializer = serializer_for(elem_type_info)
        self._serializer = ListSerializer(self.element_serializer)

    @property
    def serializer(self) -> ListSerializer:
        """See `StateDescriptor`."""
        return self._serializer


class MapStateDescriptor(StateDescriptor, Generic[K, V]):
    """Describes a `MapState` (or broadcast state)."""

    kind = "map"

    def __init__(
        self,
        name: str,
        key_type_info: type[K] | TypeSerializer[K] | None = None,
        value_type_info: type[V] | TypeSerializer[V] | None = None,
    ) -> None:
        super().__init__(name)
        self.key_serializer = KeySerializer(serializer_for(key_type_info))
        self.value_serializer = serializer_for(value_type_info)
        self._serializer = MapSerializer(self.key_serializer, self.value_serializer)

    @property
    def serializer(self) -> MapSerializer:
        """See `StateDescriptor`."""
        return self._serializer


class ReducingStateDescriptor(StateDescriptor, Generic[T]):
    """Describes a `ReducingState`; the function is a callable or an object with `reduce`."""

    kind = "reducing"

    def __init__(
        self,
        name: str,
        reduce_function: Callable[[T, T], T] | Reduces[T],
        type_info: type[T] | TypeSerializer[T] | None = None,
    ) -> None:
        super().__init__(name)
        self._reduce_function = reduce_function
        self._serializer = serializer_for(type_info)
        reduce = getattr(reduce_function, "reduce", reduce_function)
        if not callable(reduce):
            raise TypeError(f"state {name!r}: {reduce_function!r} is no reduce function")
        self.reduce = cast("Callable[[T, T], T]", reduce)
        """The function as a callable."""

    @property
    def serializer(self) -> TypeSerializer[T]:
        """See `StateDescriptor`."""
        return self._serializer

    def get_reduce_function(self) -> Callable[[T, T], T] | Reduces[T]:
        """The function as it was given."""
        return self._reduce_function


class AggregatingStateDescriptor(StateDescriptor, Generic[IN, ACC, OUT]):
    """Describes an `AggregatingState`; the type is that of the accumulator."""

    kind = "aggregating"

    def __init__(
        self,
        name: str,
        agg_function: Aggregates[IN, ACC, OUT],
        state_type_info: type[ACC] | TypeSerializer[ACC] | None = None,
    ) -> None:
        super().__init__(name)
        for method in ("create_accumulator", "add", "get_result", "merge"):
            if not callable(getattr(agg_function, method, None)):
                raise TypeError(f"state {name!r}: {agg_function!r} has no method {method!r}")
        self.agg_function = agg_function
        self._serializer = serializer_for(state_type_info)

    @property
    def serializer(self) -> TypeSerializer[ACC]:
        """See `StateDescriptor`."""
        return self._serializer

    def get_agg_function(self) -> Aggregates[IN, ACC, OUT]:
        """The function as it was given."""
        return self.agg_function


__all__ = [
    "Aggregates",
    "AggregatingStateDescriptor",
    "ListStateDescriptor",
    "MapStateDescriptor",
    "Reduces",
    "ReducingStateDescriptor",
    "StateDescriptor",
    "ValueStateDescriptor",
]
