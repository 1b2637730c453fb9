"""The places that the records of a joined batch came from."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable

Origin = Callable[[int], str]


class JoinedOrigin:
    """Names the place of a record by its index in a batch that grew from several.

    Each part keeps the origin that it came with, so a record that queued in a channel is named
    in a failure as one that did not.
    """

    __slots__ = ("_origins", "_starts")

    def __init__(self) -> None:
        self._starts: list[int] = []
        self._origins: list[Origin | None] = []

    def add(self, start: int, origin: Origin | None) -> None:
        """The records from index `start` on are those of `origin`."""
        self._starts.append(start)
        self._origins.append(origin)

    def __call__(self, index: int) -> str:
        """The place of the record, or nothing if its part came without."""
        part = bisect_right(self._starts, index) - 1
        origin = self._origins[part]
        return "" if origin is None else origin(index - self._starts[part])
