"""Carries keyed state over to a new backend through the bytes of a state file."""

from __future__ import annotations

from statebackends.backend import KeyedStateBackend
from statebackends.heap import HeapKeyedStateBackend
from statebackends.snapshot import SnapshotFile, SnapshotFileWriter


class _Bytes:
    def __init__(self) -> None:
        self.data = bytearray()

    def write(self, chunk: bytes, /) -> None:
        self.data += chunk


def restarted(backend: KeyedStateBackend) -> HeapKeyedStateBackend:
    """A new backend with what a snapshot of `backend` holds."""
    sink = _Bytes()
    writer = SnapshotFileWriter(sink)
    writer.add_keyed("operator", backend.snapshot(), lambda: True)
    writer.finish()
    restored = SnapshotFile.open(bytes(sink.data)).keyed("operator")
    assert restored is not None
    new = HeapKeyedStateBackend(backend.key_group_range, backend.max_parallelism)
    new.restore([restored])
    return new
