"""The running reduce of a keyed stream."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from operators.elements import RecordBatch
from operators.functions import callable_of
from operators.stream_operator import Work
from operators.user_function import UserFunctionOperator
from statebackends.descriptors import ReducingStateDescriptor

REDUCE_STATE = "_op_state"
"""The name of the state that holds each key's value (Flink's `StreamGroupedReduceOperator`)."""


class ReduceOperator(UserFunctionOperator):
    """Reduces each record into its key's value and puts out the new value, at its timestamp."""

    def __init__(self, function: object) -> None:
        super().__init__(function)
        self._reduce = cast("Callable[[object, object], object]", callable_of(function, "reduce"))
        self._folding = False

    def initialize_state(self) -> None:
        """Describes the state."""
        self._backend = self.context.keyed_state
        self._descriptor: ReducingStateDescriptor[Any] = ReducingStateDescriptor(
            REDUCE_STATE, self._reduce
        )

    def process_batch(self, batch: RecordBatch) -> Work:
        """One record out for each one in."""
        if batch.keys is None:
            raise ValueError("records without keys came to a keyed operator")
        self._folding = True
        results = self._backend.fold(self._descriptor, batch.keys, batch.values, self._reduce)
        self._folding = False
        return (RecordBatch(results, batch.timestamps, None, batch.origin),)

    def position(self) -> int | None:
        """Index in the batch at hand of the record that failed to be reduced."""
        return self._backend.fold_position if self._folding else None
