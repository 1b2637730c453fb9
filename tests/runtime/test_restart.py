"""Restart strategies."""

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from operators.time import Duration
from runtime.restart import (
    ExponentialDelayRestart,
    FailureRateRestart,
    FixedDelayRestart,
    NoRestart,
    RestartStrategies,
    RestartStrategy,
    restart_strategy,
)
from runtime.survival_settings import RestartSettings

HOUR = 3_600_000


def delays(strategy: RestartStrategy, count: int, apart_ms: int = 100_000) -> list[int]:
    found = []
    for number in range(count):
        strategy.failed(number * apart_ms)
        found.append(strategy.delay_ms)
    return found


def exponential(**settings: float) -> ExponentialDelayRestart:
    values = {"initial_ms": 4, "max_ms": 40, "multiplier": 2.3, "jitter": 0.0, **settings}
    return ExponentialDelayRestart(Random(7), **values)  # type: ignore[arg-type]  # mixed numbers


def test_without_restarts_the_first_failure_is_the_end() -> None:
    """There is no new start."""
    strategy = NoRestart()
    strategy.failed(0)

    assert not strategy.can_restart


def test_a_fixed_delay_allows_its_number_of_starts() -> None:
    """Asking twice changes nothing; the failure after the last start is the end."""
    strategy = FixedDelayRestart(3, 500)
    answers = []
    for now in range(4):
        strategy.failed(now)
        answers.append((strategy.can_restart, strategy.can_restart, strategy.delay_ms))

    assert answers == [(True, True, 500)] * 3 + [(False, False, 500)]


def test_an_exponential_delay_grows_to_its_limit() -> None:
    """From the first wait by the multiplier, in whole milliseconds, to the longest."""
    assert delays(exponential(), 5) == [4, 9, 20, 40, 40]


def test_the_wait_before_any_failure_is_the_first_one() -> None:
    """Nothing has failed yet."""
    assert exponential().delay_ms == 4


def test_a_completed_checkpoint_brings_the_first_wait_and_all_starts_back() -> None:
    """The job has got somewhere."""
    strategy = exponential(attempts=2)
    delays(strategy, 3)
    used_up = strategy.can_restart

    strategy.checkpoint_completed()
    strategy.failed(1_000_000)

    assert (used_up, strategy.can_restart, strategy.delay_ms) == (False, True, 4)


def test_a_long_run_without_failure_brings_the_first_wait_back() -> None:
    """Only a run of the whole threshold since the last start counts."""
    early, late = exponential(reset_threshold_ms=HOUR), exponential(reset_threshold_ms=HOUR)
    for strategy, second in ((early, 4 + HOUR - 1), (late, 4 + HOUR)):
        strategy.failed(0)
        strategy.failed(second)

    assert (early.delay_ms, late.delay_ms) == (9, 4)


def test_failures_while_a_start_is_awaited_count_as_one() -> None:
    """Several tasks fail of one cause."""
    strategy = exponential(initial_ms=10, attempts=1)
    strategy.failed(0)
    strategy.failed(3)
    strategy.failed(9)
    merged = (strategy.can_restart, strategy.delay_ms)

    strategy.failed(10)

    assert merged == (True, 10)
    assert not strategy.can_restart


def test_the_number_of_starts_without_progress_is_bounded() -> None:
    """The verdict says so in words."""
    strategy = exponential(attempts=10)
    delays(strategy, 10)
    tenth = (strategy.can_restart, strategy.verdict)

    strategy.failed(1_000_000)

    assert tenth == (True, "start 10 of at most 10")
    assert (strategy.can_restart, strategy.verdict) == (
        False,
        "the 10 new starts allowed are used up",
    )


@given(
    gaps=st.lists(st.integers(0, 30), max_size=30),
    failures_max=st.integers(0, 4),
    interval_ms=st.integers(1, 50),
)
def test_starts_go_on_while_failures_are_rare(
    gaps: list[int], failures_max: int, interval_ms: int
) -> None:
    """There is one exactly if no more failures than allowed lie within the interval."""
    strategy = FailureRateRestart(failures_max, interval_ms, delay_ms=7)
    times: list[int] = []
    for gap in gaps:
        times.append(gap + (times[-1] if times else 0))
        strategy.failed(times[-1])
        recent = sum(times[-1] - time <= interval_ms for time in times)
        assert strategy.can_restart is (recent <= failures_max)
        assert strategy.delay_ms == 7
        assert strategy.verdict.startswith("failure" if strategy.can_restart else "more than")


@given(seed=st.integers(), jitter=st.floats(0, 1))
def test_jitter_stays_within_its_share_and_below_the_limit(seed: int, jitter: float) -> None:
    """The wait differs from the computed one by at most the share, and never leaves the bounds."""
    strategy = ExponentialDelayRestart(Random(seed), initial_ms=20, max_ms=100, jitter=jitter)
    for computed, delay in zip([20, 40, 80, 100, 100], delays(strategy, 5), strict=True):
        assert computed * (1 - jitter) <= delay <= min(100, computed * (1 + jitter))


def test_jitter_spreads_starts() -> None:
    """Different seeds wait differently, the same seed the same."""
    first = [ExponentialDelayRestart(Random(seed), initial_ms=1_000) for seed in range(20)]
    again = [ExponentialDelayRestart(Random(seed), initial_ms=1_000) for seed in range(20)]

    drawn = [delays(strategy, 1)[0] for strategy in first]

    assert len(set(drawn)) > 10
    assert drawn == [delays(strategy, 1)[0] for strategy in again]


@pytest.mark.parametrize(
    ("settings", "checkpoints", "kind"),
    [
        (RestartStrategies.no_restart(), True, NoRestart),
        (RestartStrategies.fall_back_restart(), True, ExponentialDelayRestart),
        (RestartStrategies.fall_back_restart(), False, NoRestart),
        (RestartStrategies.fixed_delay_restart(3, 10), False, FixedDelayRestart),
        (RestartStrategies.exponential_delay_restart(), False, ExponentialDelayRestart),
        (RestartStrategies.failure_rate_restart(1, 10, 1), False, FailureRateRestart),
    ],
)
def test_the_settings_name_the_strategy(
    settings: RestartSettings, checkpoints: bool, kind: type[RestartStrategy]
) -> None:
    """By default a job restarts if it has checkpoints to restart from."""
    assert type(restart_strategy(settings, Random(1), checkpoints=checkpoints)) is kind


def test_the_factories_take_lengths_of_time_in_every_form() -> None:
    """Milliseconds or a duration mean the same."""
    by_duration = RestartStrategies.fixed_delay_restart(3, Duration.of_seconds(10))

    assert by_duration == RestartStrategies.fixed_delay_restart(3, 10_000)
    rate = RestartStrategies.failure_rate_restart
    assert rate(3, Duration.of_minutes(5), Duration.of_seconds(10)) == rate(3, 300_000, 10_000)
