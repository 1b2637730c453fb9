"""The operator harness: sources in place of given records."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from runtime import (
    Boundedness,
    InputStatus,
    NumberSequenceSource,
    Source,
    SourceReader,
    SourceReaderContext,
    SplitBatch,
)
from runtime.testing import OperatorHarness
from statebackends.descriptors import ListStateDescriptor

SPLITS = ListStateDescriptor[Any]("splits")


class Ranges(Source[int]):
    """Its splits are ranges of numbers (first, behind the last), given by the test."""

    @property
    def boundedness(self) -> Boundedness:
        return Boundedness.CONTINUOUS_UNBOUNDED

    def create_reader(self, context: SourceReaderContext) -> SourceReader[int]:
        return RangeReader(context)


class RangeReader(SourceReader[int]):
    """Reads two numbers at a time; what is left of its splits is state."""

    def initialize_state(self) -> None:
        self._left = self.context.operator_state.get_list_state(SPLITS)
        self._splits = list(self._left.get())

    def add_splits(self, splits: Sequence[Any]) -> None:
        self._splits += splits
        self.context.available()

    def poll(self, records_max: int) -> SplitBatch | InputStatus:
        if not self._splits:
            return InputStatus.NOTHING_AVAILABLE
        first, end = self._splits.pop(0)
        if first + 2 < end:
            self._splits.append((first + 2, end))
        return SplitBatch(list(range(first, min(first + 2, end))))

    def snapshot_state(self, checkpoint_id: int) -> None:
        self._left.update(self._splits)


def test_splits_come_from_the_test() -> None:
    """Each subtask reads what it was given."""
    harness = OperatorHarness.of_source(Ranges(), parallelism=2)
    assert harness.values() == []
    harness.add_splits([(0, 3)], subtask=0)
    harness.add_splits([(10, 11)], subtask=1)
    assert sorted(harness.values()) == [0, 1, 2, 10]


def test_a_source_goes_on_where_it_was() -> None:
    """What was read is not read again after a restore."""
    harness = OperatorHarness.of_source(Ranges())
    harness.add_splits([(0, 5)])
    harness.rescale(2)
    harness.add_splits([(5, 6)], subtask=1)
    assert sorted(harness.values()) == [0, 1, 2, 3, 4, 5]


def test_a_source_that_ended_stays_ended() -> None:
    """A bounded source is not run again by a restore."""
    harness = OperatorHarness.of_source(NumberSequenceSource(1, 3))
    harness.restore()
    assert harness.values() == [1, 2, 3]
