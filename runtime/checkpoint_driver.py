"""Does what the checkpoint coordinator decides: clock, storage, enumerators and tasks.

Nothing is decided here. Events come in by plain calls on the loop and are answered at once; only
what touches storage waits its turn in `run`, one piece of work at a time and in order.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Protocol

from runtime.checkpoint import CheckpointCoordinator
from runtime.checkpoint_messages import (
    Acknowledgement,
    AttemptId,
    CutEnumerators,
    Decline,
    Discard,
    Effect,
    FailJob,
    FinalCheckpointEnded,
    NotifyAborted,
    NotifyComplete,
    ReleaseFinished,
    StoreMetadata,
    SubtaskId,
    TriggerSources,
    WakeAt,
)
from runtime.checkpoint_metadata import collect_metadata
from runtime.enumerators import SplitEnumerators
from runtime.errors import USER_FAILURES, summary
from runtime.job_folder import JobFolder, SupersededError
from runtime.plan import Vertex
from statebackends.clock import Clock, ScheduledCall
from statebackends.errors import StateError
from statebackends.storage import StateFile

logger = logging.getLogger(__name__)


class CheckpointFailedError(Exception):
    """More checkpoints failed in a row than the job tolerates."""


class TaskControl(Protocol):
    """The running attempt, as the driver reaches it; every call returns at once."""

    def trigger_checkpoint(
        self, subtask: SubtaskId, checkpoint_id: int, timestamp_ms: int, *, final: bool
    ) -> None:
        """Begins a checkpoint; a subtask with open inputs waits for their barriers instead."""

    def notify_complete(self, subtask: SubtaskId, checkpoint_id: int) -> None:
        """The checkpoint is durably complete."""

    def notify_aborted(self, subtask: SubtaskId, checkpoint_id: int) -> None:
        """The checkpoint will never complete."""

    def release(self, subtask: SubtaskId) -> None:
        """A finished subtask may leave."""

    def final_checkpoint_ended(self, checkpoint_id: int | None, reason: str) -> None:
        """The last checkpoint of a stop is complete, or (None) failed for `reason`."""

    def checkpoint_completed(self, checkpoint_id: int) -> None:
        """The job has got somewhere; said too if the attempt itself has ended meanwhile."""

    def fail_job(self, error: BaseException) -> None:
        """The attempt fails with this error."""


class CheckpointDriver:
    """The checkpoints of one attempt.

    Order of calls: `start` once the tasks exist, `run` under the supervisor of the attempt, then
    `close` when tasks and `run` have ended. Only after `close` it is certain which checkpoint is
    the newest.
    """

    def __init__(
        self,
        *,
        job_name: str,
        attempt: AttemptId,
        coordinator: CheckpointCoordinator,
        folder: JobFolder,
        vertices: Sequence[Vertex],
        enumerators: SplitEnumerators,
        control: TaskControl,
        clock: Clock,
    ) -> None:
        self.coordinator = coordinator
        self.attempt = attempt
        self._job_name = job_name
        self._folder = folder
        self._storage = folder.storage
        self._vertices = vertices
        self._vertex_by_id = {vertex.id: vertex for vertex in vertices}
        self._subtasks = [
            SubtaskId(vertex.id, index)
            for vertex in vertices
            for index in range(vertex.parallelism)
        ]
        self._enumerators = enumerators
        self._control = control
        self._clock = clock
        self._wake: ScheduledCall | None = None
        self._enumerator_states: dict[int, dict[str, bytes]] = {}
        self._waiting_cuts: deque[int] = deque()
        self._effects: deque[Effect] = deque()
        self._performing = False
        self._storage_work: deque[StoreMetadata | Discard] = deque()
        self._changed = asyncio.Event()
        self._work: asyncio.Future[None] | None = None
        self._superseded = False

    # -- events -------------------------------------------------------------------------------

    def start(self) -> None:
        """The tasks run; the first interval begins."""
        self._perform(self.coordinator.start(self._now(), self.attempt, self._subtasks))

    def replies(self, subtask: SubtaskId) -> SubtaskReplies:
        """Where a subtask of this attempt reports its parts of checkpoints."""
        return SubtaskReplies(self, subtask, self._control)

    def acknowledged(self, message: Acknowledgement) -> None:
        """A subtask has its part in safety."""
        if message.attempt == self.attempt:
            self._enumerators.passed(message.checkpoint_id, message.subtask)
        self._perform(self.coordinator.acknowledged(self._now(), message))
        self._cut_waiting()

    def declined(self, message: Decline) -> None:
        """A subtask failed its part; the reason is given its place in the job."""
        vertex = self._vertex_by_id[message.subtask.vertex]
        place = f"{vertex.name!r} (subtask {message.subtask.index + 1}/{vertex.parallelism})"
        placed = replace(message, reason=f"{place}: {message.reason}")
        self._perform(self.coordinator.declined(self._now(), placed))

    def subtask_finished(self, subtask: SubtaskId) -> None:
        """A subtask has put out its last element."""
        self._perform(self.coordinator.subtask_finished(self._now(), self.attempt, subtask))

    def request_checkpoint(self) -> None:
        """A checkpoint is wanted at once."""
        self._perform(self.coordinator.request_checkpoint(self._now()))

    def request_final(self) -> None:
        """The job stops; answered by `TaskControl.final_checkpoint_ended`."""
        self._perform(self.coordinator.request_final(self._now()))

    def stop_periodic(self) -> None:
        """No periodic checkpoint begins any more."""
        self._perform(self.coordinator.stop_periodic(self._now()))

    # -- storage ------------------------------------------------------------------------------

    async def run(self) -> None:
        """Does the storage work until it is cancelled; what is begun then goes on until `close`."""
        while True:
            self._changed.clear()
            while self._storage_work:
                self._work = asyncio.ensure_future(self._next_work())
                await asyncio.shield(self._work)
            await self._changed.wait()

    async def close(self) -> None:
        """Gives up what is pending; ends when nothing is written to the storage any more.

        Not to be cut short: until it has ended it is unknown whether a checkpoint exists, so that
        no further attempt may begin in this process.
        """
        self._perform(self.coordinator.halt(self._now()))
        if self._work is not None:
            await self._work
        while self._storage_work:
            await self._next_work()
        if self._wake is not None:
            self._wake.cancel()
            self._wake = None

    async def _next_work(self) -> None:
        work = self._storage_work.popleft()
        if isinstance(work, StoreMetadata):
            await self._store(work)
            return
        try:
            if self._still_newest():
                await self._storage.discard(work.checkpoint_id)
        except StateError as error:
            logger.warning("checkpoint %d could not be removed: %s", work.checkpoint_id, error)

    async def _store(self, work: StoreMetadata) -> None:
        """Puts the metadata in place: the moment from which the checkpoint exists."""
        checkpoint_id = work.checkpoint_id
        states = self._enumerator_states.get(checkpoint_id, {})
        metadata = collect_metadata(self._job_name, work, self._vertices, states)
        try:
            if not self._still_newest():
                return
            await self._storage.complete(checkpoint_id, metadata.dump())
            # Whoever is told of the completion commits, which only the newest run may do.
            if not self._still_newest():
                return
        except StateError as error:
            self._perform(self.coordinator.store_failed(self._now(), checkpoint_id, str(error)))
            return
        self._control.checkpoint_completed(checkpoint_id)
        self._perform(self.coordinator.stored(self._now(), checkpoint_id))
        try:
            await self._storage.discard_incomplete(checkpoint_id)
        except StateError as error:
            logger.warning("remains of former checkpoints could not be removed: %s", error)

    def _still_newest(self) -> bool:
        """Whether no newer run has begun; once one has, nothing is written or told any more."""
        if self._superseded:
            return False
        newest = self._folder.newest_epoch()
        if newest <= self.attempt.epoch:
            return True
        self._superseded = True
        self._storage_work.clear()
        self._control.fail_job(
            SupersededError(
                f"run {newest} of job {self._job_name!r} has begun in {self._folder.label};"
                f" this one (run {self.attempt.epoch}) ends and leaves the checkpoints to it"
            )
        )
        return False

    # -- effects ------------------------------------------------------------------------------

    def _now(self) -> int:
        return self._clock.now_ms()

    def _perform(self, effects: Iterable[Effect]) -> None:
        """Does effects in order; those of an event that an effect causes come behind."""
        self._effects.extend(effects)
        if self._performing:
            return
        self._performing = True
        try:
            while self._effects and not self._superseded:
                self._do(self._effects.popleft())
        finally:
            self._performing = False

    def _do(self, effect: Effect) -> None:
        control = self._control
        match effect:
            case CutEnumerators(checkpoint_id):
                self._waiting_cuts.append(checkpoint_id)
                self._cut_waiting()
            case TriggerSources(checkpoint_id, timestamp_ms, final):
                for subtask in self._subtasks:
                    control.trigger_checkpoint(subtask, checkpoint_id, timestamp_ms, final=final)
            case StoreMetadata() | Discard():
                self._storage_work.append(effect)
                self._changed.set()
            case NotifyComplete(checkpoint_id):
                self._ended(checkpoint_id)
                for subtask in self._subtasks:
                    control.notify_complete(subtask, checkpoint_id)
            case NotifyAborted(checkpoint_id, reason, detail):
                level = logging.WARNING if reason.is_failure else logging.INFO
                logger.log(level, "checkpoint %d was given up: %s", checkpoint_id, detail)
                self._ended(checkpoint_id)
                for subtask in self._subtasks:
                    control.notify_aborted(subtask, checkpoint_id)
            case ReleaseFinished():
                for subtask in self._subtasks:
                    control.release(subtask)
            case FinalCheckpointEnded(checkpoint_id, reason):
                control.final_checkpoint_ended(checkpoint_id, reason)
            case FailJob(reason):
                control.fail_job(CheckpointFailedError(reason))
            case WakeAt(timestamp_ms):
                self._wake_at(timestamp_ms)

    def _wake_at(self, timestamp_ms: int | None) -> None:
        if self._wake is not None:
            self._wake.cancel()
            self._wake = None
        if timestamp_ms is not None:
            self._wake = self._clock.call_at(timestamp_ms, self._tick)

    def _tick(self) -> None:
        self._wake = None
        self._perform(self.coordinator.tick(self._now()))

    def _ended(self, checkpoint_id: int) -> None:
        self._enumerator_states.pop(checkpoint_id, None)
        self._enumerators.ended(checkpoint_id)
        self._cut_waiting()

    def _cut_waiting(self) -> None:
        """Cuts the enumerators unless an assignment that one remembers has not been delivered."""
        while self._waiting_cuts and not self._enumerators.hold_back:
            checkpoint_id = self._waiting_cuts.popleft()
            if checkpoint_id not in self.coordinator.pending_ids:
                continue
            try:
                states = self._enumerators.cut(checkpoint_id)
            except USER_FAILURES as error:
                text = summary(error)
                logger.exception("checkpoint %d: an enumerator could not be cut", checkpoint_id)
                self._perform(self.coordinator.cut_failed(self._now(), checkpoint_id, text))
                continue
            self._enumerator_states[checkpoint_id] = states
            self._perform(self.coordinator.enumerators_cut(self._now(), checkpoint_id))


class SubtaskReplies:
    """Turns what a subtask reports into messages that carry its attempt."""

    def __init__(self, driver: CheckpointDriver, subtask: SubtaskId, control: TaskControl) -> None:
        self._driver = driver
        self._attempt = driver.attempt
        self._subtask = subtask
        self._control = control

    def acknowledged(self, checkpoint_id: int, file: StateFile | None, *, finished: bool) -> None:
        """State is stored, sinks are flushed; `finished`: the cut came after the last output."""
        self._driver.acknowledged(
            Acknowledgement(self._attempt, checkpoint_id, self._subtask, file, finished)
        )

    def declined(self, checkpoint_id: int, reason: str) -> None:
        """The part could not be taken or stored."""
        self._driver.declined(Decline(self._attempt, checkpoint_id, self._subtask, reason))

    def failed(self, error: BaseException) -> None:
        """The subtask itself fails."""
        self._control.fail_job(error)
