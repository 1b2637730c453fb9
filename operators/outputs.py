"""Collects what user code gives out until it is handed on as batches."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping

from operators.elements import RecordBatch, SideBatch, StreamElement
from operators.output_tag import OutputTag
from statebackends.mutability import copy_value


class Outputs:
    """Main and side outputs since the last `take`.

    The lists stay the same objects, so that a driver binds their ``append`` once.
    """

    __slots__ = ("_side", "side_count", "timestamps", "values")

    def __init__(self) -> None:
        self.values: list[object] = []
        self.timestamps: list[int | None] = []
        self.side_count = 0
        """Records for side outputs; they count towards the size of a full batch."""
        self._side: dict[str, tuple[list[object], list[int | None]]] = {}

    def put_side(self, output: tuple[object, ...], timestamp: int | None) -> None:
        """Takes a pair of an `OutputTag` and a value."""
        tag = output[0]
        if not isinstance(tag, OutputTag) or len(output) != 2:
            raise TypeError(
                f"an output that begins with an OutputTag is a pair of tag and value, "
                f"not {len(output)} values: write `yield tag, value`"
            )
        lists = self._side.get(tag.tag_id)
        if lists is None:
            lists = self._side[tag.tag_id] = ([], [])
        lists[0].append(output[1])
        lists[1].append(timestamp)
        self.side_count += 1

    def take(self, *, timed: bool) -> list[StreamElement]:
        """What was collected, main output first; without timestamps unless `timed`."""
        elements: list[StreamElement] = []
        if self.values:
            timestamps = self.timestamps.copy() if timed else None
            elements.append(RecordBatch(self.values.copy(), timestamps))
            self.values.clear()
            self.timestamps.clear()
        if self.side_count:
            for tag, (values, timestamps_of_tag) in self._side.items():
                batch = RecordBatch(values, timestamps_of_tag if timed else None)
                elements.append(SideBatch(tag, batch))
            self._side.clear()
            self.side_count = 0
        return elements


def outputs_in(result: object, method: str) -> Iterable[object]:
    """What a user function returned, as the iterable of outputs that it is meant to be.

    Raises `TypeError` for values that are iterable but hardly meant so (str, bytes, tuples,
    mappings), for coroutines and for what is not iterable at all.
    """
    if result is None or (isinstance(result, tuple) and not result):
        return ()
    if inspect.iscoroutine(result):
        result.close()
        raise TypeError(
            f"{method} returned a coroutine: async user functions are not supported yet"
        )
    doubtful = isinstance(result, str | bytes | bytearray | tuple | Mapping)
    if doubtful or not isinstance(result, Iterable):
        raise TypeError(
            f"{method} must return None or an iterable of outputs, not {type(result).__name__}: "
            f"write `yield {result!r:.80}`, or return a list"
        )
    return result


def detached(output: object, touched: list[object]) -> object:
    """`output`, or a copy where it or (in a tuple) an element is an object that state holds.

    State goes on changing such an object; a batch would show its last form in every place.
    """
    if isinstance(output, tuple):
        elements = [_copied(element, touched) for element in output]
        if all(new is old for new, old in zip(elements, output, strict=True)):
            return output
        make = getattr(output, "_make", tuple)
        return make(elements)
    return _copied(output, touched)


def _copied(value: object, touched: list[object]) -> object:
    return copy_value(value) if any(value is held for held in touched) else value
