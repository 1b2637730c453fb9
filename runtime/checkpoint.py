"""The checkpoint coordinator as a pure state machine: events with their time in, effects out.

One coordinator lives as long as the run; `start` and `halt` enclose each attempt. A checkpoint
goes through three phases::

    CUTTING    the enumerators' state is being taken      -> enumerators_cut
    WAITING    barriers are on their way through the job  -> acknowledged, by every subtask
    STORING    the metadata is being put in place         -> stored

and is complete, or it is aborted in any of them. A finished subtask goes on acknowledging with
its final state until all subtasks are finished and one checkpoint covers that; then all leave
(Flink lets them leave one by one, which loses the union list state of a finished source).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field, replace
from enum import Enum

from runtime.checkpoint_messages import (
    AbortReason,
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
from runtime.checkpoint_schedule import CheckpointSchedule
from runtime.checkpoint_statistics import CheckpointCounters, CheckpointStatistics
from runtime.survival_settings import TOLERABLE_FAILURES_KEY, CheckpointSettings


class _Phase(Enum):
    CUTTING = "cutting"
    WAITING = "waiting"
    STORING = "storing"


class _Stop(Enum):
    """How far a stop with a final checkpoint has come."""

    NO = "no"
    REQUESTED = "requested"
    PENDING = "pending"
    ENDED = "ended"


@dataclass(slots=True)
class _Pending:
    checkpoint_id: int
    attempt: AttemptId
    triggered_ms: int
    final: bool
    phase: _Phase = _Phase.CUTTING
    acknowledgements: dict[SubtaskId, Acknowledgement] = field(default_factory=dict)


class CheckpointCoordinator:
    """Decides when checkpoints begin, complete and fail; does nothing itself.

    Every method returns the effects of that event, in the order in which they are to be done.
    `next_checkpoint_id` comes from the job folder, `retained` are the complete checkpoints that
    are already there, ascending.
    """

    def __init__(
        self,
        settings: CheckpointSettings,
        next_checkpoint_id: int = 1,
        retained: Iterable[int] = (),
    ) -> None:
        self.settings = settings
        self.next_checkpoint_id = next_checkpoint_id
        self._retained = list(retained)
        self._attempt: AttemptId | None = None
        self._subtasks: frozenset[SubtaskId] = frozenset()
        self._finished: set[SubtaskId] = set()
        self._pending: dict[int, _Pending] = {}
        self._schedule = CheckpointSchedule(settings)
        self._released = False
        self._stop = _Stop.NO
        self._wake_at: int | None = None
        self._counters = CheckpointCounters(max(self._retained, default=None))
        self._effects: list[Effect] = []
        """Of the event at hand."""

    # -- the attempt --------------------------------------------------------------------------

    def start(
        self, now_ms: int, attempt: AttemptId, subtasks: Collection[SubtaskId]
    ) -> list[Effect]:
        """An attempt with these subtasks runs; the first periodic trigger is an interval away."""
        if self._attempt is not None:
            raise RuntimeError(f"attempt {self._attempt} has not been halted")
        self._attempt = attempt
        self._subtasks = frozenset(subtasks)
        self._finished.clear()
        self._released = False
        self._stop = _Stop.NO
        self._counters.attempt_started()
        self._schedule.start(now_ms)
        return self._done(now_ms)

    def halt(self, now_ms: int) -> list[Effect]:
        """The attempt ended: what is pending is discarded.

        A checkpoint whose metadata is being stored stays: `stored` may follow, and it then
        counts, so that the caller has to wait for it before it chooses where to restore from.
        """
        self._attempt = None
        self._schedule.stop()
        for pending in self._unstored():
            self._abort(pending, AbortReason.HALTED)
        return self._done(now_ms)

    def stop_periodic(self, now_ms: int) -> list[Effect]:
        """No periodic checkpoint will begin any more; pending ones go on."""
        self._schedule.stop_periodic()
        return self._done(now_ms)

    # -- requests -----------------------------------------------------------------------------

    def tick(self, now_ms: int) -> list[Effect]:
        """Time has passed: expires and triggers what is due."""
        return self._done(now_ms)

    def request_checkpoint(self, now_ms: int) -> list[Effect]:
        """A checkpoint begins as soon as `max_concurrent` lets it, whatever interval and pause."""
        if self._attempt is not None and self._stop is _Stop.NO:
            self._schedule.request()
        return self._done(now_ms)

    def request_final(self, now_ms: int) -> list[Effect]:
        """The job stops: a last checkpoint begins at once, in place of those still pending.

        Ends with `FinalCheckpointEnded`, whatever happens; asked again it does nothing.
        """
        if self._attempt is None or self._stop is not _Stop.NO:
            return self._done(now_ms)
        self._schedule.stop()
        if self._released:
            self._end_stop(self.latest_completed_id, "the job has finished by itself")
            return self._done(now_ms)
        self._stop = _Stop.REQUESTED
        for pending in self._unstored():
            self._abort(pending, AbortReason.STOPPING)
        return self._done(now_ms)

    # -- what the tasks say -------------------------------------------------------------------

    def acknowledged(self, now_ms: int, message: Acknowledgement) -> list[Effect]:
        """A subtask has its part in safety; a message that fits nothing is dropped."""
        pending = self._pending_of(message)
        if pending is None or message.subtask in pending.acknowledgements:
            self._counters.dropped()
        else:
            pending.acknowledgements[message.subtask] = message
        return self._done(now_ms)

    def declined(self, now_ms: int, message: Decline) -> list[Effect]:
        """A subtask failed its part; a message that fits nothing is dropped."""
        pending = self._pending_of(message)
        if pending is None:
            self._counters.dropped()
        else:
            self._abort(pending, AbortReason.DECLINED, message.reason)
        return self._done(now_ms)

    def subtask_finished(self, now_ms: int, attempt: AttemptId, subtask: SubtaskId) -> list[Effect]:
        """A subtask has put out its last element; it stays and goes on acknowledging.

        With the last one a checkpoint begins at once, so that the job need not wait for the
        interval to end. Without periodic checkpoints they may leave when all are finished.
        """
        if attempt != self._attempt or subtask not in self._subtasks:
            self._counters.dropped()
            return self._done(now_ms)
        self._finished.add(subtask)
        if self._finished == self._subtasks and self._stop is _Stop.NO and not self._released:
            if self.settings.interval_ms is None:
                self._release()
            else:
                self._schedule.request()
        return self._done(now_ms)

    def may_leave(self, subtask: SubtaskId) -> bool:
        """Whether a subtask that is finished needs to wait no longer."""
        return self._released and subtask in self._subtasks

    # -- what the driver says -----------------------------------------------------------------

    def enumerators_cut(self, now_ms: int, checkpoint_id: int) -> list[Effect]:
        """The coordinator-side state of a checkpoint is taken: the tasks follow."""
        pending = self._pending.get(checkpoint_id)
        if pending is not None and pending.phase is _Phase.CUTTING:
            pending.phase = _Phase.WAITING
            self._put(TriggerSources(checkpoint_id, pending.triggered_ms, pending.final))
        return self._done(now_ms)

    def cut_failed(self, now_ms: int, checkpoint_id: int, error: str) -> list[Effect]:
        """The coordinator-side state could not be taken."""
        pending = self._pending.get(checkpoint_id)
        if pending is not None and pending.phase is _Phase.CUTTING:
            self._abort(pending, AbortReason.CUT_FAILED, error)
        return self._done(now_ms)

    def stored(self, now_ms: int, checkpoint_id: int) -> list[Effect]:
        """The metadata is durably in place: the checkpoint is complete."""
        pending = self._storing
        if pending is None or pending.checkpoint_id != checkpoint_id:
            raise ValueError(f"checkpoint {checkpoint_id} is not being stored")
        del self._pending[checkpoint_id]
        self._retained.append(checkpoint_id)
        files = [ack.file for ack in pending.acknowledgements.values() if ack.file is not None]
        size = sum(file.size for file in files)
        self._schedule.completed(now_ms)
        self._counters.completed(checkpoint_id, pending.triggered_ms, now_ms, size)
        if pending.attempt == self._attempt:
            self._completed(pending)
        for surplus in self._retained[: -self.settings.retained]:
            self._put(Discard(surplus))
        del self._retained[: -self.settings.retained]
        return self._done(now_ms)

    def store_failed(self, now_ms: int, checkpoint_id: int, error: str) -> list[Effect]:
        """The metadata could not be put in place; what may be there of it is discarded."""
        pending = self._storing
        if pending is None or pending.checkpoint_id != checkpoint_id:
            raise ValueError(f"checkpoint {checkpoint_id} is not being stored")
        self._abort(pending, AbortReason.STORE_FAILED, error)
        return self._done(now_ms)

    # -- what can be seen ---------------------------------------------------------------------

    @property
    def latest_completed_id(self) -> int | None:
        """The newest complete checkpoint, of this run or found at its start."""
        return self._counters.statistics.latest_completed_id

    @property
    def pending_ids(self) -> tuple[int, ...]:
        """Checkpoints that are neither complete nor aborted, ascending."""
        return tuple(sorted(self._pending))

    @property
    def retained_ids(self) -> tuple[int, ...]:
        """Complete checkpoints that are kept, ascending."""
        return tuple(self._retained)

    def statistics(self) -> CheckpointStatistics:
        """The counters of the run so far."""
        return replace(self._counters.statistics, pending=len(self._pending))

    # -- inside -------------------------------------------------------------------------------

    @property
    def _has_place(self) -> bool:
        limit = 1 if self.settings.min_pause_ms else self.settings.max_concurrent
        return len(self._pending) < limit

    @property
    def _storing(self) -> _Pending | None:
        return next((p for p in self._pending.values() if p.phase is _Phase.STORING), None)

    def _unstored(self) -> list[_Pending]:
        return [p for p in self._pending.values() if p.phase is not _Phase.STORING]

    def _pending_of(self, message: Acknowledgement | Decline) -> _Pending | None:
        """The checkpoint that waits for this message, if there is one."""
        pending = self._pending.get(message.checkpoint_id)
        if message.attempt != self._attempt or message.subtask not in self._subtasks:
            return None
        return pending if pending is not None and pending.phase is _Phase.WAITING else None

    def _completed(self, pending: _Pending) -> None:
        """What follows from a completion within the attempt that took the checkpoint."""
        for earlier in self._unstored():
            if earlier.checkpoint_id < pending.checkpoint_id:
                self._abort(earlier, AbortReason.SUBSUMED)
        self._put(NotifyComplete(pending.checkpoint_id))
        if pending.final:
            self._end_stop(pending.checkpoint_id)
            self._release()
        elif all(ack.finished for ack in pending.acknowledgements.values()):
            if self._stop in {_Stop.REQUESTED, _Stop.PENDING}:
                self._end_stop(pending.checkpoint_id)
            for needless in self._unstored():
                self._abort(needless, AbortReason.STOPPING)
            self._release()

    def _release(self) -> None:
        self._released = True
        self._schedule.stop()
        self._put(ReleaseFinished())

    def _end_stop(self, checkpoint_id: int | None, reason: str = "") -> None:
        self._stop = _Stop.ENDED
        self._put(FinalCheckpointEnded(checkpoint_id, reason))

    def _abort(self, pending: _Pending, reason: AbortReason, detail: str = "") -> None:
        """Gives a checkpoint up; the tasks of its attempt are told if they still run."""
        checkpoint_id = pending.checkpoint_id
        del self._pending[checkpoint_id]
        text = f"{reason.value}: {detail}" if detail else reason.value
        self._counters.aborted()
        if pending.attempt == self._attempt:
            self._put(NotifyAborted(checkpoint_id, reason, text))
        self._put(Discard(checkpoint_id))
        if reason.is_failure:
            self._failed(pending, f"checkpoint {checkpoint_id} failed: {text}")
        elif pending.final and self._stop is _Stop.PENDING:
            self._end_stop(None, text)

    def _failed(self, pending: _Pending, text: str) -> None:
        if pending.attempt != self._attempt:
            return
        in_a_row = self._counters.failed(text)
        tolerated = self.settings.tolerable_failures
        if pending.final:
            self._end_stop(None, text)
        elif in_a_row > tolerated and self._stop is _Stop.NO:
            self._schedule.stop()
            row = f"failure {in_a_row} in a row, tolerated are {tolerated}"
            self._put(FailJob(f"{text} ({row}: {TOLERABLE_FAILURES_KEY})"))

    def _done(self, now_ms: int) -> list[Effect]:
        """Does what time and the new state ask for; gives the effects of the whole event."""
        self._expire(now_ms)
        self._store_next()
        self._trigger_due(now_ms)
        wake_at = self._next_wake(now_ms)
        if wake_at != self._wake_at:
            self._wake_at = wake_at
            self._put(WakeAt(wake_at))
        effects, self._effects = self._effects, []
        return effects

    def _expire(self, now_ms: int) -> None:
        for pending in self._unstored():
            missing = len(self._subtasks) - len(pending.acknowledgements)
            if missing and now_ms >= pending.triggered_ms + self.settings.timeout_ms:
                detail = f"{missing} of {len(self._subtasks)} subtasks did not answer"
                limit = f"within {self.settings.timeout_ms} ms"
                self._abort(pending, AbortReason.EXPIRED, f"{detail} {limit}")

    def _store_next(self) -> None:
        """Hands out the lowest fully acknowledged checkpoint, one at a time and so in order."""
        if self._storing is not None:
            return
        for checkpoint_id in sorted(self._pending):
            pending = self._pending[checkpoint_id]
            complete = pending.acknowledgements.keys() == self._subtasks
            if pending.phase is _Phase.WAITING and complete:
                pending.phase = _Phase.STORING
                acks = dict(pending.acknowledgements)
                began = pending.triggered_ms
                self._put(StoreMetadata(checkpoint_id, pending.attempt, began, acks))
                return

    def _trigger_due(self, now_ms: int) -> None:
        if self._attempt is None or self._released:
            return
        if self._stop is _Stop.REQUESTED:
            self._stop = _Stop.PENDING
            self._begin(now_ms, final=True)
        elif self._has_place and self._schedule.is_due(now_ms):
            self._begin(now_ms, final=False)

    def _begin(self, now_ms: int, *, final: bool) -> None:
        if self._attempt is None:
            raise RuntimeError("no attempt runs")
        self._schedule.triggered(now_ms)
        checkpoint_id = self.next_checkpoint_id
        self.next_checkpoint_id += 1
        self._pending[checkpoint_id] = _Pending(checkpoint_id, self._attempt, now_ms, final)
        self._counters.triggered()
        self._put(CutEnumerators(checkpoint_id))

    def _next_wake(self, now_ms: int) -> int | None:
        times = [p.triggered_ms + self.settings.timeout_ms for p in self._unstored()]
        due = self._schedule.periodic_at
        if due is not None and self._has_place:
            times.append(due)
        # A fully acknowledged checkpoint that waits for its turn to be stored needs no waking.
        return min((time for time in times if time > now_ms), default=None)

    def _put(self, effect: Effect) -> None:
        self._effects.append(effect)
