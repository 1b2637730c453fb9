"""A key is its canonical bytes: equal keys have equal bytes, in every process, run and version.

The first byte says the kind, the rest is the content; what contains other keys has them with
their length before. Numbers that are equal are one key whatever their type, str includes its
subclasses, tuples include named tuples. An enum member or frozen dataclass is known by its
`__qualname__`, without its module, so that a job file means the same as `__main__` and imported.

Bytes decode to one representative: the plain int, float, str, bytes or tuple, an aware datetime
in UTC. A local time that a change of clocks repeats counts as its first occurrence, because
Python compares it without regard to `fold`.
"""

from __future__ import annotations

import dataclasses
import datetime as dt
import enum
import uuid
from collections.abc import Callable, Hashable, Iterable
from decimal import Decimal
from fractions import Fraction
from typing import Any

from statebackends.errors import UnstableKeyError
from statebackends.key_classes import class_named, remember_class
from statebackends.key_numbers import decode_ratio, encode_decimal, encode_float, encode_fraction
from statebackends.key_times import (
    decode_aware,
    decode_aware_time,
    decode_naive,
    decode_naive_time,
    encode_datetime,
    encode_time,
)

SELF_REPRESENTING = frozenset({str, int, bytes, type(None)})
"""Types whose values are their own representatives and always stable."""

_MICROSECOND = dt.timedelta(microseconds=1)


def encode_key(key: object) -> bytes:
    """The canonical bytes of a key.

    Raises:
        UnstableKeyError: the key, or a part of it, has no stable form.
    """
    encode = _ENCODERS.get(type(key))
    if encode is None:
        encode = _encoder_of(key)
    return encode(key)


def decode_key(data: bytes) -> Hashable:
    """The representative of the keys that have these canonical bytes.

    Raises:
        StateError: the bytes name a class that no loaded module defines.
    """
    return _DECODERS[data[0]](data[1:])


def representative_of(key: Hashable) -> Hashable:
    """The one object that stands for all keys equal to `key`; raises `UnstableKeyError`."""
    if type(key) in SELF_REPRESENTING:
        return key
    return decode_key(encode_key(key))


# -- encoding ---------------------------------------------------------------------------------


def _encode_str(key: Any) -> bytes:
    return b"s" + str.encode(key, "utf-8", "surrogatepass")


def _encode_int(key: Any) -> bytes:
    number = int(key)
    return b"i" + number.to_bytes(number.bit_length() // 8 + 1, "big", signed=True)


def _encode_bytes(key: Any) -> bytes:
    return b"b" + bytes(key)


def _encode_none(_: Any) -> bytes:
    return b"n"


def _encode_tuple(key: Any) -> bytes:
    return b"t" + _joined(map(encode_key, tuple.__iter__(key)))


def _encode_frozenset(key: Any) -> bytes:
    return b"z" + _joined(sorted(map(encode_key, key)))


def _encode_date(key: dt.date) -> bytes:
    return b"d" + key.toordinal().to_bytes(4, "big")


def _encode_timedelta(key: dt.timedelta) -> bytes:
    return b"D" + (key // _MICROSECOND).to_bytes(10, "big", signed=True)


def _encode_uuid(key: uuid.UUID) -> bytes:
    return b"u" + key.bytes


def _encode_enum(key: Any) -> bytes:
    remember_class(type(key))
    name = key.value if isinstance(key, enum.Flag) else key.name
    return b"e" + _joined((encode_key(type(key).__qualname__), encode_key(name)))


def _encode_dataclass(key: Any) -> bytes:
    remember_class(type(key))
    parts = [encode_key(type(key).__qualname__)]
    for field in dataclasses.fields(key):
        if field.compare:
            parts.append(encode_key(field.name))
            parts.append(encode_key(getattr(key, field.name)))
    return b"c" + _joined(parts)


_BY_CLASS: tuple[tuple[type, Callable[[Any], bytes]], ...] = (
    (str, _encode_str),
    (int, _encode_int),
    (float, encode_float),
    (bytes, _encode_bytes),
    (tuple, _encode_tuple),
    (frozenset, _encode_frozenset),
    (Decimal, encode_decimal),
    (Fraction, encode_fraction),
    (dt.datetime, encode_datetime),
    (dt.date, _encode_date),
    (dt.time, encode_time),
    (dt.timedelta, _encode_timedelta),
    (uuid.UUID, _encode_uuid),
    (enum.Enum, _encode_enum),
)
_ENCODERS: dict[type, Callable[[Any], bytes]] = {
    **{cls: encode for cls, encode in _BY_CLASS if cls is not enum.Enum},
    bool: _encode_int,
    type(None): _encode_none,
}


def _encoder_of(key: object) -> Callable[[Any], bytes]:
    """The encoder of a subclass; not remembered, so that classes of a job can be freed."""
    for cls, encode in _BY_CLASS:
        if isinstance(key, cls):
            return encode
    if dataclasses.is_dataclass(key) and not isinstance(key, type):
        _check_dataclass(key)
        return _encode_dataclass
    raise UnstableKeyError(
        f"a key of type {type(key).__qualname__} has no stable form: {_short(key)};"
        f" {_REMEDIES.get(type(key), _REMEDY)}"
    )


_REMEDY = (
    "give a string, number, bytes, tuple, date or time, UUID, enum or frozen dataclass"
    " that says what the key is"
)
_REMEDIES: dict[type, str] = {
    list: "give tuple(key)",
    dict: "give tuple(sorted(key.items())), or the fields that matter as a tuple",
    set: "give frozenset(key)",
    bytearray: "give bytes(key)",
    memoryview: "give bytes(key)",
    complex: "give (key.real, key.imag)",
}


def _check_dataclass(key: Any) -> None:
    params = key.__dataclass_params__
    name = type(key).__qualname__
    if not (params.frozen and params.eq):
        raise UnstableKeyError(
            f"a key of the dataclass {name} has no stable form: its fields can change or do not"
            " make it equal; declare it with @dataclass(frozen=True)"
        )
    for field in dataclasses.fields(key):
        missing = dataclasses.MISSING
        if not field.compare and field.default is missing and field.default_factory is missing:
            raise UnstableKeyError(
                f"a key of the dataclass {name} cannot be made again: field {field.name!r} is"
                " not compared and has no default; give it one"
            )


def _short(key: object) -> str:
    text = repr(key)
    return text if len(text) <= 80 else f"{text[:77]}..."


# -- decoding ---------------------------------------------------------------------------------


def _joined(parts: Iterable[bytes]) -> bytes:
    pieces: list[bytes] = []
    for part in parts:
        pieces.append(len(part).to_bytes(4, "big"))
        pieces.append(part)
    return b"".join(pieces)


def _split(data: bytes) -> list[Hashable]:
    parts = []
    position = 0
    while position < len(data):
        start = position + 4
        position = start + int.from_bytes(data[position:start], "big")
        parts.append(decode_key(data[start:position]))
    return parts


def _decode_enum(data: bytes) -> Hashable:
    qualname, name = _split(data)
    cls: Any = class_named(str(qualname), enum.Enum)
    member: Hashable = cls(name) if issubclass(cls, enum.Flag) else cls[name]
    return member


def _decode_dataclass(data: bytes) -> Hashable:
    qualname, *parts = _split(data)
    cls: Any = class_named(str(qualname), None)
    stored = dict(zip(parts[::2], parts[1::2], strict=True))
    key: Hashable = object.__new__(cls)
    for field in dataclasses.fields(cls):
        if field.compare:
            value = stored[field.name]
        elif field.default_factory is not dataclasses.MISSING:
            value = field.default_factory()
        else:
            value = field.default
        object.__setattr__(key, field.name, value)
    return key


_DECODERS: dict[int, Callable[[bytes], Hashable]] = {
    ord("s"): lambda data: data.decode("utf-8", "surrogatepass"),
    ord("i"): lambda data: int.from_bytes(data, "big", signed=True),
    ord("b"): lambda data: data,
    ord("n"): lambda _: None,
    ord("t"): lambda data: tuple(_split(data)),
    ord("z"): lambda data: frozenset(_split(data)),
    ord("r"): decode_ratio,
    ord("f"): lambda data: float(data.decode("ascii")),
    ord("d"): lambda data: dt.date.fromordinal(int.from_bytes(data, "big")),
    ord("D"): lambda data: int.from_bytes(data, "big", signed=True) * _MICROSECOND,
    ord("w"): decode_naive,
    ord("a"): decode_aware,
    ord("h"): decode_naive_time,
    ord("o"): decode_aware_time,
    ord("u"): lambda data: uuid.UUID(bytes=data),
    ord("e"): _decode_enum,
    ord("c"): _decode_dataclass,
}
