"""What a backend was given at restore, kept as bytes until a state of that name is asked for."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from statebackends.chunks import chunk_entries
from statebackends.errors import StateError
from statebackends.keygroups import KeyGroupRange

if TYPE_CHECKING:
    from statebackends.snapshot import RestoredKeyedState


@dataclass(slots=True)
class RestoredState:
    """One state (or timer queue) as it was written: chunks by key group."""

    name: str
    kind: str
    layout: str
    key_serializer: str
    value_serializer: str
    groups: dict[int, list[bytes]] = field(default_factory=dict)
    entries: int = 0

    def require(self, kind: str, layout: str, key_serializer: str, value_serializer: str) -> None:
        """Refuses a declaration that cannot read what was written.

        Raises:
            StateError: names the state and what changed.
        """
        for what, before, now in (
            ("kind", self.kind, kind),
            ("layout", self.layout, layout),
            ("key serializer", self.key_serializer, key_serializer),
            ("value serializer", self.value_serializer, value_serializer),
        ):
            if before != now:
                raise StateError(
                    f"state {self.name!r} was restored with {what} {before!r} but is declared"
                    f" with {now!r}; declare it as before, or give the new state another name"
                )


def read_restored(
    snapshots: Iterable[RestoredKeyedState], key_groups: KeyGroupRange, max_parallelism: int
) -> dict[str, RestoredState]:
    """Reads the key groups of a range from the snapshots of former subtasks, by state name.

    Raises:
        StateError: the snapshots were made with another max parallelism, or do not agree.
        CorruptCheckpointError: the bytes are not those that were written.
    """
    states: dict[str, RestoredState] = {}
    for snapshot in snapshots:
        if snapshot.max_parallelism != max_parallelism:
            raise StateError(
                f"the state was written with max parallelism {snapshot.max_parallelism}, which"
                f" cannot change any more; {max_parallelism} was given"
            )
        for section in snapshot.sections:
            state = RestoredState(
                section.name,
                section.kind,
                section.layout,
                section.key_serializer,
                section.value_serializer,
            )
            known = states.setdefault(section.name, state)
            if known is not state:
                known.require(
                    state.kind, state.layout, state.key_serializer, state.value_serializer
                )
            for key_group in section.groups:
                if key_group in key_groups:
                    chunks = list(snapshot.read_chunks(section, key_group))
                    known.entries += sum(map(chunk_entries, chunks))
                    known.groups.setdefault(key_group, []).extend(chunks)
    return states
