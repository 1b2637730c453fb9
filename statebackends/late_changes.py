"""Finds changes of state objects that come too late: a switch for the search of mistakes."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Hashable
from dataclasses import dataclass

from typing_extensions import override

from statebackends.errors import StateError
from statebackends.key_memo import make_room


@dataclass(slots=True)
class _Known:
    """An object as it was at the end of the last call that touched it."""

    value: object
    key: Hashable
    pickled: bytes


class WatchedObjects(list[object]):
    """The `touched` objects of a backend, which remembers what they were.

    It is cleared when the next key is set, that is after each user call: what every object was
    then is kept. The next call that gets or stores an object must find it as it was, under the
    same key. Objects that pickle refuses are not watched, and of very many only the newest.
    """

    def __init__(self, current_key: Callable[[], Hashable]) -> None:
        super().__init__()
        self._current_key = current_key
        self._keys: list[Hashable] = []
        self._known: dict[Hashable, _Known] = {}

    @override
    def append(self, value: object, /) -> None:
        """Raises StateError if `value` has changed since the last call that had it."""
        key = self._current_key()
        if not any(value is held for held in self):
            self._check(value, key)
        super().append(value)
        self._keys.append(key)

    @override
    def clear(self) -> None:
        """Remembers what each object is now."""
        for value, key in zip(self, self._keys, strict=True):
            pickled = _pickled(value)
            if pickled is not None:
                make_room(self._known)
                self._known[id(value)] = _Known(value, key, pickled)
        super().clear()
        self._keys.clear()

    def _check(self, value: object, key: Hashable) -> None:
        known = self._known.get(id(value))
        if known is None:
            return
        shown = f"{value!r:.200}"
        if known.key != key:
            raise StateError(
                f"one object is held in state under two keys, {known.key!r} and {key!r}: {shown};"
                " store a copy for each"
            )
        if known.pickled != _pickled(value):
            raise StateError(
                f"an object in the state of key {key!r} was changed after the call that last got"
                f" or stored it: {shown}; change it within such a call, or change a copy"
            )


def _pickled(value: object) -> bytes | None:
    try:
        return pickle.dumps(value, pickle.HIGHEST_PROTOCOL)
    except Exception:
        # A reducer of the user's may raise anything; such an object is not watched.
        return None
