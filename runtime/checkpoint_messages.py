"""What goes in and out of the checkpoint coordinator: messages of the tasks, and effects."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from statebackends.storage import StateFile


@dataclass(frozen=True, slots=True, order=True)
class SubtaskId:
    """One subtask of the running plan: the vertex (a chain of operators) and the index in it."""

    vertex: int
    index: int


class AttemptId(NamedTuple):
    """One attempt of one run: `epoch` rises with each start, `attempt` with each restart in it."""

    epoch: int
    attempt: int


# -- messages of the tasks ---------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Acknowledgement:
    """A subtask's state of a checkpoint is safely stored.

    `file` is None for a subtask without state. `finished` says that the cut was made after the
    subtask's last output.
    """

    attempt: AttemptId
    checkpoint_id: int
    subtask: SubtaskId
    file: StateFile | None = None
    finished: bool = False


@dataclass(frozen=True, slots=True)
class Decline:
    """A subtask could not take or store its part of a checkpoint."""

    attempt: AttemptId
    checkpoint_id: int
    subtask: SubtaskId
    reason: str


class AbortReason(Enum):
    """Why a pending checkpoint was given up."""

    EXPIRED = "it was not acknowledged in time"
    DECLINED = "a subtask declined it"
    CUT_FAILED = "the state of a split enumerator could not be taken"
    STORE_FAILED = "it could not be stored"
    SUBSUMED = "a later checkpoint completed first"
    STOPPING = "the final checkpoint takes its place"
    HALTED = "the attempt ended"

    @property
    def is_failure(self) -> bool:
        """Whether it counts towards the tolerated failures (Flink: CheckpointFailureManager)."""
        return self not in {AbortReason.SUBSUMED, AbortReason.STOPPING, AbortReason.HALTED}


# -- effects: what the driver has to do, in order ----------------------------------------------


@dataclass(frozen=True, slots=True)
class CutEnumerators:
    """Take the state of all split enumerators; answer `enumerators_cut` or `cut_failed`."""

    checkpoint_id: int


@dataclass(frozen=True, slots=True)
class TriggerSources:
    """Tell the tasks to begin: sources cut at once, the others if no input brings the barrier."""

    checkpoint_id: int
    timestamp_ms: int
    final: bool


@dataclass(frozen=True, slots=True)
class StoreMetadata:
    """Everything is acknowledged: put the metadata in place; answer `stored` or `store_failed`.

    At most one is outstanding. `acknowledgements` holds every subtask of the attempt.
    """

    checkpoint_id: int
    attempt: AttemptId
    timestamp_ms: int
    acknowledgements: Mapping[SubtaskId, Acknowledgement]


@dataclass(frozen=True, slots=True)
class NotifyComplete:
    """Tell the tasks and enumerators that the checkpoint is durably complete."""

    checkpoint_id: int


@dataclass(frozen=True, slots=True)
class NotifyAborted:
    """Tell the tasks and enumerators that the checkpoint will never complete."""

    checkpoint_id: int
    reason: AbortReason
    detail: str


@dataclass(frozen=True, slots=True)
class Discard:
    """Remove what was written for a checkpoint that failed or is no longer retained."""

    checkpoint_id: int


@dataclass(frozen=True, slots=True)
class ReleaseFinished:
    """All subtasks are finished and what they put out is covered: they may leave."""


@dataclass(frozen=True, slots=True)
class FinalCheckpointEnded:
    """The final checkpoint of a stop is complete, or (with `reason`) there will be none."""

    checkpoint_id: int | None
    reason: str = ""


@dataclass(frozen=True, slots=True)
class FailJob:
    """More checkpoints failed in a row than are tolerated."""

    reason: str


@dataclass(frozen=True, slots=True)
class WakeAt:
    """Call `tick` at this time instead of any time named before; None: not at all."""

    timestamp_ms: int | None


Effect: TypeAlias = (
    CutEnumerators
    | TriggerSources
    | StoreMetadata
    | NotifyComplete
    | NotifyAborted
    | Discard
    | ReleaseFinished
    | FinalCheckpointEnded
    | FailJob
    | WakeAt
)
