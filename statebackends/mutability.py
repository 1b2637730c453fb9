"""Which values can change in place, and copies of those that can."""

from __future__ import annotations

import copy
import dataclasses
import datetime as dt
import enum
import uuid
from decimal import Decimal
from fractions import Fraction
from typing import TypeVar

T = TypeVar("T")

IMMUTABLE_TYPES: frozenset[type] = frozenset(
    {
        int,
        str,
        float,
        bool,
        bytes,
        complex,
        type(None),
        Decimal,
        Fraction,
        dt.datetime,
        dt.date,
        dt.time,
        dt.timedelta,
        uuid.UUID,
        range,
    }
)
"""Types whose values never change; `type(value) in IMMUTABLE_TYPES` is the cheap first test."""


def is_immutable(value: object) -> bool:
    """Whether `value` can surely not change in place; false where that is not known."""
    cls = type(value)
    if cls in IMMUTABLE_TYPES:
        return True
    if isinstance(value, tuple | frozenset):
        return IMMUTABLE_TYPES.issuperset(map(type, value)) or all(map(is_immutable, value))
    if isinstance(value, enum.Enum | type):
        return True
    params = getattr(cls, "__dataclass_params__", None)
    if params is not None and params.frozen:
        return all(
            is_immutable(getattr(value, field.name, None))
            for field in dataclasses.fields(value)  # type: ignore[arg-type]  # has the params
        )
    return False


def copy_value(value: T) -> T:
    """A copy that no change of `value` reaches; `value` itself where it cannot change.

    Raises what `copy.deepcopy` raises for an object that cannot be copied.
    """
    cls = type(value)
    if cls in IMMUTABLE_TYPES:
        return value
    if cls is tuple:
        # Records are mostly tuples of scalars: no call for each of them.
        if IMMUTABLE_TYPES.issuperset(map(type, value)) or is_immutable(value):  # type: ignore[call-overload]  # a tuple
            return value
    elif cls is list or cls is set:
        if IMMUTABLE_TYPES.issuperset(map(type, value)):  # type: ignore[call-overload]  # a collection
            return value.copy()  # type: ignore[attr-defined,no-any-return]  # a collection
    elif cls is dict:
        if IMMUTABLE_TYPES.issuperset(map(type, value.values())):  # type: ignore[attr-defined]  # dict
            return value.copy()  # type: ignore[attr-defined,no-any-return]  # a dict
    elif is_immutable(value):
        return value
    return copy.deepcopy(value)


def note_mutable(value: object, touched: list[object]) -> None:
    """Appends `value` to `touched` if it can change, of a tuple its elements that can."""
    if type(value) in IMMUTABLE_TYPES:
        return
    if isinstance(value, tuple):
        for element in value:
            note_mutable(element, touched)
    elif not is_immutable(value):
        touched.append(value)
