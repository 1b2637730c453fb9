"""The checkpoint coordinator, at the end of a job."""

from runtime.checkpoint import CheckpointCoordinator
from runtime.checkpoint_messages import (
    AbortReason,
    FinalCheckpointEnded,
    ReleaseFinished,
    TriggerSources,
)
from runtime.survival_settings import CheckpointSettings
from tests.runtime.checkpoint_run import ATTEMPT, LEFT, RIGHT, SOURCE, SUBTASKS, Run


def test_after_the_last_subtask_finished_a_checkpoint_begins_at_once() -> None:
    """A bounded job does not wait for its interval; all leave when it is complete."""
    run = Run()
    run.now = 300
    run.finish(SOURCE, LEFT)
    before = run.ids(TriggerSources)

    run.finish(RIGHT)
    leaves_early = run.released()
    run.ack(1, *SUBTASKS, finished=True)

    assert (before, run.ids(TriggerSources)) == ([], [1])
    assert (leaves_early, run.released()) == (False, True)
    assert run.coordinator.may_leave(LEFT)


def test_a_checkpoint_cut_before_the_end_of_a_subtask_releases_nobody() -> None:
    """Output after the cut is not covered, so another checkpoint follows at once."""
    run = Run().at(1_000).ack(1, SOURCE).finish(*SUBTASKS).ack(1, LEFT, RIGHT, finished=True)
    early = run.released()

    run.ack(2, *SUBTASKS, finished=True)

    assert run.ids(TriggerSources) == [1, 2]
    assert (early, run.released()) == (False, True)


def test_nothing_begins_after_the_release() -> None:
    """The job is over, no interval runs any more."""
    run = Run().finish(*SUBTASKS).ack(1, *SUBTASKS, finished=True).at(50_000)

    assert run.ids(TriggerSources) == [1]


def test_without_periodic_checkpoints_finished_subtasks_leave_at_once() -> None:
    """There is nothing to wait for."""
    coordinator = CheckpointCoordinator(CheckpointSettings(interval_ms=None))
    coordinator.start(0, ATTEMPT, [SOURCE, LEFT])
    first = coordinator.subtask_finished(10, ATTEMPT, SOURCE)

    last = coordinator.subtask_finished(20, ATTEMPT, LEFT)

    assert (first, last) == ([], [ReleaseFinished()])


def test_the_final_checkpoint_takes_the_place_of_a_pending_one() -> None:
    """A stop does not wait in line; the periodic ones end with it."""
    run = Run().at(1_000)
    run.do(run.coordinator.request_final(1_100))
    run.now = 1_200
    run.ack(2, *SUBTASKS).at(60_000)

    triggers = [(e.checkpoint_id, e.final) for e in run.effects if isinstance(e, TriggerSources)]
    assert triggers == [(1, False), (2, True)]
    assert run.aborted() == [(1, AbortReason.STOPPING)]
    assert run.ids(FinalCheckpointEnded) == [2]
    assert run.released()


def test_a_failed_final_checkpoint_says_so_and_does_not_fail_the_job() -> None:
    """The caller leaves without it."""
    run = Run()
    run.do(run.coordinator.request_final(100))
    run.decline(1)

    ended = [e for e in run.effects if isinstance(e, FinalCheckpointEnded)]
    assert [e.checkpoint_id for e in ended] == [None]
    assert "no room on the disk" in ended[0].reason
    assert run.failures() == []


def test_a_stop_asked_for_twice_takes_one_final_checkpoint() -> None:
    """The second request changes nothing."""
    run = Run()
    run.do(run.coordinator.request_final(100))
    run.do(run.coordinator.request_final(200))

    assert run.ids(TriggerSources) == [1]


def test_a_stop_of_a_job_that_just_finished_ends_with_its_last_checkpoint() -> None:
    """A checkpoint of the finished job that was being stored makes the final one needless."""
    run = Run(storing=False).finish(*SUBTASKS).ack(1, *SUBTASKS, finished=True)
    run.do(run.coordinator.request_final(100))

    run.do(run.coordinator.stored(200, 1))

    assert run.ids(FinalCheckpointEnded) == [1]
    assert run.aborted() == [(2, AbortReason.STOPPING)]
    assert run.released()
