"""A bounded memo of what is computed from a key: its representative and its key group."""

from __future__ import annotations

from collections.abc import Hashable
from itertools import islice
from typing import TypeVar

from statebackends.errors import UnstableKeyError
from statebackends.keygroups import key_group_of
from statebackends.keys import SELF_REPRESENTING, decode_key, encode_key

V = TypeVar("V")

MEMO_KEYS_MAX = 65_536
"""Keys that a memo holds."""

FORGOTTEN_AT_ONCE = 1_024
"""Keys that a full memo drops.

To empty it took 11 ms, and several times that while a snapshot child shared the memory, since
each object that is let go of is written to.
"""


def make_room(memo: dict[Hashable, V], keys_max: int = MEMO_KEYS_MAX) -> None:
    """Drops the oldest keys of a memo that is full."""
    if len(memo) >= keys_max:
        for key in list(islice(memo, FORGOTTEN_AT_ONCE)):
            del memo[key]


class KeyMemo:
    """Representatives and key groups of the keys of one operator instance."""

    def __init__(self, max_parallelism: int) -> None:
        self._max_parallelism = max_parallelism
        self._known: dict[Hashable, tuple[Hashable, int]] = {}

    def known(self, key: Hashable) -> tuple[Hashable, int]:
        """Representative and key group of `key`; raises `UnstableKeyError`."""
        try:
            known = self._known.get(key)
        except TypeError as error:
            raise unhashable(key, error) from error
        if known is None:
            data = encode_key(key)
            key_group = key_group_of(data, self._max_parallelism)
            known = (key if type(key) in SELF_REPRESENTING else decode_key(data), key_group)
            make_room(self._known)
            self._known[key] = known
        return known

    def clear(self) -> None:
        """Forgets all keys."""
        self._known.clear()


def unhashable(key: object, error: TypeError) -> Exception:
    """`UnstableKeyError` for a key that cannot be hashed, `error` for any other."""
    try:
        encode_key(key)
    except UnstableKeyError as unstable:
        return unstable
    return error


def check_hashable(key: object, error: TypeError) -> None:
    """Raises `UnstableKeyError` if `key` is what a look-up by it failed with."""
    try:
        hash(key)
    except TypeError:
        raise unhashable(key, error) from error
