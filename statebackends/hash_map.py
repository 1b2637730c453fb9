"""Where a job or a harness gets its keyed state on the heap from."""

from __future__ import annotations

from statebackends.backend import KeyedStateBackend
from statebackends.heap import HeapKeyedStateBackend
from statebackends.keygroups import KeyGroupRange


class HashMapStateBackend:
    """Makes keyed state on the heap (PyFlink: `HashMapStateBackend`), for an `OperatorHarness`.

    A job has it by default (`state.backend.type`). `detect_late_changes` is what
    `riverrun.state.detect-late-changes` is for a job.
    """

    def __init__(self, *, detect_late_changes: bool = False) -> None:
        self._detect_late_changes = detect_late_changes

    def create_keyed_state_backend(
        self, key_group_range: KeyGroupRange, max_parallelism: int
    ) -> KeyedStateBackend:
        """The backend of one operator instance (a `KeyedStateBackendFactory`)."""
        detect = self._detect_late_changes
        return HeapKeyedStateBackend(key_group_range, max_parallelism, detect_late_changes=detect)
