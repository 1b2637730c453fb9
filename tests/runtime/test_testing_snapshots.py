"""The operator harness: snapshots, restores and rescaling between any two steps."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from operators.elements import MIN_TIMESTAMP
from runtime import RecoveryError, TumblingEventTimeWindows
from runtime.testing import ACTIVE, EmittedRecord, OperatorHarness, Watermark
from tests.runtime.counting_function import Counting, itself


def counting(**options: Any) -> OperatorHarness:
    return OperatorHarness.of_function(Counting(), itself, **options)


@pytest.mark.parametrize(("before", "after"), [(1, 3), (3, 2), (2, 1)])
def test_state_and_timers_follow_their_keys(before: int, after: int) -> None:
    """After a rescale every key has its count and its timer, once."""
    harness = counting(parallelism=before)
    harness.process_all("abcdefgh", range(8))
    harness.rescale(after)
    fired = harness.watermark(100)
    assert sorted(e.value for e in fired if isinstance(e, EmittedRecord)) == [
        (key, 1, "EVENT_TIME") for key in "abcdefgh"
    ]
    assert fired.count(Watermark(100)) == after


def test_a_snapshot_can_be_restored_twice() -> None:
    """What happened after it is gone each time."""
    harness = counting()
    harness.process("a")
    snapshot = harness.snapshot()
    for _ in range(2):
        assert harness.process("a")[0] == EmittedRecord(("a", 2))
        harness.restore(snapshot)


def test_the_watermark_begins_anew_after_a_restore() -> None:
    """As in a job: an earlier watermark passes again."""
    harness = counting()
    harness.watermark(10)
    harness.restore()
    assert harness.watermark(5) == [Watermark(5)]


def test_the_clock_stays_at_a_restore() -> None:
    """A processing-time timer that became due meanwhile fires when the clock moves next."""
    harness = counting(processing_time=1_000)
    harness.process("a")
    snapshot = harness.snapshot()
    harness.set_processing_time(2_000)
    assert harness.restore(snapshot) == []
    assert harness.processing_time == 2_000
    assert harness.set_processing_time(2_000) == [EmittedRecord(("a", 1, "PROCESSING_TIME"))]


def test_a_watermark_that_is_kept_fires_nothing() -> None:
    """The operator knows it, and a timer behind it waits for the next one."""
    harness = counting()
    harness.watermark(50)
    harness.process("a", timestamp=1)
    assert harness.restore(keep_watermark=True) == []
    assert harness.watermark(51) == [EmittedRecord(("a", 1, "EVENT_TIME"), 11), Watermark(51)]


def test_a_snapshot_without_state_is_restored() -> None:
    """Operators that remember nothing have no files."""
    harness = OperatorHarness.of(lambda numbers: numbers.map(lambda n: n + 1))
    snapshot = harness.snapshot()
    assert snapshot.size_bytes == 0
    harness.restore(snapshot, parallelism=2)
    assert harness.process(1) == [EmittedRecord(2)]


def test_state_of_another_operator_is_refused() -> None:
    """A snapshot is restored by uid, as a checkpoint is."""
    harness = counting()
    harness.process("a")
    other = OperatorHarness.of(lambda s: s.key_by(itself).process(Counting()).uid("other"))
    with pytest.raises(RecoveryError, match="uid"):
        other.restore(harness.snapshot())


def test_a_status_survives_restores_between_steps() -> None:
    """An input that was idle before a restore is idle after it."""
    harness = counting(restore_between_steps=True)
    harness.idle()
    assert harness.idle() == []
    assert harness.active() == [ACTIVE]


def windows(lateness: int, **options: Any) -> OperatorHarness:
    return OperatorHarness.of(
        lambda s: (
            s.key_by(itself)
            .window(TumblingEventTimeWindows.of(10))
            .allowed_lateness(lateness)
            .count()
        ),
        **options,
    )


steps = st.lists(
    st.one_of(
        st.tuples(st.just("record"), st.sampled_from("abc"), st.integers(0, 60)),
        st.tuples(st.just("watermark"), st.just(""), st.integers(0, 60)),
    ),
    max_size=20,
)


@settings(max_examples=40)
@given(steps, st.sampled_from([0, 7]))
def test_restores_between_steps_are_unobservable(
    steps: list[tuple[str, str, int]], lateness: int
) -> None:
    """A window operator that is thrown away and restored before each step does the same."""
    plain, restored = windows(lateness), windows(lateness, restore_between_steps=True)
    highest = MIN_TIMESTAMP
    for kind, key, time in steps:
        if kind == "record":
            assert restored.process(key, time) == plain.process(key, time)
        elif time > highest:
            highest = time
            # Keys whose windows end at one time may fire in any order.
            fired = restored.watermark(time)
            assert sorted(map(str, fired)) == sorted(map(str, plain.watermark(time)))
