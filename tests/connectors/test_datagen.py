"""Generated records: their numbers, their rate, their position."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from connectors.datagen import DataGeneratorSource, RateLimiter
from operators.source import Boundedness, InputStatus, SplitBatch
from tests.operators.attempt import Attempt, at_end, drain, restored_attempts, started_reader


async def test_record_i_is_what_the_function_gives_for_i() -> None:
    """A bounded generator ends after its count."""
    source = DataGeneratorSource(lambda number: number * number, 5)
    reader = await started_reader(source, Attempt())
    assert drain(reader) == [0, 1, 4, 9, 16]
    assert at_end(reader)
    assert source.boundedness is Boundedness.BOUNDED


async def test_without_a_count_it_never_ends() -> None:
    """There is always another batch."""
    source = DataGeneratorSource(str)
    reader = await started_reader(source, Attempt(1, 2))
    batches = [reader.poll(2) for _ in range(3)]
    values = [batch.values for batch in batches if isinstance(batch, SplitBatch)]
    assert values == [["1", "3"], ["5", "7"], ["9", "11"]]
    assert source.boundedness is Boundedness.CONTINUOUS_UNBOUNDED


@given(
    rate=st.floats(0.5, 50_000),
    steps=st.lists(st.integers(0, 400), max_size=20),
    parallelism=st.integers(1, 3),
)
async def test_no_record_comes_before_its_time(
    rate: float, steps: list[int], parallelism: int
) -> None:
    """At any moment exactly the due records have come, over all subtasks together."""
    source = DataGeneratorSource(int, None, rate)
    attempts = [Attempt(index, parallelism) for index in range(parallelism)]
    readers = [await started_reader(source, attempt) for attempt in attempts]
    now = 0
    records: list[int] = []
    for step in steps:
        now += step
        for attempt, reader in zip(attempts, readers, strict=True):
            attempt.clock.set(now)
            records += drain(reader, 100)
        due = int(now * rate / 1000) + 1
        assert sorted(records) == list(range(due))


async def test_a_waiting_reader_is_woken_when_the_next_record_is_due() -> None:
    """One call of the clock is pending, at the due time and not earlier."""
    attempt = Attempt()
    reader = await started_reader(DataGeneratorSource(int, 10, RateLimiter(4)), attempt)
    assert drain(reader) == [0]
    assert reader.poll(10) is InputStatus.NOTHING_AVAILABLE
    assert attempt.clock.scheduled() == [250]
    attempt.clock.set(249)
    assert attempt.events == []
    attempt.clock.set(250)
    assert attempt.events == ["available"]
    assert drain(reader) == [1]


async def test_what_became_due_meanwhile_follows_in_bounded_batches() -> None:
    """After a pause the reader catches up, never with more than was asked for at once."""
    attempt = Attempt()
    reader = await started_reader(DataGeneratorSource(int, None, 1000), attempt)
    attempt.clock.set(25)
    sizes = []
    while isinstance(batch := reader.poll(10), SplitBatch):
        sizes.append(len(batch.values))
    assert sizes == [10, 10, 6]


async def test_closing_gives_up_the_wake_up() -> None:
    """Nothing is left in the clock."""
    attempt = Attempt()
    reader = await started_reader(DataGeneratorSource(int, 10, 1), attempt)
    drain(reader)
    await reader.close()
    assert attempt.clock.scheduled() == []


async def test_a_continued_run_begins_its_schedule_anew() -> None:
    """The first record after a restore is due at once, the next one a period later."""
    attempt = Attempt()
    source = DataGeneratorSource(int, 100, 10)
    reader = await started_reader(source, attempt)
    attempt.clock.set(500)
    assert drain(reader) == [0, 1, 2, 3, 4, 5]
    reader.snapshot_state(1)
    (again,) = restored_attempts([attempt.operator_state], 1)
    again.clock.set(7_000)
    reader = await started_reader(source, again)
    assert drain(reader) == [6]
    assert again.clock.scheduled() == [7_100]


@pytest.mark.parametrize("rate", [0, -1, float("inf"), float("nan")])
def test_a_rate_that_is_none_is_refused(rate: float) -> None:
    """The message names the setting."""
    with pytest.raises(ValueError, match="records_per_second"):
        RateLimiter(rate)


def test_a_negative_count_is_refused() -> None:
    """The message names the value."""
    with pytest.raises(ValueError, match="not -1"):
        DataGeneratorSource(int, -1)
