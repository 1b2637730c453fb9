"""Fields of records by name or index, whatever kind of record it is."""

from __future__ import annotations

import dataclasses
import operator
from collections.abc import Callable, Mapping, Sequence
from numbers import Number
from typing import Any

Field = str | int
"""A field's name (of a mapping, dataclass, named tuple or any object) or index (of a sequence)."""


def field_getter(field: Field) -> Callable[[object], object]:
    """A function that reads `field` of a record; TypeError if `field` is neither name nor index.

    A record without the field makes the function raise KeyError, IndexError or AttributeError.
    """
    if isinstance(field, bool) or not isinstance(field, str | int):
        raise TypeError(
            f"a field is a name (str) or an index (int), not {type(field).__name__} {field!r}"
        )
    if isinstance(field, int):
        get: Callable[[Any], object] = operator.itemgetter(field)
        return get

    def named(record: object) -> object:
        if isinstance(record, dict):
            return record[field]  # The user's function.
        if isinstance(record, Mapping):
            value: object = record[field]  # The user's function.
            return value
        try:
            found: object = getattr(record, field)  # The user's function.
        except AttributeError as error:
            if isinstance(record, tuple | list):
                raise AttributeError(
                    f"a {type(record).__name__} has no field {field!r}: name it by its index, "
                    "which is an int"
                ) from error
            raise
        return found

    return named


def missing_index(
    get: Callable[..., object], record: object, error: BaseException
) -> BaseException:
    """What to say instead of the error of a getter by index: the index, and how many there are.

    It is found out afterwards because a getter that looked first would cost each record more.
    """
    if type(get) is not operator.itemgetter or not isinstance(error, IndexError):
        return error
    if not isinstance(record, Sequence):
        return error
    # operator.itemgetter(7) shows what it gets and has no other way to ask for it.
    shown = repr(get).partition("(")[2].removesuffix(")")
    said = IndexError(f"a {type(record).__name__} of {len(record)} has no field {shown}")
    return said.with_traceback(error.__traceback__)


def number_getter(field: Field) -> Callable[[object], object]:
    """As `field_getter`, but index 0 of a plain number is the number itself (as in PyFlink)."""
    get = field_getter(field)
    if field != 0:
        return get

    def first(record: object) -> object:
        return record if isinstance(record, Number) else get(record)

    return first


def replace_field(record: object, field: Field, value: object) -> object:
    """A copy of `record` with another value in `field`; the record itself is not changed."""
    if isinstance(field, int):
        if isinstance(record, Number):
            return value
        if isinstance(record, tuple):
            items = [*record]
            items[field] = value
            return type(record)(*items) if hasattr(record, "_fields") else tuple(items)
        if isinstance(record, Sequence) and not isinstance(record, str | bytes):
            return [*record[:field], value, *record[field:][1:]]
    elif isinstance(record, Mapping):
        return {**record, field: value}
    elif isinstance(record, tuple) and hasattr(record, "_replace"):
        replaced: object = record._replace(**{field: value})
        return replaced
    elif dataclasses.is_dataclass(record) and not isinstance(record, type):
        return dataclasses.replace(record, **{field: value})
    raise TypeError(
        f"cannot replace field {field!r} of a {type(record).__name__}: use tuples, lists, "
        "mappings, named tuples or dataclasses, or write the aggregation with reduce(...)"
    )
