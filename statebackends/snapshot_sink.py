"""Where the bytes of a state file go that is not made in memory."""

from __future__ import annotations

import os


class DescriptorSink:
    """Writes to an open file descriptor without a buffer of its own; fit for a forked child.

    Raises `OSError` as the system reports it (a full disk for one).
    """

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def write(self, chunk: bytes, /) -> None:
        """Takes all of `chunk`, in as many calls as the system needs."""
        rest = memoryview(chunk)
        while rest:
            rest = rest[os.write(self._descriptor, rest) :]
