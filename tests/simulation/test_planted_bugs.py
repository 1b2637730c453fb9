"""The checker finds what it is there for: each test breaks the runtime in one place."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Sequence

import pytest

from operators.sink_operator import SinkOperator
from runtime.checkpoint import CheckpointCoordinator
from runtime.gate import InputGate
from runtime.simulation_faults import Faults
from runtime.simulation_loop import SimulationError
from runtime.subtask_checkpoints import SubtaskCheckpoints
from statebackends.operator_state import OperatorStateBackend
from statebackends.storage import StateFile
from tests.simulation.test_exactly_once import simulate

SEEDS = 60
FAULTS = Faults(crashes=3, failures=3)


def assert_found() -> None:
    """One of the first seeds fails, for the output that it gives or for an error."""
    for seed in range(SEEDS):
        try:
            simulate(seed, FAULTS)
        except (AssertionError, SimulationError):
            return
    pytest.fail(f"no seed of {SEEDS} has noticed anything")


def test_a_snapshot_that_shares_live_state_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """State that is serialised later than the cut holds records from behind the barrier."""
    begin = SubtaskCheckpoints._begin_writing

    def later(
        self: SubtaskCheckpoints, checkpoint_id: int, cuts: Sequence[object]
    ) -> tuple[Callable[[], Coroutine[object, object, StateFile | None]], bool]:
        async def write() -> StateFile | None:
            writing, _ = begin(self, checkpoint_id, cuts)  # type: ignore[arg-type]  # private cuts
            return await writing()

        return write, False

    monkeypatch.setattr(SubtaskCheckpoints, "_begin_writing", later)
    assert_found()


def test_barriers_that_are_not_aligned_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without blocking, records from behind a barrier are in the state and come again."""
    monkeypatch.setattr(InputGate, "block", lambda _gate, _channel: None)
    assert_found()


def test_positions_that_are_not_restored_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """A source that begins again counts twice."""
    monkeypatch.setattr(OperatorStateBackend, "restore", lambda *_: None)
    assert_found()


def test_a_commit_before_the_checkpoint_is_complete_is_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What is committed at the barrier is committed again if the checkpoint fails."""
    snapshot = SinkOperator.snapshot_state

    def at_once(self: SinkOperator, checkpoint_id: int) -> None:
        snapshot(self, checkpoint_id)
        self.notify_checkpoint_complete(checkpoint_id)

    monkeypatch.setattr(SinkOperator, "snapshot_state", at_once)
    assert_found()


def test_a_checkpoint_without_all_acknowledgements_is_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """One that is stored when most have answered lacks the state of the others."""
    store_next = CheckpointCoordinator._store_next

    def hasty(self: CheckpointCoordinator) -> None:
        subtasks = self._subtasks
        for pending in self._pending.values():
            if len(pending.acknowledgements) == len(subtasks) - 1:
                self._subtasks = frozenset(pending.acknowledgements)
        store_next(self)
        self._subtasks = subtasks

    monkeypatch.setattr(CheckpointCoordinator, "_store_next", hasty)
    assert_found()


def test_commits_that_a_restore_forgets_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """A crash between the end of a checkpoint and its commits loses them, then."""
    initialize = SinkOperator.initialize_state

    def forgetful(self: SinkOperator) -> None:
        initialize(self)
        self._uncommitted.clear()

    monkeypatch.setattr(SinkOperator, "initialize_state", forgetful)
    assert_found()
