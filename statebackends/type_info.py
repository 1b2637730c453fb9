"""From a declared type to its serializer, and PyFlink's names for types."""

from __future__ import annotations

import dataclasses
import datetime as dt
import decimal
import struct
import types
import typing
from collections.abc import Sequence
from typing import Any, TypeAlias, TypeVar

from statebackends.records import RecordSerializer, is_struct
from statebackends.serializers import (
    ListSerializer,
    MapSerializer,
    PickleSerializer,
    ScalarSerializer,
    TupleSerializer,
    TypeSerializer,
)

T = TypeVar("T")
TypeInfo: TypeAlias = type | TypeSerializer[Any] | None
"""A declared type."""

_DOUBLE = struct.Struct(">d")

_PICKLE: TypeSerializer[Any] = PickleSerializer()
_INT = ScalarSerializer(
    "int",
    int,
    lambda value: value.to_bytes(value.bit_length() // 8 + 1, "big", signed=True),
    lambda data: int.from_bytes(data, "big", signed=True),
)
_FLOAT = ScalarSerializer("float", float, _DOUBLE.pack, lambda data: float(_DOUBLE.unpack(data)[0]))
_STR = ScalarSerializer(
    "str",
    str,
    lambda value: value.encode("utf-8", "surrogatepass"),
    lambda data: data.decode("utf-8", "surrogatepass"),
)
_BYTES = ScalarSerializer("bytes", bytes, lambda value: value, lambda data: data)
_BOOL = ScalarSerializer(
    "bool", bool, lambda value: b"\x01" if value else b"\x00", lambda data: data == b"\x01"
)
_DECIMAL = ScalarSerializer(
    "decimal",
    decimal.Decimal,
    lambda value: str(value).encode("ascii"),
    lambda data: decimal.Decimal(data.decode("ascii")),
)

_SCALARS: dict[object, TypeSerializer[Any]] = {
    int: _INT,
    float: _FLOAT,
    str: _STR,
    bytes: _BYTES,
    bool: _BOOL,
    decimal.Decimal: _DECIMAL,
}


def serializer_for(type_info: type[T] | TypeSerializer[T] | None) -> TypeSerializer[T]:
    """The serializer of a declared type.

    None and types without a form of their own are pickled. Beside scalars, `list[int]`,
    `dict[str, int]` and `tuple[int, str]` (also nested), dataclasses and msgspec structs have
    one.

    Raises:
        TypeError: `type_info` is neither a type nor a serializer.
    """
    return _resolve(type_info, ())


def _resolve(type_info: Any, inside: tuple[type, ...]) -> TypeSerializer[Any]:
    if isinstance(type_info, TypeSerializer):
        return type_info
    if type_info is None or type_info in inside:
        return _PICKLE
    scalar = _SCALARS.get(type_info) if isinstance(type_info, type) else None
    if scalar is not None:
        return scalar
    origin = typing.get_origin(type_info)
    if origin is not None:
        return _generic(origin, typing.get_args(type_info), inside)
    if isinstance(type_info, type):
        if dataclasses.is_dataclass(type_info) or is_struct(type_info):
            return _record(type_info, inside)
        return _PICKLE
    if isinstance(type_info, types.UnionType | TypeVar) or type_info is Any:
        return _PICKLE
    raise TypeError(
        f"{type_info!r} declares no type; give a type (int), a Types.X() or a serializer"
    )


def _generic(
    origin: object, args: tuple[Any, ...], inside: tuple[type, ...]
) -> TypeSerializer[Any]:
    if origin is list:
        return ListSerializer(_resolve(args[0], inside))
    if origin is dict:
        return MapSerializer(_resolve(args[0], inside), _resolve(args[1], inside))
    if origin is tuple and args and Ellipsis not in args:
        return TupleSerializer([_resolve(arg, inside) for arg in args])
    return _PICKLE


def _record(cls: type, inside: tuple[type, ...]) -> TypeSerializer[Any]:
    """Fields of a type that contains itself are pickled where it recurs."""
    try:
        hints = typing.get_type_hints(cls)
    except (NameError, TypeError, AttributeError):
        # Annotations that cannot be resolved leave their fields to pickle.
        hints = {}

    def field(hint: Any) -> TypeSerializer[Any]:
        try:
            return _resolve(hint, (*inside, cls))
        except TypeError:
            return _PICKLE

    return RecordSerializer(cls, lambda name: field(hints.get(name)))


class Types:
    """PyFlink's type factory (`pyflink.common.Types`)."""

    @staticmethod
    def STRING() -> TypeSerializer[str]:  # noqa: N802 - PyFlink's name
        """Text."""
        return _STR

    @staticmethod
    def CHAR() -> TypeSerializer[str]:  # noqa: N802 - PyFlink's name
        """A character."""
        return _STR

    @staticmethod
    def BYTE() -> TypeSerializer[int]:  # noqa: N802 - PyFlink's name
        """An integer; size is not checked."""
        return _INT

    @staticmethod
    def SHORT() -> TypeSerializer[int]:  # noqa: N802 - PyFlink's name
        """An integer; size is not checked."""
        return _INT

    @staticmethod
    def INT() -> TypeSerializer[int]:  # noqa: N802 - PyFlink's name
        """An integer; size is not checked."""
        return _INT

    @staticmethod
    def LONG() -> TypeSerializer[int]:  # noqa: N802 - PyFlink's name
        """An integer; size is not checked."""
        return _INT

    @staticmethod
    def BIG_INT() -> TypeSerializer[int]:  # noqa: N802 - PyFlink's name
        """An integer of any size."""
        return _INT

    @staticmethod
    def FLOAT() -> TypeSerializer[float]:  # noqa: N802 - PyFlink's name
        """A float of 64 bits."""
        return _FLOAT

    @staticmethod
    def DOUBLE() -> TypeSerializer[float]:  # noqa: N802 - PyFlink's name
        """A float of 64 bits."""
        return _FLOAT

    @staticmethod
    def BOOLEAN() -> TypeSerializer[bool]:  # noqa: N802 - PyFlink's name
        """True or false."""
        return _BOOL

    @staticmethod
    def BIG_DEC() -> TypeSerializer[decimal.Decimal]:  # noqa: N802 - PyFlink's name
        """A decimal."""
        return _DECIMAL

    @staticmethod
    def INSTANT() -> TypeSerializer[dt.datetime]:  # noqa: N802 - PyFlink's name
        """A point in time."""
        return _PICKLE

    @staticmethod
    def SQL_DATE() -> TypeSerializer[dt.date]:  # noqa: N802 - PyFlink's name
        """A date."""
        return _PICKLE

    @staticmethod
    def SQL_TIME() -> TypeSerializer[dt.time]:  # noqa: N802 - PyFlink's name
        """A time of day."""
        return _PICKLE

    @staticmethod
    def SQL_TIMESTAMP() -> TypeSerializer[dt.datetime]:  # noqa: N802 - PyFlink's name
        """A date with time."""
        return _PICKLE

    @staticmethod
    def PICKLED_BYTE_ARRAY() -> TypeSerializer[Any]:  # noqa: N802 - PyFlink's name
        """Any value, pickled."""
        return _PICKLE

    @staticmethod
    def PRIMITIVE_ARRAY(element_type: TypeInfo) -> TypeSerializer[list[Any]]:  # noqa: N802 - PyFlink's name
        """A list of elements of one type."""
        return ListSerializer(_resolve(element_type, ()))

    @staticmethod
    def BASIC_ARRAY(element_type: TypeInfo) -> TypeSerializer[list[Any]]:  # noqa: N802 - PyFlink's name
        """A list of elements of one type."""
        return ListSerializer(_resolve(element_type, ()))

    @staticmethod
    def OBJECT_ARRAY(element_type: TypeInfo) -> TypeSerializer[list[Any]]:  # noqa: N802 - PyFlink's name
        """A list of elements of one type."""
        return ListSerializer(_resolve(element_type, ()))

    @staticmethod
    def LIST(element_type_info: TypeInfo) -> TypeSerializer[list[Any]]:  # noqa: N802 - PyFlink's name
        """A list of elements of one type."""
        return ListSerializer(_resolve(element_type_info, ()))

    @staticmethod
    def MAP(  # noqa: N802 - PyFlink's name
        key_type_info: TypeInfo, value_type_info: TypeInfo
    ) -> TypeSerializer[dict[Any, Any]]:
        """A dict with keys of one type and values of another."""
        return MapSerializer(_resolve(key_type_info, ()), _resolve(value_type_info, ()))

    @staticmethod
    def TUPLE(field_types: Sequence[TypeInfo]) -> TypeSerializer[tuple[Any, ...]]:  # noqa: N802 - PyFlink's name
        """A tuple of fixed length."""
        return TupleSerializer([_resolve(field, ()) for field in field_types])

    @staticmethod
    def ROW(field_types: Sequence[TypeInfo]) -> TypeSerializer[tuple[Any, ...]]:  # noqa: N802 - PyFlink's name
        """A row; tuples are compact, other values are pickled."""
        return TupleSerializer([_resolve(field, ()) for field in field_types], "row")

    @staticmethod
    def ROW_NAMED(  # noqa: N802 - PyFlink's name
        field_names: Sequence[str], field_types: Sequence[TypeInfo]
    ) -> TypeSerializer[tuple[Any, ...]]:
        """A row whose fields have names; raises `ValueError` if there are more of one."""
        if len(field_names) != len(field_types):
            raise ValueError(f"{len(field_names)} field names for {len(field_types)} field types")
        name = f"row[{','.join(field_names)}]"
        return TupleSerializer([_resolve(field, ()) for field in field_types], name)
