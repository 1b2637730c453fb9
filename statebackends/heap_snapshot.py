"""Writing the heap backend's state into a snapshot file.

Runs in the turn of the cut or in a forked child, over the live tables: rows lie by key group as
the file wants them and are written as they are. Tables by namespace and timers are dealt out to
their key groups here, one state after the other.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from statebackends.chunks import chunk_entries, dump_chunk, encode_keys
from statebackends.errors import StateError
from statebackends.heap_tables import HeapRows, HeapState
from statebackends.keygroups import KeyGroupRange, key_group_of
from statebackends.keys import encode_key
from statebackends.restored_states import RestoredState
from statebackends.snapshot import CHUNK_ENTRIES_MAX, SectionWriter, StateSection
from statebackends.timer_queue import TimerQueue

if TYPE_CHECKING:
    from statebackends.backend import SnapshotSink

KEY_SERIALIZER = "key/1"
TIMER_KIND = "timers"
TIMER_LAYOUT = "namespaced"
TIMER_SERIALIZER = "timestamp/1"
TIMER_PREFIX = "timers/"
"""Before the name of a timer queue where it stands among the names of states."""

_Bucket = tuple[list[bytes], list[Hashable], list[Any]]
"""Canonical bytes of keys, namespaces, values: columns of one key group."""


@dataclass(frozen=True, slots=True)
class HeapSnapshot:
    """The cut of a heap backend; its tables are the live ones (see `KeyedSnapshot`)."""

    entries: int
    """State entries and timers, about: each row counts in full, many namespaces as one each."""
    key_group_range: KeyGroupRange
    max_parallelism: int
    rows: HeapRows
    states: tuple[HeapState, ...]
    timer_queues: dict[str, TimerQueue]
    untouched: tuple[RestoredState, ...]
    """What was restored and never asked for."""

    def write(self, sink: SnapshotSink, alive: Callable[[], bool]) -> list[StateSection]:
        """See `KeyedSnapshot`.

        Raises:
            StateError: a value cannot be serialised; the cause says why.
            InterruptedError: `alive` said no.
        """
        sections = []
        for state in self.states:
            name = state.descriptor.name
            writer = SectionWriter(sink, alive)
            if state.slot is not None:
                self._write_rows(writer, state, state.slot)
            else:
                self._write_tables(writer, state)
            serializer = state.descriptor.serializer.identity
            kind = state.descriptor.kind
            sections.append(writer.finish(name, kind, state.layout, KEY_SERIALIZER, serializer))
        for name, queue in self.timer_queues.items():
            writer = SectionWriter(sink, alive)
            self._write_timers(writer, queue)
            sections.append(
                writer.finish(
                    TIMER_PREFIX + name, TIMER_KIND, TIMER_LAYOUT, KEY_SERIALIZER, TIMER_SERIALIZER
                )
            )
        sections += [
            _write_untouched(SectionWriter(sink, alive), state) for state in self.untouched
        ]
        return sections

    def _write_rows(self, writer: SectionWriter, state: HeapState, slot: int) -> None:
        for key_group, group in self.rows.groups.items():
            if self.rows.width == 1:
                # The only slot: a row that is there has an entry.
                keys = list(group)
                values = [row[0] for row in group.values()]
            else:
                keys = [key for key, row in group.items() if row[slot] is not None]
                values = [row[slot] for row in group.values() if row[slot] is not None]
            if not keys:
                continue
            writer.begin_group(key_group)
            for start in range(0, len(keys), CHUNK_ENTRIES_MAX):
                part = slice(start, start + CHUNK_ENTRIES_MAX)
                column = _dump_values(state, values[part])
                chunk = dump_chunk(encode_keys(keys[part]), None, column)
                writer.write_chunk(chunk, len(keys[part]))

    def _write_tables(self, writer: SectionWriter, state: HeapState) -> None:
        entries = (
            (key, namespace, value)
            for namespace, table in state.tables.items()
            for key, value in table.items()
        )
        _write_buckets(writer, self._dealt_out(entries), lambda values: _dump_values(state, values))

    def _write_timers(self, writer: SectionWriter, queue: TimerQueue) -> None:
        entries = ((key, namespace, timestamp) for timestamp, key, namespace in queue)
        _write_buckets(
            writer,
            self._dealt_out(entries),
            lambda timestamps: struct.pack(f"<{len(timestamps)}q", *timestamps),
        )

    def _dealt_out(self, entries: Iterable[tuple[Hashable, Hashable, Any]]) -> dict[int, _Bucket]:
        buckets: dict[int, _Bucket] = {}
        max_parallelism = self.max_parallelism
        for key, namespace, value in entries:
            data = encode_key(key)
            key_group = key_group_of(data, max_parallelism)
            bucket = buckets.get(key_group)
            if bucket is None:
                bucket = buckets[key_group] = ([], [], [])
            bucket[0].append(data)
            bucket[1].append(namespace)
            bucket[2].append(value)
        return buckets


def _write_buckets(
    writer: SectionWriter, buckets: dict[int, _Bucket], dump: Callable[[list[Any]], bytes]
) -> None:
    for key_group, (keys, namespaces, values) in buckets.items():
        writer.begin_group(key_group)
        for start in range(0, len(keys), CHUNK_ENTRIES_MAX):
            part = slice(start, start + CHUNK_ENTRIES_MAX)
            chunk = dump_chunk(keys[part], namespaces[part], dump(values[part]))
            writer.write_chunk(chunk, len(keys[part]))


def _write_untouched(writer: SectionWriter, state: RestoredState) -> StateSection:
    for key_group, chunks in state.groups.items():
        writer.begin_group(key_group)
        for chunk in chunks:
            writer.write_chunk(chunk, chunk_entries(chunk))
    return writer.finish(
        state.name, state.kind, state.layout, state.key_serializer, state.value_serializer
    )


def _dump_values(state: HeapState, values: list[Any]) -> bytes:
    try:
        return state.descriptor.serializer.dump_column(values)
    except Exception as error:
        raise StateError(
            f"state {state.descriptor.name!r} holds a value that cannot be serialised:"
            f" {type(error).__name__}: {error}; keep in state what pickle can write (no lambdas,"
            " locks or classes of a function's own), or give the descriptor a serializer"
        ) from error
