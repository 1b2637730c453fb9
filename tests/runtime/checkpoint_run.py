"""A coordinator under test whose surroundings obey at once, and what came out of it."""

from collections.abc import Iterable

from runtime.checkpoint import CheckpointCoordinator
from runtime.checkpoint_messages import (
    AbortReason,
    Acknowledgement,
    AttemptId,
    CutEnumerators,
    Decline,
    Effect,
    FailJob,
    NotifyAborted,
    ReleaseFinished,
    StoreMetadata,
    SubtaskId,
)
from runtime.survival_settings import CheckpointSettings
from statebackends.storage import StateFile

ATTEMPT = AttemptId(epoch=3, attempt=1)
SOURCE, LEFT, RIGHT = SubtaskId(1, 0), SubtaskId(2, 0), SubtaskId(2, 1)
SUBTASKS = (SOURCE, LEFT, RIGHT)
INTERVAL_MS = 1_000


class Run:
    """A coordinator whose effects are gathered, with enumerators and storage that obey at once."""

    def __init__(self, *, storing: bool = True, next_id: int = 1, **settings: int) -> None:
        self.coordinator = CheckpointCoordinator(
            CheckpointSettings(**{"interval_ms": INTERVAL_MS, "timeout_ms": 5_000, **settings}),
            next_id,
        )
        self.storing = storing
        self.effects: list[Effect] = []
        self.now = 0
        self.do(self.coordinator.start(0, ATTEMPT, SUBTASKS))

    def do(self, effects: Iterable[Effect]) -> None:
        for effect in effects:
            self.effects.append(effect)
            if isinstance(effect, CutEnumerators):
                self.do(self.coordinator.enumerators_cut(self.now, effect.checkpoint_id))
            elif isinstance(effect, StoreMetadata) and self.storing:
                self.do(self.coordinator.stored(self.now, effect.checkpoint_id))

    def at(self, now: int) -> "Run":
        self.now = now
        self.do(self.coordinator.tick(now))
        return self

    def ack(
        self,
        checkpoint_id: int,
        *subtasks: SubtaskId,
        attempt: AttemptId = ATTEMPT,
        finished: bool = False,
        size: int = 10,
    ) -> "Run":
        for subtask in subtasks:
            file = StateFile(f"{subtask.vertex}-{subtask.index}", size, 0)
            message = Acknowledgement(attempt, checkpoint_id, subtask, file, finished)
            self.do(self.coordinator.acknowledged(self.now, message))
        return self

    def decline(self, checkpoint_id: int, subtask: SubtaskId = LEFT) -> "Run":
        message = Decline(ATTEMPT, checkpoint_id, subtask, "no room on the disk")
        self.do(self.coordinator.declined(self.now, message))
        return self

    def finish(self, *subtasks: SubtaskId) -> "Run":
        for subtask in subtasks:
            self.do(self.coordinator.subtask_finished(self.now, ATTEMPT, subtask))
        return self

    def ids(self, kind: type[Effect]) -> list[int | None]:
        return [e.checkpoint_id for e in self.effects if isinstance(e, kind)]  # type: ignore[union-attr]  # asked of kinds with an id

    def aborted(self) -> list[tuple[int, AbortReason]]:
        return [(e.checkpoint_id, e.reason) for e in self.effects if isinstance(e, NotifyAborted)]

    def failures(self) -> list[str]:
        return [e.reason for e in self.effects if isinstance(e, FailJob)]

    def released(self) -> bool:
        return ReleaseFinished() in self.effects
