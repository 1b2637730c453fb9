"""Keyed streams cut into windows."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from typing import TYPE_CHECKING, Any, Generic, TypeVar, overload

from operators.advice import COMPUTED_FIRST, Advising
from operators.field_reduction import extreme_reduction, sum_reduction
from operators.fields import Field
from operators.functions import AggregateFunction, ReduceFunction
from operators.graph import GraphOwner
from operators.output_tag import OutputTag
from operators.time import TimeLike, to_ms
from operators.triggers import Trigger
from operators.user_code import check_function, check_object
from operators.window_contents import (
    AggregateContents,
    CountContents,
    ListContents,
    ReduceContents,
    WindowContents,
    WindowCount,
)
from operators.window_factory import window_operator
from operators.window_functions import ProcessWindowFunction, WindowFunction, apply_callable
from operators.windows import Window, WindowAssigner

if TYPE_CHECKING:
    from operators.datastream import DataStream
    from operators.keyed_stream import KeyedStream

T = TypeVar("T")
R = TypeVar("R")
A = TypeVar("A")
ACC = TypeVar("ACC")
K = TypeVar("K", bound=Hashable)
W = TypeVar("W", bound=Window)


class WindowedStream(Advising, Generic[K, T, W]):
    """Records grouped by key and window, waiting for a function (PyFlink: `WindowedStream`).

    `trigger`, `allowed_lateness` and `side_output_late_data` change this object and return it;
    the other methods add the window operator to the job. All results carry the timestamp
    ``window.max_timestamp()``.
    """

    _advice = COMPUTED_FIRST

    def __init__(self, keyed_stream: KeyedStream[K, T], assigner: WindowAssigner[T, W]) -> None:
        self._keyed_stream = keyed_stream
        self._assigner = assigner
        self._trigger: Trigger[T, W] | None = None
        self._allowed_lateness: TimeLike = 0
        self._late_tag: OutputTag[T] | None = None

    # -- settings -----------------------------------------------------------------------------

    def trigger(self, trigger: Trigger[T, W]) -> WindowedStream[K, T, W]:
        """Fires the windows by `trigger` instead of the assigner's own."""
        check_object(trigger, "trigger", Trigger, "on_element")
        self._trigger = trigger
        return self

    def allowed_lateness(self, time_ms: TimeLike) -> WindowedStream[K, T, W]:
        """Keeps a window this long past its end: records for it fire it again."""
        if to_ms(time_ms, "allowed_lateness") < 0:
            raise ValueError(f"allowed_lateness must not be negative, not {time_ms!r}")
        self._allowed_lateness = time_ms
        return self

    def side_output_late_data(self, output_tag: OutputTag[T]) -> WindowedStream[K, T, W]:
        """Sends records that come too late for all of their windows to a side output.

        `get_side_output(output_tag)` of the result gives them; otherwise they are dropped and
        counted.
        """
        check_object(output_tag, "side_output_late_data", OutputTag)
        self._late_tag = output_tag
        return self

    # -- functions ----------------------------------------------------------------------------

    @overload
    def reduce(
        self,
        reduce_function: Callable[[T, T], T] | ReduceFunction[T],
        window_function: None = None,
        output_type: object = None,
    ) -> DataStream[T]: ...

    @overload
    def reduce(
        self,
        reduce_function: Callable[[T, T], T] | ReduceFunction[T],
        window_function: ProcessWindowFunction[T, R, K, W] | WindowFunction[T, R, K, W],
        output_type: object = None,
    ) -> DataStream[R]: ...

    def reduce(
        self,
        reduce_function: Callable[[T, T], T] | ReduceFunction[T],
        window_function: (
            ProcessWindowFunction[T, R, K, W] | WindowFunction[T, R, K, W] | None
        ) = None,
        output_type: object = None,
    ) -> DataStream[T] | DataStream[R]:
        """One reduced record per window, or what `window_function` makes of it."""
        check_function(reduce_function, "reduce", ReduceFunction, "reduce", 2)
        _check_window_function(window_function, "reduce")
        return self._add(ReduceContents(reduce_function), window_function, output_type)

    @overload
    def aggregate(
        self,
        aggregate_function: AggregateFunction[T, ACC, A],
        window_function: None = None,
        accumulator_type: object = None,
        output_type: object = None,
    ) -> DataStream[A]: ...

    @overload
    def aggregate(
        self,
        aggregate_function: AggregateFunction[T, ACC, A],
        window_function: ProcessWindowFunction[A, R, K, W] | WindowFunction[A, R, K, W],
        accumulator_type: object = None,
        output_type: object = None,
    ) -> DataStream[R]: ...

    def aggregate(
        self,
        aggregate_function: AggregateFunction[T, ACC, A],
        window_function: (
            ProcessWindowFunction[A, R, K, W] | WindowFunction[A, R, K, W] | None
        ) = None,
        accumulator_type: object = None,
        output_type: object = None,
    ) -> DataStream[A] | DataStream[R]:
        """One result per window, or what `window_function` makes of it."""
        check_object(aggregate_function, "aggregate", AggregateFunction, "add")
        _check_window_function(window_function, "aggregate")
        return self._add(AggregateContents(aggregate_function), window_function, output_type)

    def apply(
        self,
        window_function: (
            Callable[[K, W, Iterable[T]], Iterable[R] | None] | WindowFunction[T, R, K, W]
        ),
        output_type: object = None,
    ) -> DataStream[R]:
        """Gives key, window and all its records to a function once it fires."""
        check_function(window_function, "apply", WindowFunction, "apply", 3)
        if not isinstance(window_function, WindowFunction):
            window_function = apply_callable(window_function)
        return self._add(ListContents(), window_function, output_type)

    def process(
        self, process_window_function: ProcessWindowFunction[T, R, K, W], output_type: object = None
    ) -> DataStream[R]:
        """Gives all records of a window to a function with context once it fires."""
        check_object(process_window_function, "process", ProcessWindowFunction, "process")
        return self._add(ListContents(), process_window_function, output_type)

    # -- built-in aggregates ------------------------------------------------------------------

    def count(self) -> DataStream[WindowCount]:
        """How many records each window has, with key, start and end of the window."""
        return self._add(CountContents())

    def sum(self, position_to_sum: Field = 0) -> DataStream[T]:
        """The window's first record with the sum in one field."""
        return self._add(ReduceContents(sum_reduction(position_to_sum)))

    def min(self, position_to_min: Field = 0) -> DataStream[T]:
        """The window's first record with the least value in one field."""
        function = extreme_reduction(position_to_min, largest=False, whole=False)
        return self._add(ReduceContents(function))

    def max(self, position_to_max: Field = 0) -> DataStream[T]:
        """The window's first record with the greatest value in one field."""
        function = extreme_reduction(position_to_max, largest=True, whole=False)
        return self._add(ReduceContents(function))

    def min_by(self, position_to_min_by: Field = 0) -> DataStream[T]:
        """The window's record with the least value in one field, the first among equals."""
        function = extreme_reduction(position_to_min_by, largest=False, whole=True)
        return self._add(ReduceContents(function))

    def max_by(self, position_to_max_by: Field = 0) -> DataStream[T]:
        """The window's record with the greatest value in one field, the first among equals."""
        function = extreme_reduction(position_to_max_by, largest=True, whole=True)
        return self._add(ReduceContents(function))

    def get_execution_environment(self) -> GraphOwner:
        """The environment that the stream was made with."""
        return self._keyed_stream.get_execution_environment()

    def get_input_type(self) -> object:
        """The type hint given for the records, or None."""
        return self._keyed_stream.get_type()

    def _add(
        self,
        contents: WindowContents[Any],
        function: WindowFunction[Any, Any, Any, Any]
        | ProcessWindowFunction[Any, Any, Any, Any]
        | None = None,
        output_type: object = None,
    ) -> DataStream[Any]:
        factory = window_operator(
            self._assigner,
            contents,
            function,
            trigger=self._trigger,
            allowed_lateness=self._allowed_lateness,
            late_tag=self._late_tag,
        )
        name = f"Window({type(self._assigner).__name__})"
        return self._keyed_stream._add(name, factory, output_type, keyed=True)


def _check_window_function(window_function: object, method: str) -> None:
    if window_function is None or isinstance(window_function, WindowFunction):
        return
    check_object(window_function, method, ProcessWindowFunction, "process")
