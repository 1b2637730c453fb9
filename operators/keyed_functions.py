"""Map, flat-map and filter functions on keyed streams: process functions around them.

A function object on a keyed stream may use keyed state, so each record is processed with its
key current.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeVar

from operators.functions import FilterFunction, FlatMapFunction, MapFunction
from operators.process_functions import KeyedProcessFunction
from operators.runtime_context import RuntimeContext

T = TypeVar("T")
R = TypeVar("R")


class KeyedMap(KeyedProcessFunction[Any, T, R]):
    """Calls a `MapFunction` with the record's key current."""

    def __init__(self, function: MapFunction[T, R]) -> None:
        self._function = self.__wrapped__ = function

    def open(self, runtime_context: RuntimeContext) -> None:
        """Opens the function."""
        self._function.open(runtime_context)

    def close(self) -> None:
        """Closes the function."""
        self._function.close()

    def process_element(self, value: T, ctx: KeyedProcessFunction.Context) -> Iterable[R]:
        """The function's one result."""
        return [self._function.map(value)]


class KeyedFlatMap(KeyedProcessFunction[Any, T, R]):
    """Calls a `FlatMapFunction` with the record's key current."""

    def __init__(self, function: FlatMapFunction[T, R]) -> None:
        self._function = self.__wrapped__ = function

    def open(self, runtime_context: RuntimeContext) -> None:
        """Opens the function."""
        self._function.open(runtime_context)

    def close(self) -> None:
        """Closes the function."""
        self._function.close()

    def process_element(self, value: T, ctx: KeyedProcessFunction.Context) -> Iterable[R] | None:
        """The function's results."""
        return self._function.flat_map(value)


class KeyedFilter(KeyedProcessFunction[Any, T, T]):
    """Calls a `FilterFunction` with the record's key current."""

    def __init__(self, function: FilterFunction[T]) -> None:
        self._function = self.__wrapped__ = function

    def open(self, runtime_context: RuntimeContext) -> None:
        """Opens the function."""
        self._function.open(runtime_context)

    def close(self) -> None:
        """Closes the function."""
        self._function.close()

    def process_element(self, value: T, ctx: KeyedProcessFunction.Context) -> Iterable[T]:
        """The record, if the function lets it pass."""
        return [value] if self._function.filter(value) else ()
