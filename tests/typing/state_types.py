"""What type checkers make of state descriptors; checked, never run."""

from typing import Any, assert_type

from statebackends.descriptors import (
    AggregatingStateDescriptor,
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    ValueStateDescriptor,
)
from statebackends.state import ListState, MapState, ValueState
from statebackends.type_info import Types


class Average:
    """An aggregate function."""

    def create_accumulator(self) -> tuple[float, int]:
        """No values."""
        return 0.0, 0

    def add(self, value: float, accumulator: tuple[float, int]) -> tuple[float, int]:
        """One more."""
        return accumulator[0] + value, accumulator[1] + 1

    def get_result(self, accumulator: tuple[float, int]) -> float:
        """The mean."""
        return accumulator[0] / accumulator[1]

    def merge(self, acc_a: tuple[float, int], acc_b: tuple[float, int]) -> tuple[float, int]:
        """Both."""
        return acc_a[0] + acc_b[0], acc_a[1] + acc_b[1]


class Largest:
    """A reduce function."""

    def reduce(self, value1: int, value2: int) -> int:
        """The larger."""
        return max(value1, value2)


def descriptors() -> None:
    """The declared type is the type of the state."""
    assert_type(ValueStateDescriptor("v", float), ValueStateDescriptor[float])
    assert_type(ValueStateDescriptor("v", Types.INT()), ValueStateDescriptor[int])
    assert_type(ListStateDescriptor("l", Types.STRING()), ListStateDescriptor[str])
    assert_type(MapStateDescriptor("m", str, int), MapStateDescriptor[str, int])
    assert_type(ReducingStateDescriptor("r", Largest()), ReducingStateDescriptor[int])
    assert_type(
        AggregatingStateDescriptor("a", Average()),
        AggregatingStateDescriptor[float, tuple[float, int], float],
    )
    untyped: ValueStateDescriptor[Any] = ValueStateDescriptor("v")
    assert_type(untyped.get_name(), str)


def handles(value: ValueState[int], items: ListState[str], table: MapState[str, float]) -> None:
    """What is read may be absent; what is written has the type."""
    assert_type(value.value(), int | None)
    value.update(5)
    value.update("x")  # type: ignore[arg-type]  # not an int
    for item in items:
        assert_type(item, str)
    assert_type(table["x"], float | None)
    table.put(5, 1.0)  # type: ignore[arg-type]  # not a string
