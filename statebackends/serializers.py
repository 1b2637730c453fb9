"""How state values become bytes, one by one (RocksDB) and as columns (snapshots).

Serializers are type-faithful: what comes back has the type that went in, also where a value is
not of the declared type. The declared type chooses a compact form, it is never enforced. Each
serializer has an identity (name, version, schema) that is stored with the state and compared
when it is restored.
"""

from __future__ import annotations

import pickle
import struct
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from itertools import accumulate, chain, pairwise
from typing import Any, Generic, TypeVar

from statebackends.keys import decode_key, encode_key

T = TypeVar("T")

_PICKLE_PROTOCOL = 5
_EXACT = b"\x00"
_PICKLED = b"\x01"


class TypeSerializer(ABC, Generic[T]):
    """Turns values of one declared type into bytes and back (Flink: `TypeSerializer`)."""

    identity: str
    """Name, version and schema; equal identities read each other's bytes."""

    mutable: bool = True
    """Whether values of the declared type can change in place; a hint only."""

    @abstractmethod
    def serialize(self, value: T) -> bytes:
        """The bytes of one value."""

    @abstractmethod
    def deserialize(self, data: bytes) -> T:
        """The value of the bytes of `serialize`."""

    def dump_column(self, values: list[T]) -> bytes:
        """The bytes of a run of values, None among them allowed."""
        return pickle.dumps(values, _PICKLE_PROTOCOL)

    def load_column(self, data: bytes) -> list[T]:
        """The values of the bytes of `dump_column`."""
        loaded: list[T] = pickle.loads(data)
        return loaded

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TypeSerializer) and self.identity == other.identity

    def __hash__(self) -> int:
        return hash(self.identity)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.identity}>"


class PickleSerializer(TypeSerializer[T]):
    """Any value that pickle knows; the default where no type is declared."""

    identity = "pickle/1"

    def serialize(self, value: T) -> bytes:
        """See `TypeSerializer`."""
        return pickle.dumps(value, _PICKLE_PROTOCOL)

    def deserialize(self, data: bytes) -> T:
        """See `TypeSerializer`."""
        loaded: T = pickle.loads(data)
        return loaded


class ScalarSerializer(TypeSerializer[T]):
    """One scalar type in its compact form, values of any other type pickled.

    Columns are pickled lists: for scalars no form of ours is both as small and as fast.
    """

    mutable = False

    def __init__(
        self,
        name: str,
        exact: type[T],
        encode: Callable[[T], bytes],
        decode: Callable[[bytes], T],
    ) -> None:
        self.identity = f"{name}/1"
        self._exact = exact
        self._encode = encode
        self._decode = decode

    def serialize(self, value: T) -> bytes:
        """See `TypeSerializer`."""
        if type(value) is self._exact:
            return _EXACT + self._encode(value)
        return _PICKLED + pickle.dumps(value, _PICKLE_PROTOCOL)

    def deserialize(self, data: bytes) -> T:
        """See `TypeSerializer`."""
        if data[:1] == _EXACT:
            return self._decode(data[1:])
        loaded: T = pickle.loads(data[1:])
        return loaded


class KeySerializer(TypeSerializer[Any]):
    """Keys by their canonical bytes; serves the keys of map state.

    A declared type changes nothing but the identity, so that a change of it is noticed.
    """

    mutable = False

    def __init__(self, declared: TypeSerializer[Any] | None = None) -> None:
        pickled = declared is None or declared.identity == PickleSerializer.identity
        self.identity = "key/1" if pickled or declared is None else f"key/1:{declared.identity}"

    def serialize(self, value: Any) -> bytes:
        """See `TypeSerializer`; raises `UnstableKeyError`."""
        return encode_key(value)

    def deserialize(self, data: bytes) -> Any:
        """See `TypeSerializer`."""
        return decode_key(data)

    def dump_column(self, values: list[Any]) -> bytes:
        """See `TypeSerializer`."""
        return dump_blobs([encode_key(value) for value in values])

    def load_column(self, data: bytes) -> list[Any]:
        """See `TypeSerializer`."""
        return [decode_key(blob) for blob in load_blobs(data)]


class CompositeSerializer(TypeSerializer[T]):
    """Values of one shape by the columns of their parts; anything else pickled."""

    def serialize(self, value: T) -> bytes:
        """See `TypeSerializer`."""
        return self.dump_column([value])

    def deserialize(self, data: bytes) -> T:
        """See `TypeSerializer`."""
        return self.load_column(data)[0]

    def dump_column(self, values: list[T]) -> bytes:
        """See `TypeSerializer`."""
        parts = self._split(values)
        if parts is None:
            return _PICKLED + pickle.dumps(values, _PICKLE_PROTOCOL)
        return _EXACT + dump_blobs(parts)

    def load_column(self, data: bytes) -> list[T]:
        """See `TypeSerializer`."""
        if data[:1] == _EXACT:
            return self._join(load_blobs(data[1:]))
        loaded: list[T] = pickle.loads(memoryview(data)[1:])
        return loaded

    @abstractmethod
    def _split(self, values: list[T]) -> list[bytes] | None:
        """The columns of the parts, or None if a value has not the declared shape."""

    @abstractmethod
    def _join(self, parts: list[bytes]) -> list[T]:
        """The values of the columns of `_split`."""


class TupleSerializer(CompositeSerializer[tuple[Any, ...]]):
    """Tuples of fixed length, one column for each field."""

    def __init__(self, fields: Sequence[TypeSerializer[Any]], name: str = "tuple") -> None:
        self._fields = list(fields)
        self.identity = f"{name}/1({','.join(field.identity for field in fields)})"
        self.mutable = any(field.mutable for field in fields)

    def _split(self, values: list[tuple[Any, ...]]) -> list[bytes] | None:
        width = len(self._fields)
        if not all_exact(values, tuple) or any(len(value) != width for value in values):
            return None
        columns = zip(*values, strict=True) if values else [()] * width
        return [
            struct.pack("<I", len(values)),
            *(
                field.dump_column(list(column))
                for field, column in zip(self._fields, columns, strict=True)
            ),
        ]

    def _join(self, parts: list[bytes]) -> list[tuple[Any, ...]]:
        if len(parts) == 1:
            return [()] * struct.unpack("<I", parts[0])[0]
        columns = [
            field.load_column(part) for field, part in zip(self._fields, parts[1:], strict=True)
        ]
        return list(zip(*columns, strict=True))


class ListSerializer(CompositeSerializer[list[Any]]):
    """Lists of any length: their lengths, and all elements in one column."""

    def __init__(self, element: TypeSerializer[Any]) -> None:
        self.element = element
        self.identity = f"list/1({element.identity})"

    def _split(self, values: list[list[Any]]) -> list[bytes] | None:
        if not all_exact(values, list):
            return None
        elements = list(chain.from_iterable(values))
        return [_dump_lengths(values), self.element.dump_column(elements)]

    def _join(self, parts: list[bytes]) -> list[list[Any]]:
        elements = self.element.load_column(parts[1])
        return [elements[start:end] for start, end in _bounds(parts[0])]


class MapSerializer(CompositeSerializer[dict[Any, Any]]):
    """Dicts of any size: their sizes, all keys in one column, all values in another."""

    def __init__(self, key: TypeSerializer[Any], value: TypeSerializer[Any]) -> None:
        self.key = key
        self.value = value
        self.identity = f"map/1({key.identity},{value.identity})"

    def _split(self, values: list[dict[Any, Any]]) -> list[bytes] | None:
        if not all_exact(values, dict):
            return None
        keys = list(chain.from_iterable(values))
        items = list(chain.from_iterable(value.values() for value in values))
        return [_dump_lengths(values), self.key.dump_column(keys), self.value.dump_column(items)]

    def _join(self, parts: list[bytes]) -> list[dict[Any, Any]]:
        pairs = list(
            zip(self.key.load_column(parts[1]), self.value.load_column(parts[2]), strict=True)
        )
        return [dict(pairs[start:end]) for start, end in _bounds(parts[0])]


def dump_blobs(blobs: list[bytes]) -> bytes:
    """A run of byte strings: their number, their lengths, then one after the other."""
    return b"".join((struct.pack(f"<I{len(blobs)}I", len(blobs), *map(len, blobs)), *blobs))


def load_blobs(data: bytes) -> list[bytes]:
    """The byte strings of `dump_blobs`."""
    (count,) = struct.unpack_from("<I", data)
    lengths = struct.unpack_from(f"<{count}I", data, 4)
    ends = accumulate(lengths, initial=4 + 4 * count)
    return [data[start:end] for start, end in pairwise(ends)]


def all_exact(values: list[Any], exact: type) -> bool:
    """Whether all values are of exactly this type."""
    return set(map(type, values)) <= {exact}


def _dump_lengths(values: Sequence[Any]) -> bytes:
    return struct.pack(f"<{len(values)}I", *map(len, values))


def _bounds(lengths: bytes) -> list[tuple[int, int]]:
    sizes = struct.unpack(f"<{len(lengths) // 4}I", lengths)
    return list(pairwise(accumulate(sizes, initial=0)))
