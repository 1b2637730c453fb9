"""Splits that are found while checkpoints are taken are neither lost nor read twice."""

from __future__ import annotations

import pytest

from runtime.enumerators import SplitEnumerators
from runtime.simulation import SimulatedJob, SimulatedOutcome
from runtime.simulation_faults import Faults
from tests.simulation.discovering_job import DiscoveringJob

FAULTS = Faults(crashes=3, failures=3, stops=1, chance=0.04)
SEEDS = 110
CHAOS_SEEDS = 3_000


def simulate(seed: int) -> SimulatedOutcome:
    """Runs the job under a seed; fails naming the seed if its output is not exact."""
    job = DiscoveringJob(seed=seed)
    simulated = SimulatedJob(job, seed=seed, faults=FAULTS, parallelisms=(1, 2, 3))
    outcome = simulated.run()
    wrong = job.violations()
    assert not wrong, f"seed {seed}: {wrong[:5]}; {simulated.simulation.trace}"
    return outcome


def test_each_split_is_read_once_whatever_goes_wrong() -> None:
    """Whether it was found before, during or after the cut of a checkpoint."""
    outcomes = [simulate(seed) for seed in range(SEEDS)]
    assert sum(outcome.restores for outcome in outcomes) > SEEDS / 3


@pytest.mark.chaos
@pytest.mark.slow
@pytest.mark.timeout(600)
def test_each_split_is_read_once_in_thousands_of_runs() -> None:
    """The same over many more seeds."""
    for seed in range(SEEDS, SEEDS + CHAOS_SEEDS):
        simulate(seed)


def test_a_forgotten_enumerator_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that begins anew assigns again what the readers have from the checkpoint."""
    monkeypatch.setattr(SplitEnumerators, "cut", lambda *_: {})

    def simulate_all() -> None:
        for seed in range(SEEDS):
            simulate(seed)

    with pytest.raises(AssertionError, match="too many"):
        simulate_all()
