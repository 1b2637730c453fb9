"""Taking keyed state through a state file, for tests."""

from collections.abc import Iterable

from statebackends.backend import KeyedSnapshot, KeyedStateBackend
from statebackends.snapshot import RestoredKeyedState, SnapshotFile, SnapshotFileWriter


class Bytes:
    """A sink in memory."""

    def __init__(self) -> None:
        self.data = bytearray()

    def write(self, chunk: bytes) -> None:
        self.data += chunk


def written(snapshot: KeyedSnapshot) -> RestoredKeyedState:
    """Writes a cut into a state file and opens it again."""
    sink = Bytes()
    writer = SnapshotFileWriter(sink)
    writer.add_keyed("operator", snapshot, lambda: True)
    writer.finish()
    restored = SnapshotFile.open(bytes(sink.data)).keyed("operator")
    assert restored is not None
    return restored


def saved(backends: Iterable[KeyedStateBackend]) -> list[RestoredKeyedState]:
    """Cuts, writes and opens the state of several subtasks."""
    return [written(backend.snapshot()) for backend in backends]
