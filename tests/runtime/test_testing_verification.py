"""Verification: the same steps in every way in which the outcome must be the same."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Any

import pytest

from operators.elements import MAX_TIMESTAMP
from runtime import (
    KeyedProcessFunction,
    OutputTag,
    RuntimeContext,
    SlidingEventTimeWindows,
    ValueStateDescriptor,
)
from runtime.testing import (
    ACTIVE,
    IDLE,
    EmittedRecord,
    InputRecord,
    ProcessingTime,
    Step,
    Watermark,
    verify_operators,
)
from tests.runtime.counting_function import Counting, itself

LATE = OutputTag[str]("late")


def random_steps(seed: int, count: int = 60) -> list[Step]:
    """Records around a rising watermark, idleness and the passing of time."""
    random = Random(seed)
    steps: list[Step] = []
    time = clock = 0
    for _ in range(count):
        choice = random.random()
        if choice < 0.7:
            steps.append(InputRecord(random.choice("abcde"), time + random.randint(-15, 15)))
        elif choice < 0.85:
            time += random.randint(1, 12)
            steps.append(Watermark(time))
        elif choice < 0.95:
            clock += random.randint(1, 20)
            steps.append(ProcessingTime(clock))
        else:
            steps += [IDLE, ACTIVE]
    return steps


@pytest.mark.parametrize("seed", range(3))
def test_windows_do_the_same_however_they_run(seed: int) -> None:
    """Sliding windows with lateness and a side output, records late and early."""
    emitted = verify_operators(
        lambda s: (
            s.key_by(itself)
            .window(SlidingEventTimeWindows.of(10, 4))
            .allowed_lateness(3)
            .side_output_late_data(LATE)
            .count()
        ),
        random_steps(seed),
    )
    assert any(isinstance(e, EmittedRecord) and e.side == "late" for e in emitted)


@pytest.mark.parametrize("seed", range(3))
def test_keyed_functions_do_the_same_however_they_run(seed: int) -> None:
    """State, timers of both kinds and side outputs."""
    emitted = verify_operators(lambda s: s.key_by(itself).process(Counting()), random_steps(seed))
    assert emitted[-1] == Watermark(MAX_TIMESTAMP)


class Forgetful(KeyedProcessFunction[Any, Any, Any]):
    """Keeps what belongs into state in an attribute."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self._count = 0

    def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> Iterator[Any]:
        self._count += 1
        yield self._count


class Hasty(KeyedProcessFunction[Any, Any, Any]):
    """Takes its place among the records of the same subtask for something of the key."""

    def __init__(self) -> None:
        self._last: Any = None

    def open(self, runtime_context: RuntimeContext) -> None:
        self._changes = runtime_context.get_state(ValueStateDescriptor[int]("changes"))

    def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> Iterator[Any]:
        yield value, value == self._last
        self._last = value


@pytest.mark.parametrize("function", [Forgetful(), Hasty()])
def test_what_is_kept_outside_of_state_is_found(function: Any) -> None:
    """The error says which run differs from which, and where."""
    steps = [InputRecord("a", 1), InputRecord("a", 2), InputRecord("b", 3)]
    with pytest.raises(AssertionError, match="restored before each step: ") as caught:
        verify_operators(lambda s: s.key_by(itself).process(function), steps)
    assert "first at output 1" in str(caught.value)


def test_an_open_end_is_left_open() -> None:
    """Without the end of the input only what is due comes out."""
    emitted = verify_operators(
        lambda s: s.key_by(itself).process(Counting()), [InputRecord("a", 1)], end_input=False
    )
    assert emitted == [EmittedRecord(("a", 1), 1), EmittedRecord("a", 1, side="odd")]


def test_records_of_a_union_have_no_order() -> None:
    """What comes by two ways is compared without regard to which was first."""
    verify_operators(
        lambda s: s.union(s.filter(lambda v: v > "b").map(str.upper)).map(itself),
        [InputRecord(value, time) for time, value in enumerate("abcdcba")],
        ordered=False,
    )
