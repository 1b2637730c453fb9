"""The checkpoint coordinator, event by event."""

import pytest

from runtime.checkpoint import CheckpointCoordinator
from runtime.checkpoint_messages import (
    AbortReason,
    Acknowledgement,
    AttemptId,
    CutEnumerators,
    Discard,
    NotifyAborted,
    NotifyComplete,
    StoreMetadata,
    SubtaskId,
    TriggerSources,
    WakeAt,
)
from runtime.survival_settings import CheckpointSettings
from tests.runtime.checkpoint_run import ATTEMPT, LEFT, RIGHT, SOURCE, SUBTASKS, Run


def test_a_checkpoint_completes_when_every_subtask_has_acknowledged() -> None:
    """The order is enumerators, sources, metadata, notice; nothing comes before the last ack."""
    run = Run().at(1_000).ack(1, SOURCE, LEFT)
    before = [type(e) for e in run.effects if not isinstance(e, WakeAt)]

    run.ack(1, RIGHT)

    after = [type(e) for e in run.effects if not isinstance(e, WakeAt)]
    assert before == [CutEnumerators, TriggerSources]
    assert after == [CutEnumerators, TriggerSources, StoreMetadata, NotifyComplete]
    assert run.coordinator.latest_completed_id == 1


def test_the_sources_are_triggered_only_after_the_enumerators_were_cut() -> None:
    """State on the coordinator's side is older than every barrier of the same checkpoint."""
    coordinator = CheckpointCoordinator(CheckpointSettings(interval_ms=1_000))
    coordinator.start(0, ATTEMPT, SUBTASKS)

    begun = coordinator.tick(1_000)
    cut = coordinator.enumerators_cut(1_003, 1)

    assert CutEnumerators(1) in begun
    assert not any(isinstance(effect, TriggerSources) for effect in begun)
    assert TriggerSources(1, 1_000, final=False) in cut


def test_a_failed_cut_of_an_enumerator_fails_the_checkpoint() -> None:
    """Without the coordinator's own state no barrier is sent."""
    coordinator = CheckpointCoordinator(CheckpointSettings(interval_ms=1_000, tolerable_failures=1))
    coordinator.start(0, ATTEMPT, SUBTASKS)
    coordinator.tick(1_000)

    effects = coordinator.cut_failed(1_001, 1, "not serialisable")

    assert [e.reason for e in effects if isinstance(e, NotifyAborted)] == [AbortReason.CUT_FAILED]
    assert coordinator.enumerators_cut(1_002, 1) == []


def test_metadata_gets_the_acknowledgement_of_each_subtask() -> None:
    """What is stored names every subtask, its file and whether it was finished."""
    run = Run(storing=False).at(1_000).ack(1, SOURCE, finished=True).ack(1, LEFT, RIGHT)

    stored = next(e for e in run.effects if isinstance(e, StoreMetadata))

    assert stored.attempt == ATTEMPT
    assert stored.timestamp_ms == 1_000
    assert {s: a.finished for s, a in stored.acknowledgements.items()} == {
        SOURCE: True,
        LEFT: False,
        RIGHT: False,
    }


def test_no_notice_is_sent_before_the_metadata_is_in_place() -> None:
    """Completion is what the storage says, not what the tasks say."""
    run = Run(storing=False).at(1_000).ack(1, *SUBTASKS)
    before = run.ids(NotifyComplete)

    run.do(run.coordinator.stored(1_100, 1))

    assert (before, run.ids(NotifyComplete)) == ([], [1])


def test_the_same_acknowledgement_twice_counts_once() -> None:
    """A repeated message is dropped and counted."""
    run = Run().at(1_000).ack(1, SOURCE, SOURCE, LEFT)

    assert run.ids(StoreMetadata) == []
    assert run.coordinator.statistics().dropped_messages == 1


@pytest.mark.parametrize(
    ("attempt", "checkpoint_id", "subtask"),
    [
        (AttemptId(2, 1), 1, RIGHT),
        (AttemptId(3, 0), 1, RIGHT),
        (ATTEMPT, 7, RIGHT),
        (ATTEMPT, 1, SubtaskId(9, 0)),
    ],
    ids=["other epoch", "other attempt", "unknown checkpoint", "unknown subtask"],
)
def test_a_message_that_fits_nothing_is_dropped(
    attempt: AttemptId, checkpoint_id: int, subtask: SubtaskId
) -> None:
    """Only the attempt and the subtasks that the checkpoint was begun with can complete it."""
    run = Run().at(1_000).ack(1, SOURCE, LEFT).ack(checkpoint_id, subtask, attempt=attempt)

    assert run.ids(StoreMetadata) == []
    assert run.coordinator.statistics().dropped_messages == 1


def test_an_acknowledgement_of_a_dead_attempt_completes_nothing() -> None:
    """After a restart the last missing message of before comes too late."""
    run = Run().at(1_000).ack(1, SOURCE, LEFT)
    run.do(run.coordinator.halt(1_100))
    run.do(run.coordinator.start(1_200, AttemptId(3, 2), SUBTASKS))

    run.ack(1, RIGHT)

    assert run.ids(StoreMetadata) == []
    assert run.ids(Discard) == [1]


def test_ids_go_on_rising_in_the_next_attempt() -> None:
    """An id is used once, whatever became of its checkpoint."""
    run = Run(next_id=41).at(1_000)
    run.do(run.coordinator.halt(1_100))
    run.do(run.coordinator.start(1_200, AttemptId(3, 2), SUBTASKS))
    run.at(2_200)

    assert run.ids(TriggerSources) == [41, 42]


def test_a_halted_attempt_is_told_nothing_any_more() -> None:
    """Pending checkpoints are discarded, and there is no task left to notify."""
    run = Run().at(1_000)
    run.do(run.coordinator.halt(1_100))

    assert run.aborted() == []
    assert run.effects[-2:] == [Discard(1), WakeAt(None)]


def test_a_checkpoint_that_was_being_stored_at_the_halt_still_counts() -> None:
    """The next attempt restores from it; tasks of another attempt get no notice of it."""
    run = Run(storing=False).at(1_000).ack(1, *SUBTASKS)
    run.do(run.coordinator.halt(1_100))

    run.do(run.coordinator.stored(1_150, 1))

    assert run.coordinator.latest_completed_id == 1
    assert run.ids(NotifyComplete) == []
    assert run.ids(Discard) == []


def test_the_interval_runs_from_trigger_to_trigger() -> None:
    """A checkpoint that takes a while does not push the next one back."""
    run = Run().at(999).at(1_000)
    run.now = 1_400
    run.ack(1, *SUBTASKS).at(1_999).at(2_000)

    assert [e.timestamp_ms for e in run.effects if isinstance(e, TriggerSources)] == [1_000, 2_000]


def test_the_pause_is_kept_from_the_completion() -> None:
    """A slow checkpoint leaves the job alone for a while before the next one."""
    run = Run(min_pause_ms=800).at(1_000)
    run.now = 1_900
    run.ack(1, *SUBTASKS).at(2_000).at(2_699).at(2_700)

    assert [e.timestamp_ms for e in run.effects if isinstance(e, TriggerSources)] == [1_000, 2_700]


def test_a_requested_checkpoint_waits_for_neither_interval_nor_pause() -> None:
    """A request is due at once."""
    run = Run(min_pause_ms=800).at(1_000).ack(1, *SUBTASKS)
    run.now = 1_001
    run.do(run.coordinator.request_checkpoint(1_001))

    assert run.ids(TriggerSources) == [1, 2]


@pytest.mark.parametrize("limit", [1, 2, 5])
def test_no_more_than_the_allowed_number_is_pending(limit: int) -> None:
    """The next begins as soon as one of them ends."""
    run = Run(max_concurrent=limit, timeout_ms=100_000)
    for second in range(1, 10):
        run.at(second * 1_000)
    pending = run.coordinator.pending_ids

    run.ack(1, *SUBTASKS)

    assert pending == tuple(range(1, limit + 1))
    assert run.coordinator.pending_ids[-1] == limit + 1


def test_a_completed_checkpoint_subsumes_the_earlier_ones() -> None:
    """What was still pending before it is aborted and discarded, late messages are dropped."""
    run = Run(max_concurrent=2).at(1_000).at(2_000).ack(1, SOURCE).ack(2, *SUBTASKS)

    run.ack(1, LEFT, RIGHT)

    assert run.aborted() == [(1, AbortReason.SUBSUMED)]
    assert (run.ids(Discard), run.ids(NotifyComplete)) == ([1], [2])
    assert run.coordinator.statistics().failed == 0


def test_an_earlier_completion_leaves_the_later_one_pending() -> None:
    """Only earlier checkpoints are subsumed."""
    run = Run(max_concurrent=2).at(1_000).at(2_000).ack(1, *SUBTASKS).ack(2, *SUBTASKS)

    assert run.ids(NotifyComplete) == [1, 2]
    assert run.aborted() == []


def test_metadata_is_stored_one_at_a_time_and_in_order() -> None:
    """Two that are ready together complete in the order of their ids."""
    run = Run(storing=False, max_concurrent=2).at(1_000).at(2_000)
    run.ack(1, *SUBTASKS).ack(2, *SUBTASKS)
    first = run.ids(StoreMetadata)

    run.do(run.coordinator.stored(2_100, 1))

    assert (first, run.ids(StoreMetadata)) == ([1], [1, 2])


def test_a_checkpoint_expires() -> None:
    """After the timeout it is aborted and discarded, and late messages are dropped."""
    run = Run(tolerable_failures=1).at(1_000).ack(1, SOURCE, LEFT).at(5_999)
    before = run.aborted()

    run.at(6_000).ack(1, RIGHT)

    assert (before, run.aborted()) == ([], [(1, AbortReason.EXPIRED)])
    assert run.ids(Discard) == [1]
    assert run.ids(StoreMetadata) == []


def test_a_checkpoint_does_not_expire_while_its_metadata_is_stored() -> None:
    """From the last acknowledgement on its end is the storage's to say."""
    run = Run(storing=False).at(1_000).ack(1, *SUBTASKS).at(60_000)

    run.do(run.coordinator.stored(60_000, 1))

    assert run.ids(NotifyComplete) == [1]


def test_a_declined_checkpoint_is_aborted_with_its_reason() -> None:
    """The notice says what the subtask said; the other pending one goes on."""
    run = Run(max_concurrent=2, tolerable_failures=1).at(1_000).at(2_000).decline(1)

    notice = next(e for e in run.effects if isinstance(e, NotifyAborted))

    assert (notice.checkpoint_id, notice.reason) == (1, AbortReason.DECLINED)
    assert "no room on the disk" in notice.detail
    assert run.coordinator.pending_ids == (2,)


def test_failed_storing_is_reported_and_discarded() -> None:
    """The job goes on within the tolerated number."""
    run = Run(storing=False, tolerable_failures=1).at(1_000).ack(1, *SUBTASKS)

    run.do(run.coordinator.store_failed(1_100, 1, "no space left on device"))

    assert run.aborted() == [(1, AbortReason.STORE_FAILED)]
    assert run.ids(Discard) == [1]
    assert "no space left on device" in (run.coordinator.statistics().latest_failure or "")
    assert run.failures() == []


def test_more_failures_in_a_row_than_tolerated_fail_the_job() -> None:
    """The reason names the last failure, the count and the limit."""
    run = Run(tolerable_failures=1).at(1_000).decline(1).at(2_000)
    before = run.failures()

    run.decline(2)

    assert before == []
    assert len(run.failures()) == 1
    assert "checkpoint 2 failed: a subtask declined it" in run.failures()[0]
    assert "failure 2 in a row, tolerated are 1" in run.failures()[0]


def test_a_completed_checkpoint_ends_the_row_of_failures() -> None:
    """Only failures without a success between them add up."""
    run = Run(tolerable_failures=1).at(1_000).decline(1).at(2_000).ack(2, *SUBTASKS)

    run.at(3_000).decline(3)

    assert run.failures() == []
    assert run.coordinator.statistics().failed_in_a_row == 1


def test_one_checkpoint_counts_as_one_failure() -> None:
    """A second subtask that declines the same checkpoint changes nothing."""
    run = Run(tolerable_failures=1).at(1_000).decline(1, LEFT).decline(1, RIGHT)

    assert run.coordinator.statistics().failed == 1
    assert run.failures() == []


def test_the_oldest_beyond_the_retained_number_is_discarded_after_the_newer_is_stored() -> None:
    """Those found at the start count too."""
    settings = CheckpointSettings(interval_ms=1_000, retained=2)
    coordinator = CheckpointCoordinator(settings, 9, retained=[5, 8])
    coordinator.start(0, ATTEMPT, [SOURCE])
    coordinator.tick(1_000)
    coordinator.enumerators_cut(1_000, 9)
    ready = coordinator.acknowledged(1_001, Acknowledgement(ATTEMPT, 9, SOURCE))

    complete = coordinator.stored(1_002, 9)

    assert Discard(5) not in ready
    assert complete[:2] == [NotifyComplete(9), Discard(5)]
    assert coordinator.retained_ids == (8, 9)


def test_no_periodic_checkpoint_begins_after_they_were_stopped() -> None:
    """The pending one still completes."""
    run = Run().at(1_000)
    run.do(run.coordinator.stop_periodic(1_100))
    run.ack(1, *SUBTASKS).at(60_000)

    assert (run.ids(TriggerSources), run.ids(NotifyComplete)) == ([1], [1])


def test_the_wake_up_is_the_next_thing_that_is_due() -> None:
    """First the trigger, then the expiry, none after the halt."""
    run = Run().at(1_000)
    run.do(run.coordinator.halt(1_200))

    wakes = [e.timestamp_ms for e in run.effects if isinstance(e, WakeAt)]
    assert wakes == [1_000, 6_000, None]


def test_statistics_tell_duration_and_size_of_the_latest() -> None:
    """Duration runs from the trigger, size sums the files."""
    run = Run().at(1_000)
    run.now = 1_250
    run.ack(1, *SUBTASKS, size=100)

    statistics = run.coordinator.statistics()

    assert (statistics.triggered, statistics.completed, statistics.pending) == (1, 1, 0)
    assert (statistics.latest_duration_ms, statistics.latest_size_bytes) == (250, 300)
