"""Fields of records of every kind, and running aggregates over them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import reduce
from types import MappingProxyType
from typing import NamedTuple

import pytest

from operators.field_reduction import extreme_reduction, sum_reduction
from operators.fields import field_getter, replace_field


class Sale(NamedTuple):
    shop: str
    amount: int


@dataclass(frozen=True)
class Reading:
    sensor: str
    amount: float


@pytest.mark.parametrize(
    ("record", "field"),
    [
        (Sale("a", 7), "amount"),
        (Sale("a", 7), 1),
        (Reading("a", 7), "amount"),
        ({"shop": "a", "amount": 7}, "amount"),
        (MappingProxyType({"amount": 7}), "amount"),
        (("a", 7), -1),
        (["a", 7], 1),
    ],
)
def test_a_field_is_read_and_replaced(record: object, field: str | int) -> None:
    """Named tuples, dataclasses, mappings, tuples and lists all have fields."""
    get = field_getter(field)
    assert get(record) == 7
    changed = replace_field(record, field, 8)
    assert get(changed) == 8
    assert get(record) == 7
    assert type(changed) is type(record) or isinstance(record, Mapping)


def test_a_replaced_field_keeps_the_others() -> None:
    """Only the one field changes, whatever index names it."""
    assert replace_field(Sale("a", 7), 0, "b") == Sale("b", 7)
    assert replace_field(["a", 7, "c"], -1, "d") == ["a", 7, "d"]
    assert replace_field({"a": 1, "b": 2}, "b", 3) == {"a": 1, "b": 3}


def test_what_has_no_fields_is_refused() -> None:
    """The message names the type and what to do instead."""
    with pytest.raises(TypeError, match=r"of a str.*reduce"):
        replace_field("text", "amount", 1)
    with pytest.raises(TypeError, match="not float"):
        field_getter(1.5)  # type: ignore[arg-type]  # the mistake is the point
    with pytest.raises(TypeError, match="not bool"):
        field_getter(True)


SALES = [Sale("a", 5), Sale("b", 2), Sale("c", 9), Sale("d", 9), Sale("e", 2)]


def test_a_sum_keeps_the_first_record() -> None:
    """As in Flink all other fields are the first record's."""
    assert reduce(sum_reduction("amount"), SALES) == Sale("a", 27)


@pytest.mark.parametrize(
    ("largest", "whole", "result"),
    [
        (False, False, Sale("a", 2)),
        (True, False, Sale("a", 9)),
        (False, True, Sale("b", 2)),
        (True, True, Sale("c", 9)),
    ],
)
def test_an_extreme_is_a_field_or_a_whole_record(largest: bool, whole: bool, result: Sale) -> None:
    """Of equal extremes the first record counts."""
    assert reduce(extreme_reduction("amount", largest=largest, whole=whole), SALES) == result


def test_plain_numbers_are_their_own_field_0() -> None:
    """Streams of numbers can be summed without a field."""
    assert reduce(sum_reduction(0), [1, 2, 3.5]) == 6.5
    assert reduce(extreme_reduction(0, largest=True, whole=False), [1, 3, 2]) == 3
