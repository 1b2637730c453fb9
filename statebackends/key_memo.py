"""A bounded memo of what is computed from a key: its representative and its key group."""

from __future__ import annotations

from collections.abc import Hashable

from statebackends.errors import UnstableKeyError
from statebackends.keygroups import key_group_of
from statebackends.keys import SELF_REPRESENTING, decode_key, encode_key

MEMO_KEYS_MAX = 65_536
"""Keys that a memo holds before it is emptied."""


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
            if len(self._known) >= MEMO_KEYS_MAX:
                self._known.clear()
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
