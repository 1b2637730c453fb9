"""The count trigger, in windows of time."""

from __future__ import annotations

from typing import Any

import pytest

from operators.count_trigger import CountTrigger
from operators.datastream import DataStream
from operators.triggers import PurgingTrigger
from operators.windows import TumblingEventTimeWindows
from runtime.testing import EmittedRecord, InputRecord, OperatorHarness, Watermark, verify_operators


def threes(stream: DataStream[Any]) -> DataStream[Any]:
    trigger = PurgingTrigger.of(CountTrigger.of(3))
    windows = TumblingEventTimeWindows.of(10)
    return stream.key_by(lambda value: value[0]).window(windows).trigger(trigger).count()


def counts(keys: str, build: Any, watermark: int = 9) -> list[tuple[str, int]]:
    steps = [*(InputRecord(key, 1) for key in keys), Watermark(watermark)]
    emitted = verify_operators(build, steps)
    return [(each.value.key, each.value.count) for each in emitted if type(each) is EmittedRecord]


def test_it_fires_at_every_so_many_elements_of_a_key_however_they_come() -> None:
    """Batches, restarts and another parallelism do not change when; a rest does not fire."""
    assert sorted(counts("aabababaab", threes)) == [("a", 3), ("a", 3), ("b", 3)]


def test_without_purging_the_contents_grow() -> None:
    """Each firing has all elements of the window so far."""

    def build(stream: DataStream[Any]) -> DataStream[Any]:
        windows = TumblingEventTimeWindows.of(10)
        return (
            stream.key_by(lambda value: value[0]).window(windows).trigger(CountTrigger(2)).count()
        )

    assert counts("aaaaa", build) == [("a", 2), ("a", 4)]


def test_the_count_goes_with_its_window() -> None:
    """Nothing is left in the state after the end of the window."""
    with OperatorHarness.of(threes) as harness:
        harness.process("a", timestamp=1)
        assert harness.state_entries() > 0
        harness.watermark(9)
        assert harness.state_entries() == 0


@pytest.mark.parametrize("count", [0, -1, 2.5])
def test_a_count_that_cannot_be_reached_is_refused(count: Any) -> None:
    """At the line that has it."""
    with pytest.raises(ValueError, match="whole number from 1 on"):
        CountTrigger.of(count)
