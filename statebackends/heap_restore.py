"""From restored chunks to rows, tables and timers of the heap backend."""

from __future__ import annotations

import struct
from typing import Any

from statebackends.chunks import decode_keys, load_chunk
from statebackends.heap_tables import HeapRows, HeapState
from statebackends.restored_states import RestoredState
from statebackends.timer_queue import TimerQueue


def load_state(state: HeapState, rows: HeapRows, restored: RestoredState) -> None:
    """Puts the entries of a restored state into its slot of the rows, or into its tables."""
    load_column = state.descriptor.serializer.load_column
    for key_group, chunks in restored.groups.items():
        for data in chunks:
            chunk = load_chunk(data)
            keys = decode_keys(chunk.keys)
            values: list[Any] = load_column(chunk.values)
            if state.slot is not None:
                slot, width = state.slot, rows.width
                group = rows.groups.setdefault(key_group, {})
                for key, value in zip(keys, values, strict=True):
                    row = group.get(key)
                    if row is None:
                        row = group[key] = [None] * width
                    row[slot] = value
            else:
                tables = state.tables
                namespaces = chunk.namespaces or ()
                for key, namespace, value in zip(keys, namespaces, values, strict=True):
                    tables.setdefault(namespace, {})[key] = value


def load_timers(queue: TimerQueue, restored: RestoredState) -> None:
    """Adds restored timers to their queue."""
    for chunks in restored.groups.values():
        for data in chunks:
            chunk = load_chunk(data)
            timestamps = struct.unpack(f"<{chunk.count}q", chunk.values)
            namespaces = chunk.namespaces or ()
            keys = decode_keys(chunk.keys)
            for key, namespace, timestamp in zip(keys, namespaces, timestamps, strict=True):
                queue.add(timestamp, key, namespace)
