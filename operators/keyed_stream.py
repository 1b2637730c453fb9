"""Streams with a key: where keyed state, timers and windows are."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from typing import Any, Generic, NoReturn, TypeVar, cast

from operators.advice import ELSEWHERE
from operators.datastream import DataStream, Outlet
from operators.field_reduction import extreme_reduction, sum_reduction
from operators.fields import Field, field_getter
from operators.functions import (
    FilterFunction,
    FlatMapFunction,
    KeySelector,
    MapFunction,
    ReduceFunction,
    copy_function,
)
from operators.graph import Partitioning, StreamGraph
from operators.keyed import KeyedProcessOperator
from operators.keyed_functions import KeyedFilter, KeyedFlatMap, KeyedMap
from operators.process_functions import KeyedProcessFunction
from operators.reduce import ReduceOperator
from operators.user_code import check_function, check_object, operator_factory
from operators.windowed_stream import WindowedStream
from operators.windows import Window, WindowAssigner

T = TypeVar("T")
R = TypeVar("R")
K = TypeVar("K", bound=Hashable)
W = TypeVar("W", bound=Window)


class KeyedStream(DataStream[T], Generic[K, T]):
    """Records of type `T`, all of one key (of type `K`) on one subtask (PyFlink: `KeyedStream`).

    It is a partitioning, not an operator: settings such as `name` belong to the stream before it
    or to the operator after it.
    """

    _advice = ELSEWHERE

    def __init__(
        self, graph: StreamGraph, outlets: tuple[Outlet, ...], key_type: object = None
    ) -> None:
        super().__init__(graph, outlets)
        self._key_type = key_type

    def map(
        self, func: Callable[[T], R] | MapFunction[T, R], output_type: object = None
    ) -> DataStream[R]:
        """One result for each record; a `MapFunction` may use keyed state."""
        if isinstance(func, MapFunction):
            check_function(func, "map", MapFunction, "map", 1)
            return self._process("Map", KeyedMap(func), output_type)
        return super().map(func, output_type)

    def flat_map(
        self,
        func: Callable[[T], Iterable[R] | None] | FlatMapFunction[T, R],
        output_type: object = None,
    ) -> DataStream[R]:
        """Any number of results for each record; a `FlatMapFunction` may use keyed state."""
        if isinstance(func, FlatMapFunction):
            check_function(func, "flat_map", FlatMapFunction, "flat_map", 1)
            return self._process("Flat Map", KeyedFlatMap(func), output_type)
        return super().flat_map(func, output_type)

    def filter(self, func: Callable[[T], object] | FilterFunction[T]) -> DataStream[T]:
        """The records for which `func` is true; a `FilterFunction` may use keyed state."""
        if isinstance(func, FilterFunction):
            check_function(func, "filter", FilterFunction, "filter", 1)
            return self._process("Filter", KeyedFilter(func))
        return super().filter(func)

    def process(  # type: ignore[override]  # PyFlink: the function of a keyed stream is another
        self, func: KeyedProcessFunction[K, T, R], output_type: object = None
    ) -> DataStream[R]:
        """Any number of results and side outputs for each record, with keyed state and timers."""
        check_object(func, "process", KeyedProcessFunction, "process_element")
        check_object(func, "process", KeyedProcessFunction, "on_timer")
        return self._process("Keyed Process", func, output_type)

    def reduce(self, func: Callable[[T, T], T] | ReduceFunction[T]) -> DataStream[T]:
        """For each record the reduction of all of its key so far."""
        check_function(func, "reduce", ReduceFunction, "reduce", 2)
        return self._add("Keyed Reduce", operator_factory(ReduceOperator, func), keyed=True)

    def sum(self, position_to_sum: Field = 0) -> DataStream[T]:
        """The key's first record with the running sum in one field."""
        return self._reduce_field("Keyed Sum", sum_reduction(position_to_sum))

    def min(self, position_to_min: Field = 0) -> DataStream[T]:
        """The key's first record with the least value so far in one field."""
        function = extreme_reduction(position_to_min, largest=False, whole=False)
        return self._reduce_field("Keyed Min", function)

    def max(self, position_to_max: Field = 0) -> DataStream[T]:
        """The key's first record with the greatest value so far in one field."""
        function = extreme_reduction(position_to_max, largest=True, whole=False)
        return self._reduce_field("Keyed Max", function)

    def min_by(self, position_to_min_by: Field = 0) -> DataStream[T]:
        """The key's record with the least value so far in one field, the first among equals."""
        function = extreme_reduction(position_to_min_by, largest=False, whole=True)
        return self._reduce_field("Keyed Min By", function)

    def max_by(self, position_to_max_by: Field = 0) -> DataStream[T]:
        """The key's record with the greatest value so far in one field, the first among equals."""
        function = extreme_reduction(position_to_max_by, largest=True, whole=True)
        return self._reduce_field("Keyed Max By", function)

    def window(self, window_assigner: WindowAssigner[T, W]) -> WindowedStream[K, T, W]:
        """Groups the records of each key into windows."""
        example = "pass one, such as TumblingEventTimeWindows.of(Time.seconds(10))"
        check_object(window_assigner, "window", WindowAssigner, "assign_windows", advice=example)
        return WindowedStream(self, window_assigner)

    def get_key_type(self) -> object:
        """The type hint given for the key, or None."""
        return self._key_type

    def _process(self, name: str, function: object, output_type: object = None) -> DataStream[Any]:
        factory = operator_factory(KeyedProcessOperator, function)
        return self._add(name, factory, output_type, keyed=True)

    def _reduce_field(self, name: str, function: Callable[[T, T], T]) -> DataStream[T]:
        return self._add(name, operator_factory(ReduceOperator, function), keyed=True)

    def _partitioned(self, method: str, partitioning: Partitioning) -> NoReturn:
        raise TypeError(
            f"{method}() on a keyed stream would undo key_by(): call it on the stream before "
            "key_by(), or leave it out"
        )


def selector_function(
    selector: Callable[[T], K] | KeySelector[T, K] | Field,
) -> Callable[[object], Hashable]:
    """The function that reads the key of a record; TypeError for what selects nothing."""
    if isinstance(selector, str | int) and not isinstance(selector, bool):
        return field_getter(selector)
    field = "or the name or index of a field"
    check_function(selector, "key_by", KeySelector, "get_key", 1, also=field)
    if isinstance(selector, KeySelector):
        return cast(Callable[[object], Hashable], copy_function(selector).get_key)
    return cast(Callable[[object], Hashable], selector)
