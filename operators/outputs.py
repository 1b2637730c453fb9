"""Collects what user code gives out until it is handed on as batches."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping
from typing import Any, NoReturn

from operators.elements import RecordBatch, SideBatch, StreamElement
from operators.errors import WrongResultError
from operators.output_tag import OutputTag
from statebackends.mutability import copy_value


class Outputs:
    """Main and side outputs since the last `take`, in the order in which they were given out.

    The lists stay the same objects, so that a driver binds their ``append`` once. Which outputs
    are for a side output is found out in `take`, so that most jobs do not pay for the question.
    """

    __slots__ = ("timestamps", "values")

    def __init__(self) -> None:
        self.values: list[object] = []
        self.timestamps: list[int | None] = []

    def detach(self, start: int, stop: int) -> None:
        """Puts copies in place of these outputs, where they can change."""
        self.values[start:stop] = map(detached, self.values[start:stop])

    def take(self, *, timed: bool) -> list[StreamElement]:
        """What was collected, main output first; without timestamps unless `timed`.

        Raises `WrongResultError` for a tuple that begins with an `OutputTag` and is not a pair.
        """
        if not self.values:
            return []
        values = self.values.copy()
        timestamps = self.timestamps.copy() if timed else None
        self.values.clear()
        self.timestamps.clear()
        if OutputTag.in_use:
            tagged = [
                index
                for index, output in enumerate(values)
                if type(output) is tuple and output and type(output[0]) is OutputTag
            ]
            if tagged:
                return _sorted_out(values, timestamps, tagged)
        return [RecordBatch(values, timestamps)]


def _sorted_out(
    values: list[Any], timestamps: list[int | None] | None, tagged: list[int]
) -> list[StreamElement]:
    """The main batch without the outputs at `tagged`, and a batch for each of their tags."""
    indices: dict[str, list[int]] = {}
    for index in tagged:
        output = values[index]
        if len(output) != 2:
            raise WrongResultError(
                f"an output that begins with an OutputTag is a pair of tag and value, "
                f"not {len(output)} values: write `yield tag, value`"
            )
        indices.setdefault(output[0].tag_id, []).append(index)
    sides = [
        SideBatch(
            tag,
            RecordBatch(
                [values[i][1] for i in places], timestamps and [timestamps[i] for i in places]
            ),
        )
        for tag, places in indices.items()
    ]
    for index in reversed(tagged):
        del values[index]
        if timestamps is not None:
            del timestamps[index]
    return [RecordBatch(values, timestamps), *sides] if values else [*sides]


def outputs_in(result: object, method: str) -> Iterable[object]:
    """What a user function returned, as the iterable of outputs that it is meant to be.

    Raises `WrongResultError` for values that are iterable but hardly meant so (str, bytes, tuples,
    mappings), for coroutines and for what is not iterable at all.
    """
    if result is None or (isinstance(result, tuple) and not result):
        return ()
    if inspect.iscoroutine(result):
        refuse_coroutines([result], method)
    doubtful = isinstance(result, str | bytes | bytearray | tuple | Mapping)
    if doubtful or not isinstance(result, Iterable):
        raise WrongResultError(
            f"{method} must return None or an iterable of outputs, not {type(result).__name__}: "
            f"write `yield {result!r:.80}`, or return a list"
        )
    return result


def refuse_coroutines(results: Iterable[object], method: str) -> NoReturn:
    """Raises WrongResultError; closes the coroutines, so that Python does not warn of them."""
    for result in results:
        if inspect.iscoroutine(result):
            result.close()
    raise WrongResultError(
        f"{method} returned a coroutine: async user functions are not supported yet; give back"
        " the value itself"
    )


def detached(output: object) -> object:
    """`output`, or a copy where it can change: state may hold it, or a part of it.

    State goes on changing its objects; a batch would show their last form in every place. Whether
    an output reaches one of them would take longer to find out than to copy it.
    """
    if type(output) is tuple:
        if output and isinstance(output[0], OutputTag):
            return (output[0], *map(detached, output[1:]))
        elements = tuple(map(copy_value, output))
        unchanged = all(new is old for new, old in zip(elements, output, strict=True))
        return output if unchanged else elements
    return copy_value(output)
