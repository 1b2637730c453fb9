"""The checkpoint coordinator under random interleavings of all its events."""

from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.checkpoint import CheckpointCoordinator
from runtime.checkpoint_messages import (
    Acknowledgement,
    AttemptId,
    CutEnumerators,
    Decline,
    Discard,
    Effect,
    FinalCheckpointEnded,
    NotifyAborted,
    NotifyComplete,
    ReleaseFinished,
    StoreMetadata,
    SubtaskId,
    TriggerSources,
    WakeAt,
)
from runtime.survival_settings import CheckpointSettings

SUBTASKS = [SubtaskId(1, 0), SubtaskId(2, 0), SubtaskId(2, 1)]

Step = tuple[str, int, int]


class Watched:
    """A coordinator, the world around it and what must hold of the two after each event."""

    def __init__(self, settings: CheckpointSettings) -> None:
        self.settings = settings
        self.coordinator = CheckpointCoordinator(settings, 1)
        self.now = 0
        self.number = 1
        self.begun: dict[int, AttemptId] = {}
        self.triggered: set[int] = set()
        self.acked: dict[int, set[SubtaskId]] = {}
        self.finished: set[SubtaskId] = set()
        self.cutting: list[int] = []
        self.storing: list[int] = []
        self.completed: list[int] = []
        self.gone: set[int] = set()
        self.notified: list[int] = []
        self.final_ended = 0
        self.wake: int | None = None
        self.take(self.coordinator.start(0, self.attempt, SUBTASKS))

    @property
    def attempt(self) -> AttemptId:
        return AttemptId(1, self.number)

    def take(self, effects: Iterable[Effect]) -> None:
        for effect in effects:
            match effect:
                case CutEnumerators(checkpoint_id):
                    assert checkpoint_id > max(self.begun, default=0)
                    self.begun[checkpoint_id] = self.attempt
                    self.acked[checkpoint_id] = set()
                    self.cutting.append(checkpoint_id)
                case TriggerSources(checkpoint_id):
                    assert self.begun[checkpoint_id] == self.attempt
                    self.triggered.add(checkpoint_id)
                case StoreMetadata(checkpoint_id, attempt):
                    assert not self.storing
                    assert self.acked[checkpoint_id] == set(SUBTASKS)
                    assert attempt == self.begun[checkpoint_id]
                    self.storing.append(checkpoint_id)
                case NotifyComplete(checkpoint_id):
                    assert self.completed[-1] == checkpoint_id
                    assert self.begun[checkpoint_id] == self.attempt
                    self.notified.append(checkpoint_id)
                case NotifyAborted(checkpoint_id):
                    assert checkpoint_id not in self.completed
                    assert self.begun[checkpoint_id] == self.attempt
                case Discard(checkpoint_id):
                    assert checkpoint_id not in self.gone
                    assert checkpoint_id not in self.completed[-self.settings.retained :]
                    self.gone.add(checkpoint_id)
                case FinalCheckpointEnded():
                    self.final_ended += 1
                case ReleaseFinished():
                    assert self.notified
                case WakeAt(timestamp_ms):
                    self.wake = timestamp_ms
        self.check()

    def check(self) -> None:
        pending = self.coordinator.pending_ids
        assert len(pending) <= self.settings.max_concurrent + 1
        assert self.completed == sorted(set(self.completed))
        assert set(pending) | set(self.completed) | self.gone == set(self.begun)
        assert not set(pending) & (set(self.completed) | self.gone)
        if any(checkpoint_id not in self.storing for checkpoint_id in pending):
            assert self.wake is not None

    def step(self, kind: str, one: int, other: int) -> None:
        coordinator, now = self.coordinator, self.now
        checkpoint_id = max(self.begun, default=1) - max(0, one - 12) % 3
        subtask = SUBTASKS[other % 3]
        attempt = AttemptId(1, self.number - (one in {7, 15}))
        match kind:
            case "tick":
                self.now += 100 * one
                self.take(coordinator.tick(self.now))
            case "ack":
                waiting = checkpoint_id in self.triggered and checkpoint_id not in self.storing
                if waiting and attempt == self.attempt == self.begun[checkpoint_id]:
                    self.acked[checkpoint_id].add(subtask)
                done = subtask in self.finished
                message = Acknowledgement(attempt, checkpoint_id, subtask, None, done)
                self.take(coordinator.acknowledged(now, message))
            case "decline":
                self.take(coordinator.declined(now, Decline(attempt, checkpoint_id, subtask, "-")))
            case "finish":
                self.finished.add(subtask)
                self.take(coordinator.subtask_finished(now, self.attempt, subtask))
            case "cut" if self.cutting:
                self.take(coordinator.enumerators_cut(now, self.cutting.pop(0)))
            case "cut fails" if self.cutting:
                self.take(coordinator.cut_failed(now, self.cutting.pop(0), "-"))
            case "stored" if self.storing:
                stored = self.storing.pop()
                self.completed.append(stored)
                self.take(coordinator.stored(now, stored))
            case "store fails" if self.storing:
                self.take(coordinator.store_failed(now, self.storing.pop(), "-"))
            case "restart":
                self.take(coordinator.halt(now))
                self.number += 1
                self.finished.clear()
                self.final_ended = 0
                self.take(coordinator.start(now, self.attempt, SUBTASKS))
            case "request":
                self.take(coordinator.request_checkpoint(now))
            case "final":
                self.take(coordinator.request_final(now))


OFTEN = ["ack"] * 12 + ["cut"] * 4 + ["tick"] * 4 + ["stored"] * 4
SELDOM = ["decline", "finish", "cut fails", "store fails", "restart", "request"]
STEPS = st.lists(
    st.tuples(st.sampled_from(OFTEN + SELDOM), st.integers(0, 18), st.integers(0, 2)),
    min_size=60,
    max_size=150,
)


@given(
    steps=STEPS,
    max_concurrent=st.integers(1, 3),
    retained=st.integers(1, 3),
    tolerable_failures=st.integers(0, 3),
)
def test_no_interleaving_breaks_the_protocol(
    steps: list[Step], max_concurrent: int, retained: int, tolerable_failures: int
) -> None:
    """Ids rise, nothing completes without all acknowledgements of its own attempt, and so on."""
    watched = Watched(
        CheckpointSettings(
            interval_ms=500,
            timeout_ms=1_500,
            max_concurrent=max_concurrent,
            retained=retained,
            tolerable_failures=tolerable_failures,
        )
    )
    for step in steps:
        watched.step(*step)
    watched.step("final", 0, 0)
    for step in steps:
        watched.step(*step)


@given(steps=STEPS)
def test_a_stop_is_always_answered_once(steps: list[Step]) -> None:
    """Whatever came before, a final checkpoint ends: when it expires or the storage answers."""
    watched = Watched(CheckpointSettings(interval_ms=500, timeout_ms=1_500, tolerable_failures=9))
    for step in steps:
        watched.step(*step)

    watched.take(watched.coordinator.request_final(watched.now))
    watched.step("tick", 20, 0)
    while watched.storing:
        watched.step("stored", 0, 0)

    assert watched.final_ended == 1


@pytest.mark.parametrize("lost", SUBTASKS, ids=str)
def test_every_subtask_is_needed(lost: SubtaskId) -> None:
    """Whoever is missing, the checkpoint waits for it."""
    watched = Watched(CheckpointSettings(interval_ms=500))
    watched.step("tick", 5, 0)
    watched.step("cut", 0, 0)
    for index, subtask in enumerate(SUBTASKS):
        if subtask != lost:
            watched.step("ack", 3, index)
    before = list(watched.storing)

    watched.step("ack", 3, SUBTASKS.index(lost))

    assert (before, watched.storing) == ([], [1])
