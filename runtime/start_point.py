"""From which checkpoint a run starts: what was asked for, what is there and what is whole."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from runtime.checkpoint_metadata import CheckpointMetadata, parse_metadata
from runtime.errors import ConfigurationError, RecoveryError
from runtime.job_folder import JobFolder, RunStatus
from runtime.survival_settings import LATEST, RecoverySettings
from statebackends.errors import CorruptCheckpointError
from statebackends.file_storage import (
    FileSystemCheckpointStorage,
    RunBlocking,
    run_in_executor,
)
from statebackends.storage import METADATA_NAME, CheckpointStorage

_FOLDER = re.compile(r"chk-([0-9]+)", re.ASCII)


@dataclass(frozen=True, slots=True)
class LocatedCheckpoint:
    """A whole checkpoint: where it is and what it holds. `label` names it in messages."""

    storage: CheckpointStorage
    metadata: CheckpointMetadata
    label: str


@dataclass(frozen=True, slots=True)
class SkippedCheckpoint:
    """A newer checkpoint that cannot be used, and why."""

    checkpoint_id: int
    reason: str


@dataclass(frozen=True, slots=True)
class StartPoint:
    """What a run starts from: `checkpoint`, or nothing if it is None.

    `first_checkpoint_id` lies above every id seen in the job's folder. `text` says it all to the
    user in a line; `skipped` are newer checkpoints that were passed over.
    """

    checkpoint: LocatedCheckpoint | None
    first_checkpoint_id: int
    text: str
    skipped: tuple[SkippedCheckpoint, ...] = ()


async def choose_start(
    folder: JobFolder,
    settings: RecoverySettings,
    *,
    run_blocking: RunBlocking = run_in_executor,
) -> StartPoint:
    """The start that `settings` ask for; call it before `folder.begin_run`.

    Raises:
        ConfigurationError: nothing was asked for over the checkpoints of an unfinished run.
        RecoveryError: a checkpoint is of another format, or there is no whole one at the given
            path.
    """
    next_id = await folder.storage.highest_id() + 1
    if settings.fresh:
        return StartPoint(None, next_id, "starts without state (--fresh)")
    if settings.path is None:
        await _refuse_over_unfinished(folder)
        return StartPoint(None, next_id, "starts without state")
    if settings.path == LATEST:
        return await latest_start(folder)
    checkpoint = await open_checkpoint(settings.path, run_blocking=run_blocking)
    next_id = max(next_id, checkpoint.metadata.checkpoint_id + 1)
    return StartPoint(checkpoint, next_id, f"starts from {checkpoint.label}")


async def latest_start(folder: JobFolder) -> StartPoint:
    """The newest checkpoint of the folder whose metadata and files are whole, if there is one."""
    highest = await folder.storage.highest_id()
    complete = await folder.storage.checkpoints()
    skipped: list[SkippedCheckpoint] = []
    if highest > max(complete, default=0):
        skipped.append(SkippedCheckpoint(highest, "it was begun and not completed"))
    checkpoint = await _newest_whole(folder, complete, skipped)
    if checkpoint is None:
        text = f"starts without state: {folder.label} holds no usable checkpoint"
    else:
        text = f"starts from {checkpoint.label}"
    return StartPoint(checkpoint, highest + 1, text, tuple(skipped))


async def restart_point(
    folder: JobFolder, start: StartPoint, completed_id: int | None = None
) -> StartPoint:
    """Where the next attempt of a run begins that began at `start`.

    That is the newest whole checkpoint that this run completed, else `start` again: what former
    runs left behind was not chosen then and is not chosen now. `completed_id` is the newest that
    the run is known to have completed.

    Raises `RecoveryError` if the run completed one and none of its own can be used any more: what
    its sinks have put out since the start would come a second time.
    """
    first_id = start.first_checkpoint_id
    own = [id_ for id_ in await folder.storage.checkpoints() if id_ >= first_id]
    skipped: list[SkippedCheckpoint] = []
    checkpoint = await _newest_whole(folder, own, skipped)
    if checkpoint is not None:
        return StartPoint(checkpoint, first_id, f"starts from {checkpoint.label}", tuple(skipped))
    if completed_id is not None:
        lost = [f"; checkpoint {one.checkpoint_id}: {one.reason}" for one in skipped]
        raise RecoveryError(
            f"this run completed checkpoint {completed_id} in {folder.label}, and none of its"
            f" checkpoints is usable any more{''.join(lost)}; bring the folder back and start with"
            f" --from {LATEST}, or begin anew with --fresh"
        )
    return replace(start, skipped=tuple(skipped))


async def open_checkpoint(
    path: str | Path, *, run_blocking: RunBlocking = run_in_executor
) -> LocatedCheckpoint:
    """The checkpoint in the folder `path` (`.../chk-<id>`), verified.

    Raises `RecoveryError` if there is none, or it is damaged or of another format.
    """
    place = FileSystemCheckpointStorage(path).directory
    match = _FOLDER.fullmatch(place.name)
    if match is None:
        raise RecoveryError(
            f"{place}: is not a checkpoint; give --from the path of a folder named chk-<number>,"
            f" or {LATEST!r} for the newest one of this job"
        )
    storage = FileSystemCheckpointStorage(place.parent, run_blocking=run_blocking)
    checkpoint_id = int(match[1])
    if checkpoint_id not in await storage.checkpoints():
        lack = f"there is no {METADATA_NAME!r} in it" if place.is_dir() else "no such folder"
        raise RecoveryError(
            f"{place}: holds no complete checkpoint ({lack}); give --from another one, or"
            f" {LATEST!r} for the newest one of this job"
        )
    try:
        return await _verified(storage, checkpoint_id, str(place))
    except CorruptCheckpointError as error:
        raise RecoveryError(
            f"{error}; give --from another one, or {LATEST!r} for the newest whole one of this job"
        ) from error


async def _verified(
    storage: CheckpointStorage, checkpoint_id: int, label: str
) -> LocatedCheckpoint:
    metadata = parse_metadata(await storage.metadata(checkpoint_id), label)
    if metadata.checkpoint_id != checkpoint_id:
        raise CorruptCheckpointError(f"{label}: holds checkpoint {metadata.checkpoint_id}")
    await storage.verify(checkpoint_id, metadata.files())
    return LocatedCheckpoint(storage, metadata, label)


async def _newest_whole(
    folder: JobFolder, checkpoint_ids: Sequence[int], skipped: list[SkippedCheckpoint]
) -> LocatedCheckpoint | None:
    """The newest that verifies; the damaged ones before it are added to `skipped`."""
    for checkpoint_id in reversed(checkpoint_ids):
        label = f"checkpoint {checkpoint_id} in {folder.label}"
        try:
            return await _verified(folder.storage, checkpoint_id, label)
        except CorruptCheckpointError as error:
            skipped.append(SkippedCheckpoint(checkpoint_id, str(error)))
    return None


async def _refuse_over_unfinished(folder: JobFolder) -> None:
    """A start without state over state that a run left behind is never what was meant."""
    status = folder.last_status()
    if status is RunStatus.FINISHED:
        return
    complete: Sequence[int] = await folder.storage.checkpoints()
    if complete:
        how = "left no record of its end" if status is None else f"ended as {status.value!r}"
        if status is RunStatus.RUNNING:
            how = "did not come to its end"
        raise ConfigurationError(
            f"{folder.label} holds checkpoints (the newest is {complete[-1]}) of a run that {how}:"
            f" start with --from {LATEST} to go on from the newest one, or with --fresh to begin"
            " anew without its state"
        )
