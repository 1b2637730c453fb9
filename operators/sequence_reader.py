"""Reading numbered records: what the collection, sequence and generator sources share.

Records are numbered 0, 1, 2, ... Subtask i of n starts with the stride i, i + n, i + 2n, ...,
so that all subtasks move through event time alike. A stride not yet read to its end, as
(next, end, step), is one entry of operator list state: after a change of the parallelism the
entries are spread over the new subtasks, and no record is lost or read twice.
"""

from __future__ import annotations

import sys
from abc import abstractmethod
from collections import deque
from functools import partial
from typing import Generic, TypeVar

from operators.source import InputStatus, SourceReader, SourceReaderContext, SplitBatch
from statebackends.descriptors import ListStateDescriptor

T = TypeVar("T")

UNBOUNDED_END = sys.maxsize
"""The end of numbered records that never end."""


class Stride:
    """Every `step`-th number from `next` up to `end` (exclusive)."""

    __slots__ = ("end", "next", "split", "step")

    def __init__(self, first: int, end: int, step: int) -> None:
        self.next = first
        self.end = end
        self.step = step
        self.split: str | None = None

    def take(self, records_max: int, end: int) -> range:
        """The next numbers below `end`, at most `records_max`; they count as read."""
        stop = min(self.end, end, self.next + records_max * self.step)
        numbers = range(self.next, stop, self.step)
        self.next += len(numbers) * self.step
        return numbers


class SequenceReader(SourceReader[T], Generic[T]):
    """Reads the strides that belong to one subtask.

    A subtask with several strides (after its parallelism was lowered) reads them in turn, each
    as a split with a watermark of its own.
    """

    def __init__(self, context: SourceReaderContext, count: int) -> None:
        super().__init__(context)
        self._count = count
        self._name = context.operator_name.removeprefix("Source: ")
        self._strides: deque[Stride] = deque()

    def initialize_state(self) -> None:
        """Takes over the restored strides, or begins with the subtask's own."""
        descriptor: ListStateDescriptor[tuple[int, int, int]] = ListStateDescriptor("strides")
        self._state = self.context.operator_state.get_list_state(descriptor)
        if self.context.restored:
            self._strides.extend(Stride(*entry) for entry in self._state.get())
        elif self.context.subtask_index < self._count:
            own = Stride(self.context.subtask_index, self._count, self.context.parallelism)
            self._strides.append(own)

    async def start(self) -> None:
        """Opens a split per stride if there are several."""
        if len(self._strides) > 1:
            for number, stride in enumerate(self._strides):
                stride.split = f"stride-{number}"
                self.context.split_opened(stride.split)

    def poll(self, records_max: int) -> SplitBatch | InputStatus:
        """The next records of the stride whose turn it is."""
        end = self.due_end()
        for _ in range(len(self._strides)):
            stride = self._strides[0]
            if stride.next >= stride.end:
                self._strides.popleft()
                if stride.split is not None:
                    self.context.split_closed(stride.split)
                continue
            numbers = stride.take(records_max, end)
            self._strides.rotate(-1)
            if numbers:
                origin = partial(_place, self._name, numbers)
                return SplitBatch(self.read(numbers), split=stride.split, origin=origin)
        if not self._strides:
            return InputStatus.END_OF_INPUT
        return self.wait(self.next_number())

    def snapshot_state(self, checkpoint_id: int) -> None:
        """Puts what is left of the strides into operator state."""
        self._state.update([(s.next, s.end, s.step) for s in self._strides if s.next < s.end])

    def next_number(self) -> int:
        """The smallest number not yet read; the count if all are."""
        return min((stride.next for stride in self._strides), default=self._count)

    @abstractmethod
    def read(self, numbers: range) -> list[object]:
        """The records of these numbers, as a new list."""

    def due_end(self) -> int:
        """Only records with smaller numbers may be read now."""
        return UNBOUNDED_END

    def wait(self, number: int) -> InputStatus:
        """Nothing is due; has the task woken when record `number` is."""
        raise AssertionError(f"record {number} is due")


def _place(name: str, numbers: range, index: int) -> str:
    return f"{name}[{numbers[index]}]"
