"""What a user function gets in `open`: where it runs, its state, its metrics."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import TYPE_CHECKING, TypeVar, cast

from operators.metrics import MetricGroup
from statebackends.descriptors import (
    AggregatingStateDescriptor,
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    ValueStateDescriptor,
)
from statebackends.state import (
    AggregatingState,
    ListState,
    MapState,
    ReducingState,
    ValueState,
)

if TYPE_CHECKING:
    from operators.stream_operator import OperatorContext

T = TypeVar("T")
MK = TypeVar("MK", bound=Hashable)
MV = TypeVar("MV")
IN = TypeVar("IN")
ACC = TypeVar("ACC")
OUT = TypeVar("OUT")


class RuntimeContext:
    """The task's identity, keyed state and metrics (PyFlink: `RuntimeContext`).

    State handles mean the current key; on a stream that is not keyed asking for one raises
    `StateError`.
    """

    def __init__(self, context: OperatorContext) -> None:
        self._context = context

    def get_task_name(self) -> str:
        """The operator's name."""
        return self._context.operator_name

    def get_number_of_parallel_subtasks(self) -> int:
        """How many subtasks the operator has."""
        return self._context.parallelism

    def get_max_number_of_parallel_subtasks(self) -> int:
        """The number of key groups, the bound of every later rescaling."""
        return self._context.max_parallelism

    def get_index_of_this_subtask(self) -> int:
        """This subtask's index, from 0."""
        return self._context.subtask_index

    def get_attempt_number(self) -> int:
        """How often this run of the job was started again after a failure, from 0."""
        return self._context.attempt

    def get_task_name_with_subtasks(self) -> str:
        """Name, number from 1 and count, as in ``counts (1/4)``."""
        context = self._context
        return f"{context.operator_name} ({context.subtask_index + 1}/{context.parallelism})"

    def get_job_parameter(self, key: str, default_value: str | None = None) -> str | None:
        """A global job parameter, or the default."""
        parameters: Mapping[str, str] = getattr(self._context, "job_parameters", {})
        return parameters.get(key, default_value)

    def get_metrics_group(self) -> MetricGroup:
        """Where to register metrics of this operator and subtask."""
        return self._context.metrics

    def get_state(self, state_descriptor: ValueStateDescriptor[T]) -> ValueState[T]:
        """One value per key."""
        state = self._context.keyed_state.get_partitioned_state(state_descriptor)
        return cast("ValueState[T]", state)

    def get_list_state(self, state_descriptor: ListStateDescriptor[T]) -> ListState[T]:
        """A list per key."""
        state = self._context.keyed_state.get_partitioned_state(state_descriptor)
        return cast("ListState[T]", state)

    def get_map_state(self, state_descriptor: MapStateDescriptor[MK, MV]) -> MapState[MK, MV]:
        """A map per key."""
        state = self._context.keyed_state.get_partitioned_state(state_descriptor)
        return cast("MapState[MK, MV]", state)

    def get_reducing_state(self, state_descriptor: ReducingStateDescriptor[T]) -> ReducingState[T]:
        """A value per key into which others are reduced."""
        state = self._context.keyed_state.get_partitioned_state(state_descriptor)
        return cast("ReducingState[T]", state)

    def get_aggregating_state(
        self, state_descriptor: AggregatingStateDescriptor[IN, ACC, OUT]
    ) -> AggregatingState[IN, OUT]:
        """An accumulator per key."""
        state = self._context.keyed_state.get_partitioned_state(state_descriptor)
        return cast("AggregatingState[IN, OUT]", state)
