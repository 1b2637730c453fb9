"""Reads keyed state out of the newest checkpoint of a job's folder, without the job."""

from __future__ import annotations

from collections.abc import Hashable
from pathlib import Path
from typing import TypeVar

from runtime.checkpoint_metadata import parse_metadata
from statebackends.descriptors import ValueStateDescriptor
from statebackends.file_storage import FileSystemCheckpointStorage, run_directly
from statebackends.heap import HeapKeyedStateBackend
from statebackends.keygroups import KeyGroupRange
from statebackends.state import ValueState

T = TypeVar("T")


async def saved_values(
    folder: Path, uid: str, descriptor: ValueStateDescriptor[T]
) -> dict[Hashable, T]:
    """The values of a state of the operator `uid` by key, over all its subtasks."""
    storage = FileSystemCheckpointStorage(folder, run_blocking=run_directly)
    newest = (await storage.checkpoints())[-1]
    metadata = parse_metadata(await storage.metadata(newest), f"checkpoint {newest}")
    await storage.verify(newest, metadata.files())
    operator = next(each for each in metadata.operators if each.uid == uid)
    files = [await storage.open(newest, file) for file in operator.files if file is not None]
    found = [keyed for file in files if (keyed := file.keyed(uid)) is not None]
    key_groups = KeyGroupRange(0, operator.max_parallelism - 1)
    backend = HeapKeyedStateBackend(key_groups, operator.max_parallelism)
    backend.restore(found)
    state = backend.get_partitioned_state(descriptor)
    assert isinstance(state, ValueState)
    values: dict[Hashable, T] = {}
    for key in backend.keys(descriptor.name):
        backend.set_current_key(key)
        value = state.value()
        assert value is not None
        values[key] = value
    for file in files:
        file.close()
    return values
