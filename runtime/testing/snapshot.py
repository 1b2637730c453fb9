"""Snapshots of the operators under test: real state files, kept in memory."""

from __future__ import annotations

from dataclasses import dataclass

from operators.elements import CheckpointBarrier
from runtime.checkpoint_messages import Acknowledgement, AttemptId, StoreMetadata, SubtaskId
from runtime.checkpoint_metadata import CheckpointMetadata, collect_metadata
from runtime.plan import ExecutionPlan, PlannedOperator
from runtime.recovery import RestoredCheckpoint, restore
from runtime.start_point import LocatedCheckpoint
from runtime.task import Task
from runtime.testing.hand_driven_loop import HandDrivenLoop
from statebackends.errors import StateError
from statebackends.storage import CheckpointStorage, InMemoryCheckpointStorage, StateFile

FILE_BYTES_MAX = 2**40


@dataclass(frozen=True, slots=True)
class OperatorSnapshot:
    """What the operators under test had at a checkpoint; can be restored any number of times."""

    metadata: CheckpointMetadata
    storage: CheckpointStorage

    @property
    def size_bytes(self) -> int:
        """The size of all state files."""
        return sum(file.size for file in self.metadata.files())


class SnapshotTaker:
    """Stands in for the checkpoint coordinator of one attempt; fits `AttemptListener`."""

    def __init__(self, loop: HandDrivenLoop, attempt: AttemptId) -> None:
        self.storage = InMemoryCheckpointStorage(FILE_BYTES_MAX)
        self.finished_tasks: set[SubtaskId] = set()
        self._loop = loop
        self._attempt = attempt
        self._last_id = attempt.attempt * 1_000_000
        self._acknowledged: dict[SubtaskId, Acknowledgement] = {}
        self._declined: list[str] = []
        self._failed: list[BaseException] = []

    # -- what tasks report --------------------------------------------------------------------

    def finished(self, task: Task) -> None:
        """A task has put out its last element."""
        self.finished_tasks.add(task.subtask)

    def checkpoint_declined(self, task: Task, checkpoint_id: int, reason: str) -> None:
        """A task will not take part."""
        self._declined.append(f"{task.name}: {reason}")

    def replies(self, subtask: SubtaskId) -> _Replies:
        """Where a subtask's part of a snapshot is reported."""
        return _Replies(self, subtask)

    # -- taking and restoring -----------------------------------------------------------------

    def take(
        self, tasks: dict[SubtaskId, Task], plan: ExecutionPlan, now_ms: int
    ) -> OperatorSnapshot:
        """Sends a barrier through the tasks and collects what they stored.

        Raises:
            StateError: a task could not store its part.
        """
        self._last_id += 1
        checkpoint_id = self._last_id
        self._acknowledged.clear()
        self._declined.clear()
        for task in tasks.values():
            task.trigger_checkpoint(CheckpointBarrier(checkpoint_id, now_ms))
        self._loop.run_until_quiet()
        if self._failed:
            raise self._failed[0]
        if self._declined or len(self._acknowledged) < len(tasks):
            silent = [t.name for s, t in tasks.items() if s not in self._acknowledged]
            reasons = self._declined or [f"no answer of {name}" for name in silent]
            raise StateError(f"the snapshot failed: {'; '.join(reasons)}")
        stored = StoreMetadata(checkpoint_id, self._attempt, now_ms, dict(self._acknowledged))
        metadata = collect_metadata("harness", stored, plan.vertices, {})
        for task in tasks.values():
            task.notify_complete(checkpoint_id)
        self._loop.run_until_quiet()
        return OperatorSnapshot(metadata, self.storage)

    def _acknowledge(
        self, subtask: SubtaskId, checkpoint_id: int, file: StateFile | None, finished: bool
    ) -> None:
        self._acknowledged[subtask] = Acknowledgement(
            self._attempt, checkpoint_id, subtask, file, finished
        )


class _Replies:
    """The `CheckpointReplies` of one subtask."""

    def __init__(self, taker: SnapshotTaker, subtask: SubtaskId) -> None:
        self._taker = taker
        self._subtask = subtask

    def acknowledged(self, checkpoint_id: int, file: StateFile | None, *, finished: bool) -> None:
        self._taker._acknowledge(self._subtask, checkpoint_id, file, finished)

    def declined(self, checkpoint_id: int, reason: str) -> None:
        self._taker._declined.append(reason)

    def failed(self, error: BaseException) -> None:
        self._taker._failed.append(error)


async def opened(
    snapshot: OperatorSnapshot, operators: list[PlannedOperator]
) -> RestoredCheckpoint:
    """The snapshot for the operators of a plan; raises as `runtime.recovery.restore`."""
    located = LocatedCheckpoint(snapshot.storage, snapshot.metadata, "the snapshot")
    return await restore(located, operators)
