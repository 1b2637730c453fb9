"""Dataclasses and msgspec structs by their fields: compact, and carrying their schema."""

from __future__ import annotations

import dataclasses
import struct
from collections.abc import Callable
from operator import attrgetter
from typing import Any

from statebackends.serializers import (
    CompositeSerializer,
    TypeSerializer,
    all_exact,
)


def is_struct(cls: type) -> bool:
    """Whether `cls` is a msgspec struct; asked without importing msgspec."""
    return hasattr(cls, "__struct_fields__") and hasattr(cls, "__struct_config__")


class RecordSerializer(CompositeSerializer[Any]):
    """Instances of exactly one class, one column for each field.

    Dataclasses are made without calling their constructor, as pickle does. Instances that hold more
    than their fields, or less, and classes that define how to be pickled, are pickled.
    """

    def __init__(self, cls: type, field_serializer: Callable[[str], TypeSerializer[Any]]) -> None:
        if is_struct(cls):
            kind = "struct"
            self._names = [str(name) for name in getattr(cls, "__struct_fields__", ())]
        else:
            kind = "dataclass"
            self._names = [field.name for field in dataclasses.fields(cls)]
        self._cls = cls
        self._is_struct = kind == "struct"
        self._fields = [field_serializer(name) for name in self._names]
        # Structs define __reduce__ themselves, in terms of their fields.
        self._custom = kind == "dataclass" and _pickled_its_own_way(cls)
        schema = ",".join(
            f"{name}:{field.identity}"
            for name, field in zip(self._names, self._fields, strict=True)
        )
        self.identity = f"{kind}/1:{cls.__qualname__}({schema})"
        params = getattr(cls, "__dataclass_params__", None)
        frozen = params is not None and params.frozen
        self.mutable = not frozen or any(field.mutable for field in self._fields)

    def _split(self, values: list[Any]) -> list[bytes] | None:
        if self._custom or not all_exact(values, self._cls):
            return None
        width = len(self._names)
        has_dict = bool(values) and hasattr(values[0], "__dict__")
        if has_dict and any(len(value.__dict__) != width for value in values):
            return None
        try:
            columns = [list(map(attrgetter(name), values)) for name in self._names]
        except AttributeError:
            # A field without a value: only pickle can say so.
            return None
        return [
            struct.pack("<I", len(values)),
            *(
                field.dump_column(column)
                for field, column in zip(self._fields, columns, strict=True)
            ),
        ]

    def _join(self, parts: list[bytes]) -> list[Any]:
        (count,) = struct.unpack("<I", parts[0])
        columns = [
            field.load_column(part) for field, part in zip(self._fields, parts[1:], strict=True)
        ]
        cls: Any = self._cls
        if self._is_struct:
            # Struct types make no instance but by their constructor.
            rows = zip(*columns, strict=True) if columns else [()] * count
            return [cls(**dict(zip(self._names, row, strict=True))) for row in rows]
        values = [cls.__new__(cls) for _ in range(count)]
        for name, column in zip(self._names, columns, strict=True):
            for value, item in zip(values, column, strict=True):
                object.__setattr__(value, name, item)
        return values


def _pickled_its_own_way(cls: type) -> bool:
    for name in ("__reduce__", "__reduce_ex__", "__getstate__", "__setstate__"):
        own = getattr(cls, name, None)
        # Frozen dataclasses with slots get some of these from the dataclass decorator.
        by_decorator = getattr(own, "__module__", None) == "dataclasses"
        if own is not getattr(object, name, None) and not by_decorator:
            return True
    return False
