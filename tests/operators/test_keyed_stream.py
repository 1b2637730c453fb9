"""What the operators that keyed streams add do with records."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import Any

import pytest

from operators.datastream import DataStream
from operators.functions import FilterFunction, FlatMapFunction, MapFunction
from operators.runtime_context import RuntimeContext
from statebackends.descriptors import ValueStateDescriptor
from statebackends.state import ValueState
from tests.operators.fakes import Driver
from tests.operators.graph_owner import graph, last, source


class PerKey:
    """Counts the records of each key in keyed state."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self.count: ValueState[int] = runtime_context.get_state(ValueStateDescriptor("count", int))

    def next(self) -> int:
        count = (self.count.value() or 0) + 1
        self.count.update(count)
        return count


class Numbered(PerKey, MapFunction[str, tuple[str, int]]):
    def map(self, value: str) -> tuple[str, int]:
        return value, self.next()


class Repeated(PerKey, FlatMapFunction[str, str]):
    def flat_map(self, value: str) -> Iterator[str]:
        yield from [value] * self.next()


class Distinct(PerKey, FilterFunction[str]):
    def filter(self, value: str) -> bool:
        return self.next() == 1


def outputs(stream: DataStream[Any], values: list[Any], keys: list[Hashable]) -> list[Any]:
    """What the operator that puts out `stream` makes of a batch."""
    node = last(stream._graph)
    assert node.keyed
    driver = Driver(node.operator())
    return [value for value, _ in driver.records(values, None, keys)]


LETTERS: list[Any] = ["a", "b", "a", "a", "b"]


@pytest.mark.parametrize(
    ("method", "function", "expected"),
    [
        ("map", Numbered(), [("a", 1), ("b", 1), ("a", 2), ("a", 3), ("b", 2)]),
        ("flat_map", Repeated(), list("abaaaaabb")),
        ("filter", Distinct(), ["a", "b"]),
    ],
)
def test_function_objects_on_keyed_streams_have_keyed_state(
    method: str, function: object, expected: list[Any]
) -> None:
    """State means the record's key, as in a keyed process function."""
    stream = getattr(source(graph()).key_by(str), method)(function)
    assert outputs(stream, LETTERS, LETTERS) == expected


@pytest.mark.parametrize(
    ("method", "expected"),
    [
        ("sum", [("x", 3, "first"), ("x", 4, "first"), ("x", 9, "first")]),
        ("min", [("x", 3, "first"), ("x", 1, "first"), ("x", 1, "first")]),
        ("max", [("x", 3, "first"), ("x", 3, "first"), ("x", 5, "first")]),
        ("min_by", [("x", 3, "first"), ("x", 1, "second"), ("x", 1, "second")]),
        ("max_by", [("x", 3, "first"), ("x", 3, "first"), ("x", 5, "third")]),
    ],
)
def test_running_aggregates_of_a_field(method: str, expected: list[Any]) -> None:
    """One result per record; other fields are the first record's, or the extreme record's."""
    records = [("x", 3, "first"), ("x", 1, "second"), ("x", 5, "third")]
    stream = getattr(source(graph()).key_by(0), method)(1)
    assert outputs(stream, records, ["x"] * 3) == expected


def test_the_key_type_hint_is_kept() -> None:
    """It has no other effect."""
    assert source(graph()).key_by(str, "text").get_key_type() == "text"
