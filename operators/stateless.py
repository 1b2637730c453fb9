"""Map, filter and flat-map: one call per record, no state."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import compress, repeat
from operator import truth
from types import CoroutineType, GeneratorType

from operators.elements import RecordBatch
from operators.functions import callable_of
from operators.outputs import outputs_in, refuse_coroutines
from operators.stream_operator import BATCH_RECORDS_MAX, Work
from operators.user_function import UserFunctionOperator
from statebackends.mutability import copy_value


class MapOperator(UserFunctionOperator):
    """Puts a function's result in place of each record; timestamps stay."""

    def __init__(self, function: object) -> None:
        super().__init__(function)
        self.call = callable_of(function, "map")
        """What is called per record."""

    def process_batch(self, batch: RecordBatch) -> Work:
        """One record out for each one in."""
        values = batch.values
        self._size = len(values)
        records = self._records = iter(values)
        results = list(map(self.call, records))  # The user's function.
        if len(results) != len(values):
            raise _stopped("map")
        if results and type(results[0]) is CoroutineType:
            refuse_coroutines(results, "map")
        return (RecordBatch(results, batch.timestamps, None, batch.origin),)


class FilterOperator(UserFunctionOperator):
    """Drops the records for which a function is false."""

    def __init__(self, function: object) -> None:
        super().__init__(function)
        self.call = callable_of(function, "filter")
        """What is called per record."""

    def process_batch(self, batch: RecordBatch) -> Work:
        """The records that stay."""
        values = batch.values
        self._size = len(values)
        records = self._records = iter(values)
        results = list(map(self.call, records))  # The user's function.
        if len(results) != len(values):
            raise _stopped("filter")
        if results and type(results[0]) is CoroutineType:
            refuse_coroutines(results, "filter")
        judged = self._records = iter(results)
        verdicts = list(map(truth, judged))  # The user's function.
        kept = list(compress(values, verdicts))
        timestamps = batch.timestamps
        if len(kept) == len(values):
            return (RecordBatch(values, timestamps, None, batch.origin),)
        if not kept:
            return ()
        if timestamps is not None:
            timestamps = list(compress(timestamps, verdicts))
        return (RecordBatch(kept, timestamps, None, _kept_origin(batch.origin, verdicts)),)


class FlatMapOperator(UserFunctionOperator):
    """Puts any number of records in place of each one; they carry its timestamp."""

    def __init__(self, function: object) -> None:
        super().__init__(function)
        self._flat_map = callable_of(function, "flat_map")

    def process_batch(self, batch: RecordBatch) -> Work:
        """The results, in batches of at most `BATCH_RECORDS_MAX`, also within one record."""
        flat_map = self._flat_map
        self._size = len(batch.values)
        records = self._records = iter(batch.values)
        timestamps = batch.timestamps
        values_out: list[object] = []
        timestamps_out: list[int | None] = []
        copies = self.copies_outputs
        for value, timestamp in zip(records, timestamps or repeat(None), strict=False):
            results = flat_map(value)  # The user's function.
            if results.__class__ is not GeneratorType:
                if results is None:
                    continue
                results = outputs_in(results, "flat_map")
            for result in results:
                values_out.append(copy_value(result) if copies else result)
                timestamps_out.append(timestamp)
                if len(values_out) >= BATCH_RECORDS_MAX:
                    self.in_record = True
                    yield RecordBatch(values_out, None if timestamps is None else timestamps_out)
                    self.in_record = False
                    values_out = []
                    timestamps_out = []
        if values_out:
            yield RecordBatch(values_out, None if timestamps is None else timestamps_out)


def _kept_origin(
    origin: Callable[[int], str] | None, verdicts: Iterable[object]
) -> Callable[[int], str] | None:
    if origin is None:
        return None

    def kept(index: int) -> str:
        positions: Sequence[int] = [i for i, verdict in enumerate(verdicts) if verdict]
        return origin(positions[index])

    return kept


def _stopped(method: str) -> RuntimeError:
    # `map` takes a StopIteration of its function for the end of its input.
    return RuntimeError(f"the {method} function raised StopIteration")
