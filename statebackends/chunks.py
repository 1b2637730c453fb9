"""The bytes of one chunk of keyed state: a column of keys, one of namespaces, one of values."""

from __future__ import annotations

import pickle
import struct
from collections.abc import Hashable
from dataclasses import dataclass

from statebackends.errors import CorruptCheckpointError
from statebackends.keys import decode_key, encode_key
from statebackends.serializers import dump_blobs, load_blobs

_HEAD = struct.Struct("<III")
"""Entries, bytes of the keys, bytes of the namespaces (none: the void namespace)."""

_STR = ord("s")


@dataclass(frozen=True, slots=True)
class Chunk:
    """A chunk taken apart; `keys` are canonical bytes."""

    count: int
    keys: list[bytes]
    namespaces: list[Hashable] | None
    values: bytes


def dump_chunk(keys: list[bytes], namespaces: list[Hashable] | None, values: bytes) -> bytes:
    """Puts the columns of a chunk together; `namespaces` is None for the void namespace."""
    key_column = dump_blobs(keys)
    # Pickle writes an object that comes again as a reference: a window costs its bytes once.
    namespace_column = b"" if namespaces is None else pickle.dumps(namespaces, 5)
    head = _HEAD.pack(len(keys), len(key_column), len(namespace_column))
    return b"".join((head, key_column, namespace_column, values))


def load_chunk(data: bytes) -> Chunk:
    """Takes a chunk apart.

    Raises:
        CorruptCheckpointError: the columns have not the same length.
    """
    count, key_length, namespace_length = _HEAD.unpack_from(data)
    key_end = _HEAD.size + key_length
    value_start = key_end + namespace_length
    keys = load_blobs(data[_HEAD.size : key_end])
    namespaces = pickle.loads(data[key_end:value_start]) if namespace_length else None
    if len(keys) != count or (namespaces is not None and len(namespaces) != count):
        raise CorruptCheckpointError("a chunk of keyed state has columns of different lengths")
    return Chunk(count, keys, namespaces, data[value_start:])


def chunk_entries(data: bytes) -> int:
    """How many entries a chunk holds."""
    count: int = _HEAD.unpack_from(data)[0]
    return count


def encode_keys(keys: list[Hashable]) -> list[bytes]:
    """The canonical bytes of many keys."""
    if set(map(type, keys)) == {str}:
        try:
            return [b"s" + key.encode() for key in keys]  # type: ignore[attr-defined]  # all str
        except UnicodeEncodeError:
            # A lone surrogate somewhere: the way for any key knows how to write it.
            return [encode_key(key) for key in keys]
    return [encode_key(key) for key in keys]


def decode_keys(keys: list[bytes]) -> list[Hashable]:
    """The representatives of many keys."""
    try:
        return [key[1:].decode() if key[0] == _STR else decode_key(key) for key in keys]
    except UnicodeDecodeError:
        # As above, in a string.
        return [decode_key(key) for key in keys]
