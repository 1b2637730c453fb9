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

    Like pickle it makes instances without calling their constructor. Instances that hold more
    than their fields, or less, and classes that define how to be pickled, are pickled.
    """

    def __init__(self, cls: type, field_serializer: Callable[[str], TypeSerializer[Any]]) -> None:
        if is_struct(cls):
            kind = "struct"
            self._names = [str(name) for name in vars(cls)["__struct_fields__"]]
        else:
            kind = "dataclass"
            self._names = [field.name for field in dataclasses.fields(cls)]
        self._cls = cls
        self._fields = [field_serializer(name) for name in self._names]
        self._custom = any(
            getattr(cls, name, None) is not getattr(object, name, None)
            for name in ("__reduce__", "__reduce_ex__", "__setstate__")
        ) or _defines_getstate(cls)
        schema = ",".join(
            f"{name}:{field.identity}"
            for name, field in zip(self._names, self._fields, strict=True)
        )
        self.identity = f"{kind}/1:{cls.__qualname__}({schema})"
        if kind == "struct":
            # Structs define __reduce__ themselves, in terms of their fields.
            self._custom = False
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
        cls: Any = self._cls
        values = [cls.__new__(cls) for _ in range(count)]
        for name, field, part in zip(self._names, self._fields, parts[1:], strict=True):
            for value, item in zip(values, field.load_column(part), strict=True):
                object.__setattr__(value, name, item)
        return values


def _defines_getstate(cls: type) -> bool:
    """Python 3.11 gave `object` a `__getstate__`; frozen dataclasses with slots get one."""
    own = getattr(cls, "__getstate__", None)
    if own is None or own is getattr(object, "__getstate__", None):
        return False
    return getattr(own, "__module__", None) != "dataclasses"
