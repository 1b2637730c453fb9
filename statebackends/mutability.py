"""Which values can change in place, and copies of those that can."""

from __future__ import annotations

import copy
import datetime as dt
import enum
import uuid
from decimal import Decimal
from fractions import Fraction
from typing import Any, TypeVar

from statebackends.errors import StateError

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

_FLAT_TYPES = frozenset({tuple, list, set, dict})


def is_immutable(value: object) -> bool:
    """Whether `value` can surely not change in place; false where that is not known."""
    cls = type(value)
    if cls in IMMUTABLE_TYPES:
        return True
    # Named or not; of a class that gives its objects attributes, those can be set.
    if isinstance(value, tuple | frozenset) and cls.__dictoffset__ == 0:
        return IMMUTABLE_TYPES.issuperset(map(type, value)) or all(map(is_immutable, value))
    if isinstance(value, enum.Enum | type):
        return True
    # Of the class itself: one that is derived from a frozen one may add attributes.
    params = vars(cls).get("__dataclass_params__")
    if params is not None and params.frozen:
        fields: dict[str, object] = getattr(cls, "__dataclass_fields__", {})
        return all(is_immutable(getattr(value, name, None)) for name in fields)
    return False


def copy_value(value: T) -> T:
    """A copy that no change of `value` reaches; `value` itself where it cannot change.

    Raises StateError for an object that cannot be copied.
    """
    held: Any = value
    cls = type(held)
    if cls in IMMUTABLE_TYPES:
        return value
    flat: Any = held.values() if cls is dict else held
    if cls in _FLAT_TYPES and IMMUTABLE_TYPES.issuperset(map(type, flat)):
        # Most records are tuples of scalars and most accumulators lists or dicts of them.
        copied: T = held if cls is tuple else held.copy()
        return copied
    if is_immutable(value):
        return value
    try:
        return copy.deepcopy(value)
    except Exception as error:
        raise StateError(
            f"a value of type {cls.__name__} is held in state and put out as well, and a copy for"
            f" the output cannot be made ({type(error).__name__}: {error}); keep in state only"
            " what copy.deepcopy can copy"
        ) from error


def note_mutable(value: object, touched: list[object]) -> None:
    """Appends `value` to `touched` if it can change, of a tuple its elements that can."""
    if type(value) in IMMUTABLE_TYPES:
        return
    if isinstance(value, tuple) and type(value).__dictoffset__ == 0:
        for element in value:
            note_mutable(element, touched)
    elif not is_immutable(value):
        touched.append(value)
