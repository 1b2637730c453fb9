"""Nanoseconds that keyed state on the heap costs: the key, its handles, fold, snapshot, restore."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Hashable

from statebackends.descriptors import ReducingStateDescriptor, ValueStateDescriptor
from statebackends.heap import HeapKeyedStateBackend
from statebackends.keygroups import DEFAULT_MAX_PARALLELISM, key_group_range
from statebackends.snapshot import SnapshotFile, SnapshotFileWriter

_BATCH = 1024
_REPEATS = 5


class _Buffer:
    def __init__(self) -> None:
        self.data = bytearray()

    def write(self, chunk: bytes) -> None:
        self.data += chunk


def made() -> HeapKeyedStateBackend:
    """A backend that owns all key groups."""
    return HeapKeyedStateBackend(
        key_group_range(DEFAULT_MAX_PARALLELISM, 1, 0), DEFAULT_MAX_PARALLELISM
    )


def report(name: str, operations: int, work: Callable[[], object], repeats: int = _REPEATS) -> None:
    """Prints the best of some runs, in processor time."""
    best = float("inf")
    for _ in range(repeats):
        start = time.process_time()
        work()
        best = min(best, time.process_time() - start)
    print(f"{name:34} {best / operations * 1e9:7.0f} ns")


def accesses() -> None:
    """1,000 keys, so that all are in the memo."""
    backend = made()
    state = backend.get_partitioned_state(ValueStateDescriptor("count", int))
    read, write = state.value, state.update  # type: ignore[attr-defined]  # a value state
    set_key = backend.set_current_key
    names: list[Hashable] = [f"key-{number:016d}" for number in range(1000)]
    keys = names * 200
    total = ReducingStateDescriptor("total", lambda one, other: one + other, int)
    batches = [keys[at : at + _BATCH] for at in range(0, len(keys), _BATCH)]

    def set_and_write() -> None:
        for key in keys:
            set_key(key)
            write(5)

    report("set_current_key and update", len(keys), set_and_write)
    report("set_current_key", len(keys), lambda: [set_key(key) for key in keys])
    report("value", len(keys), lambda: [read() for _ in keys])
    report("update", len(keys), lambda: [write(5) for _ in keys])
    report(
        "fold of integers, function included",
        len(keys),
        lambda: [backend.fold(total, keys, [1] * len(keys), total.reduce) for keys in batches],
    )


def snapshots(entries: int = 1_000_000) -> None:
    """One integer each under a million keys."""
    backend = made()
    descriptor = ValueStateDescriptor("count", int)
    state = backend.get_partitioned_state(descriptor)
    write = state.update  # type: ignore[attr-defined]  # a value state

    def fill() -> None:
        for number in range(entries):
            backend.set_current_key(f"key-{number:016d}")
            write(number)

    buffer = _Buffer()

    def save() -> None:
        buffer.data.clear()
        writer = SnapshotFileWriter(buffer)
        writer.add_keyed("operator", backend.snapshot(), lambda: True)
        writer.finish()

    def load() -> None:
        restored = SnapshotFile.open(bytes(buffer.data)).keyed("operator")
        again = made()
        again.restore([restored] if restored else [])
        again.get_partitioned_state(descriptor)

    report("first update of a new key", entries, fill, repeats=1)
    report("the cut itself, per entry", entries, backend.snapshot)
    report("writing, per entry", entries, save, repeats=2)
    report("restoring, per entry", entries, load, repeats=2)


if __name__ == "__main__":
    gc.disable()
    accesses()
    snapshots()
