"""Running sum, minimum and maximum of a field, as functions that reduce two records to one.

As in Flink, `sum`, `min` and `max` keep the first record and replace the one field; `min_by` and
`max_by` keep the whole record that holds the extreme, the first one among equals.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar, cast

from operators.fields import Field, number_getter, replace_field

T = TypeVar("T")


def sum_reduction(field: Field) -> Callable[[T, T], T]:
    """The first record with the sum of both in `field`."""
    get = number_getter(field)

    def add(first: T, second: T) -> T:
        total = get(first) + get(second)  # type: ignore[operator]  # The user's function.
        return cast(T, replace_field(first, field, total))

    return add


def extreme_reduction(field: Field, *, largest: bool, whole: bool) -> Callable[[T, T], T]:
    """The larger (or smaller) of two records by `field`: all of it, or only that field."""
    get = number_getter(field)

    def choose(first: T, second: T) -> T:
        one, other = get(first), get(second)
        better = (
            other > one if largest else other < one  # type: ignore[operator]  # The user's function.
        )
        if not better:
            return first
        return second if whole else cast(T, replace_field(first, field, other))

    return choose
