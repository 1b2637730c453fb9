"""Barrier alignment, as a pure class."""

from collections import deque

from hypothesis import given
from hypothesis import strategies as st

from operators.elements import CheckpointBarrier
from runtime.aligner import NOTHING, Alignment, BarrierAligner


def _barrier(checkpoint_id: int) -> CheckpointBarrier:
    return CheckpointBarrier(checkpoint_id, timestamp_ms=checkpoint_id)


def test_a_single_channel_aligns_at_once() -> None:
    """With one channel each barrier completes its checkpoint."""
    aligner = BarrierAligner(1)
    for checkpoint_id in (1, 2, 3):
        outcome = aligner.barrier(0, _barrier(checkpoint_id))
        assert outcome.completed == _barrier(checkpoint_id)
        assert not outcome.block


def test_a_channel_is_blocked_until_the_others_have_their_barrier() -> None:
    """The last barrier completes the checkpoint and unblocks."""
    aligner = BarrierAligner(3)
    assert aligner.barrier(0, _barrier(1)) == Alignment(block=True)
    assert aligner.barrier(2, _barrier(1)) == Alignment(block=True)
    assert aligner.pending_id == 1
    assert aligner.barrier(1, _barrier(1)) == Alignment(completed=_barrier(1), unblock=True)
    assert aligner.pending_id is None


def test_a_newer_barrier_gives_up_the_older_alignment() -> None:
    """The older checkpoint is aborted, its channels are unblocked, the newer one begins."""
    aligner = BarrierAligner(2)
    aligner.barrier(0, _barrier(1))
    outcome = aligner.barrier(1, _barrier(2))
    assert outcome == Alignment(aborted=(1,), block=True, unblock=True)
    assert aligner.barrier(0, _barrier(2)).completed == _barrier(2)


def test_a_late_barrier_of_an_older_checkpoint_is_ignored() -> None:
    """A barrier of a checkpoint that is over changes nothing."""
    aligner = BarrierAligner(2)
    aligner.barrier(0, _barrier(1))
    aligner.barrier(1, _barrier(2))
    aligner.barrier(0, _barrier(2))
    assert aligner.barrier(1, _barrier(1)) == NOTHING


def test_a_cancellation_aborts_and_unblocks() -> None:
    """A cancelled checkpoint under alignment is given up; its later barriers are ignored."""
    aligner = BarrierAligner(2)
    aligner.barrier(0, _barrier(1))
    assert aligner.cancelled(1, 1) == Alignment(aborted=(1,), unblock=True)
    assert aligner.barrier(0, _barrier(1)) == NOTHING
    assert aligner.cancelled(1, 1) == NOTHING


def test_a_cancellation_before_any_barrier_is_passed_on() -> None:
    """A checkpoint of which no barrier has come is aborted by its cancellation."""
    aligner = BarrierAligner(2)
    assert aligner.cancelled(0, 4) == Alignment(aborted=(4,))
    assert aligner.barrier(1, _barrier(4)) == NOTHING


def test_a_cancellation_of_a_newer_checkpoint_ends_the_pending_one() -> None:
    """Both the pending and the cancelled checkpoint are aborted, the older one first."""
    aligner = BarrierAligner(2)
    aligner.barrier(0, _barrier(1))
    assert aligner.cancelled(1, 2) == Alignment(aborted=(1, 2), unblock=True)


def test_an_ended_channel_counts_as_aligned() -> None:
    """The end of the last missing channel completes the checkpoint, later ones need the rest."""
    aligner = BarrierAligner(2)
    aligner.barrier(0, _barrier(1))
    assert aligner.ended(1) == Alignment(completed=_barrier(1), unblock=True)
    assert aligner.barrier(0, _barrier(2)).completed == _barrier(2)


def test_the_end_of_a_blocked_channel_cannot_complete_without_the_others() -> None:
    """With nothing pending the end of channels changes nothing."""
    aligner = BarrierAligner(2)
    assert aligner.ended(0) == NOTHING
    assert not aligner.all_ended
    assert aligner.ended(1) == NOTHING
    assert aligner.all_ended


@given(st.integers(1, 4), st.integers(1, 8), st.randoms(use_true_random=False))
def test_random_interleavings_align_each_checkpoint_once(channels, checkpoints, random) -> None:  # type: ignore[no-untyped-def]  # hypothesis
    """Whatever the order, every checkpoint completes once, in order, on its own records."""
    streams = [
        deque([*((c, r) for c in range(1, checkpoints + 1) for r in range(2)), ("end", 0)])
        for _ in range(channels)
    ]
    aligner = BarrierAligner(channels)
    blocked: set[int] = set()
    seen: list[list[int]] = [[] for _ in range(channels)]
    completed: list[int] = []
    while any(streams):
        ready = [i for i, s in enumerate(streams) if s and i not in blocked]
        assert ready, "deadlock"
        index = random.choice(ready)
        kind, record = streams[index].popleft()
        if kind == "end":
            outcome = aligner.ended(index)
        elif record == 0:
            seen[index].append(kind)
            continue
        else:
            outcome = aligner.barrier(index, _barrier(kind))
        assert outcome.aborted == ()
        if outcome.unblock:
            blocked.clear()
        if outcome.block:
            blocked.add(index)
        if outcome.completed is not None:
            completed.append(outcome.completed.checkpoint_id)
            assert all(max(s) <= completed[-1] for s in seen)
    assert completed == list(range(1, checkpoints + 1))
