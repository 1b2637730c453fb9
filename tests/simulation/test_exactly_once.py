"""Exactly once under crashes, failures and stops, at any parallelism: whole jobs by the seed."""

from __future__ import annotations

from dataclasses import replace

import pytest

from runtime.simulation import SimulatedJob, SimulatedOutcome
from runtime.simulation_faults import Faults
from tests.simulation.counting_job import CountingJob
from tests.simulation.oracle import violations

FAULTS = Faults(crashes=3, failures=3, stops=1, chance=0.04)
STORAGE_MS = (1, 5, 60)
"""How long storage takes at most: far less than a checkpoint's interval, or more."""

SEEDS = 132
SHARES = 6
CHAOS_SEEDS = 10_000


def simulate(seed: int, faults: Faults = FAULTS) -> SimulatedOutcome:
    """Runs the counting job under a seed; fails naming the seed if its output is not exact."""
    job = CountingJob(seed=seed)
    faults = replace(faults, storage_ms=STORAGE_MS[seed % len(STORAGE_MS)])
    simulated = SimulatedJob(job, seed=seed, faults=faults, parallelisms=(1, 2, 3))
    outcome = simulated.run()
    wrong = violations(job.inputs, job.outside)
    assert not wrong, f"seed {seed}: {wrong[:5]}; {simulated.simulation.trace}"
    return outcome


@pytest.mark.parametrize("share", range(SHARES))
def test_each_record_counts_once_whatever_goes_wrong(share: int) -> None:
    """Counts, timers, windows and transactions are exact; nothing at-least-once is missing."""
    for seed in range(share, SEEDS, SHARES):
        simulate(seed)


@pytest.mark.chaos
@pytest.mark.slow
@pytest.mark.timeout(1_800)
def test_each_record_counts_once_in_ten_thousand_runs() -> None:
    """The same over many more seeds than the default suite has time for."""
    for seed in range(SEEDS, SEEDS + CHAOS_SEEDS):
        simulate(seed)


def test_the_runs_meet_what_they_are_about() -> None:
    """Among few seeds there are crashes, restarts within a process, and complete checkpoints."""
    outcomes = [simulate(seed) for seed in range(20)]
    assert max(outcome.processes for outcome in outcomes) >= 3
    assert max(outcome.restarts for outcome in outcomes) >= 2
    assert max(outcome.restores for outcome in outcomes) >= 2
    assert min(outcome.last_checkpoint for outcome in outcomes) >= 1
    assert len({outcome.digest for outcome in outcomes}) == len(outcomes)
