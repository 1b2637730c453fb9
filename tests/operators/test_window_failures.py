"""What a window operator says about the record, key or timestamp at which it fails."""

from __future__ import annotations

from typing import Any

import pytest

from operators.functions import AggregateFunction
from operators.triggers import Trigger
from operators.window_contents import AggregateContents, CountContents, ListContents
from operators.window_factory import window_operator
from operators.windows import TumblingEventTimeWindows
from statebackends.errors import UnstableKeyError
from tests.operators.fakes import Driver
from tests.operators.window_model import SameTrigger


def failing(value: object, acc: int) -> int:
    if value == "bad":
        raise KeyError("ts")
    return acc + 1


@pytest.mark.parametrize("trigger", [None, SameTrigger()])
@pytest.mark.parametrize("times", [[1, 1, 1, 1], [12, 1, 15, 2]])
def test_a_failing_function_leaves_the_place_of_its_record(
    trigger: Trigger[Any, Any] | None, times: list[int]
) -> None:
    """Position and key name the record, in one window and across windows."""
    contents = AggregateContents(AggregateFunction.of(create=lambda: 0, add=failing))
    driver = Driver(window_operator(TumblingEventTimeWindows.of(10), contents, trigger=trigger)())
    with pytest.raises(KeyError):
        driver.records(["good", "good", "good", "bad"], times, "abcd")
    assert driver.operator.position() == 3
    assert driver.operator.key == "d"


@pytest.mark.parametrize("trigger", [None, SameTrigger()])
def test_a_failing_result_names_its_key(trigger: Trigger[Any, Any] | None) -> None:
    """While windows fire there is a key but no position."""

    def result(acc: int) -> float:
        return 1 / (acc - 2)

    contents = AggregateContents(
        AggregateFunction.of(create=lambda: 0, add=lambda _, acc: acc + 1, get_result=result)
    )
    driver = Driver(window_operator(TumblingEventTimeWindows.of(10), contents, trigger=trigger)())
    driver.records("aabbc", [1] * 5, "abbca")
    with pytest.raises(ZeroDivisionError):
        driver.watermark(9)
    assert driver.operator.position() is None
    assert driver.operator.key in ("a", "b")


@pytest.mark.parametrize("trigger", [None, SameTrigger()])
@pytest.mark.parametrize("timestamp", [None, -(2**63), 2**62, -(2**62)])
def test_a_record_without_usable_timestamp_is_an_error_that_names_it(
    trigger: Trigger[Any, Any] | None, timestamp: int | None
) -> None:
    """Event-time windows need a timestamp; which record has none is said."""
    factory = window_operator(TumblingEventTimeWindows.of(10), CountContents(), trigger=trigger)
    driver = Driver(factory())
    with pytest.raises(ValueError, match=r"click 7"):
        driver.records(["fine", "click 7"], [1, timestamp], ["a", "b"])
    assert (driver.operator.position(), driver.operator.key) == (1, "b")


@pytest.mark.parametrize("trigger", [None, SameTrigger()])
def test_records_without_any_timestamps_are_an_error(trigger: Trigger[Any, Any] | None) -> None:
    """The message says how to assign timestamps."""
    factory = window_operator(TumblingEventTimeWindows.of(10), CountContents(), trigger=trigger)
    with pytest.raises(ValueError, match="with_timestamp_assigner"):
        Driver(factory()).records(["click"], None, ["a"])


@pytest.mark.parametrize("trigger", [None, SameTrigger()])
@pytest.mark.parametrize("contents", [CountContents, ListContents])
@pytest.mark.parametrize("key", [float("nan"), object(), ["list"], ("in a tuple", ["list"])])
def test_a_key_without_stable_form_is_refused(
    trigger: Trigger[Any, Any] | None, contents: Any, key: Any
) -> None:
    """At its first record, as in every other keyed operator."""
    factory = window_operator(TumblingEventTimeWindows.of(10), contents(), trigger=trigger)
    driver = Driver(factory())
    with pytest.raises(UnstableKeyError):
        driver.records(["a", "b", "c"], [1, 2, 3], [None, key, "c"])
    assert (driver.operator.position(), driver.operator.key) == (1, key)
