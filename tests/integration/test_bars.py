"""The bars on latency and stalls, shortened; by CPU time where neighbours would lengthen them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from benchmarks import checkpoint_stall, latency, turns
from benchmarks.heap_memory import BAR_BYTES, overhead_per_key
from benchmarks.observed import quantile

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]


@pytest.mark.parametrize("build", [turns.sixteen_tasks, turns.short_turns])
def test_timers_and_threads_are_served_under_full_load(build: Any) -> None:
    """A ticker by the work of the loop itself, an executor call by the clock."""
    _, _, calls, cpu_gaps = turns.measure(build, 3.0)
    assert quantile(cpu_gaps, 0.99) - 0.001 <= turns.LATENESS_BAR
    assert quantile(calls, 0.5) < turns.EXECUTOR_BAR


def test_records_at_a_moderate_rate_arrive_at_once() -> None:
    """Half of them within the bar for 99 %; the machine may be busy otherwise."""
    latencies, job = latency.measure(5.0, 1.0, 10_000)
    assert len(latencies) > 40_000
    assert quantile(latencies, 0.5) < latency.BAR
    assert job.pauses.longest_collection().cpu_seconds <= latency.PAUSE_BAR


@pytest.mark.parametrize("parallelism", [1, 2])
def test_a_checkpoint_of_much_state_stalls_the_loop_for_a_moment(
    parallelism: int, tmp_path: Path
) -> None:
    """Fork, first writes and collections together, a third of the full size."""
    began, job, _ = checkpoint_stall._stalled(
        checkpoint_stall._CountedList, 300_000, parallelism, 2, str(tmp_path)
    )
    assert job.pauses.longest_fork(began).seconds > 0
    assert job.ticker.between(began, 1e18, cpu=True)[-1] <= checkpoint_stall.STALL_BAR
    assert job.pauses.longest_collection().cpu_seconds <= checkpoint_stall.PAUSE_BAR


def test_a_key_on_the_heap_is_small() -> None:
    """Bytes beside key and value themselves."""
    assert overhead_per_key(300_000) < BAR_BYTES
