"""Barrier alignment over the channels of one subtask: pure, no I/O."""

from __future__ import annotations

from dataclasses import dataclass

from operators.elements import CheckpointBarrier


@dataclass(frozen=True, slots=True)
class Alignment:
    """What one event of the aligner means for the task.

    The task acts in this order: it passes `aborted` checkpoints on as cancelled, unblocks all
    channels if `unblock`, blocks the event's channel if `block`, and takes the checkpoint
    `completed`.
    """

    completed: CheckpointBarrier | None = None
    aborted: tuple[int, ...] = ()
    block: bool = False
    unblock: bool = False


NOTHING = Alignment()


class BarrierAligner:
    """Says when the barrier of a checkpoint has come in on every open channel (exactly-once).

    A channel whose barrier came is blocked until the others have theirs. A channel that ended
    counts as aligned. A barrier with a higher id overtakes an alignment that is under way: the
    older checkpoint is given up. Barriers and cancellations of checkpoints that are over are
    ignored (Flink: `SingleCheckpointBarrierHandler`, aligned).
    """

    def __init__(self, channels: int) -> None:
        if channels < 1:
            raise ValueError(f"an aligner needs at least one channel, got {channels}")
        self._open = set(range(channels))
        self._aligned: set[int] = set()
        self._pending: CheckpointBarrier | None = None
        self._newest_over = -1

    @property
    def pending_id(self) -> int | None:
        """The checkpoint whose barriers are being waited for, if any."""
        return None if self._pending is None else self._pending.checkpoint_id

    @property
    def all_ended(self) -> bool:
        """Whether no channel will bring a barrier any more."""
        return not self._open

    def barrier(self, channel: int, barrier: CheckpointBarrier) -> Alignment:
        """A barrier came in on an open, unblocked channel."""
        assert channel in self._open, f"barrier on ended channel {channel}"
        assert channel not in self._aligned, f"barrier on blocked channel {channel}"
        if barrier.checkpoint_id <= self._newest_over:
            return NOTHING
        aborted: tuple[int, ...] = ()
        pending = self._pending
        if pending is not None and barrier.checkpoint_id < pending.checkpoint_id:
            return NOTHING
        if pending is not None and barrier.checkpoint_id > pending.checkpoint_id:
            aborted = (self._give_up(),)
        self._pending = barrier
        self._aligned.add(channel)
        return self._outcome(aborted, block=True)

    def cancelled(self, channel: int, checkpoint_id: int) -> Alignment:
        """An upstream subtask will not send the barrier of `checkpoint_id`."""
        assert channel in self._open, f"cancellation on ended channel {channel}"
        if checkpoint_id <= self._newest_over:
            return NOTHING
        pending = self._pending
        if pending is not None and checkpoint_id < pending.checkpoint_id:
            return NOTHING
        aborted = [checkpoint_id]
        had_pending = pending is not None
        if had_pending:
            given_up = self._give_up()
            if given_up != checkpoint_id:
                aborted.insert(0, given_up)
        self._newest_over = checkpoint_id
        return Alignment(aborted=tuple(aborted), unblock=had_pending)

    def ended(self, channel: int) -> Alignment:
        """The channel gave its last element."""
        assert channel in self._open, f"channel {channel} ended twice"
        self._open.discard(channel)
        self._aligned.discard(channel)
        if self._pending is None:
            return NOTHING
        return self._outcome((), block=False)

    def _outcome(self, aborted: tuple[int, ...], *, block: bool) -> Alignment:
        if self._aligned >= self._open:
            completed = self._pending
            assert completed is not None
            self._newest_over = completed.checkpoint_id
            self._pending = None
            self._aligned.clear()
            return Alignment(completed=completed, aborted=aborted, unblock=True)
        return Alignment(aborted=aborted, block=block, unblock=bool(aborted))

    def _give_up(self) -> int:
        assert self._pending is not None
        checkpoint_id = self._pending.checkpoint_id
        self._newest_over = max(self._newest_over, checkpoint_id)
        self._pending = None
        self._aligned.clear()
        return checkpoint_id
