"""The simulated job: faults at chosen points, and what is said of a run that fails."""

from __future__ import annotations

import pytest

from operators.builtin import CollectSink
from runtime.environment import StreamExecutionEnvironment
from runtime.errors import JobExecutionError
from runtime.job_folder import RunStatus
from runtime.restart import RestartStrategies
from runtime.simulation import SimulatedJob, Simulation
from runtime.simulation_faults import Fault, FaultKind, Faults
from tests.simulation.counting_job import CountingJob
from tests.simulation.oracle import violations


class Doubling:
    """Doubles numbers, a checkpoint each 10 ms; what comes out is kept over all processes."""

    def __init__(self, count: int = 200) -> None:
        self.count = count
        self.results: list[int] = []
        self.results_before: list[int] = []
        """How many results there were when each process began."""

    def __call__(self, env: StreamExecutionEnvironment, simulation: Simulation) -> None:
        def double(number: int) -> int:
            simulation.pass_point("double")
            return 2 * number

        self.results_before.append(len(self.results))
        env.enable_checkpointing(10)
        env.set_restart_strategy(RestartStrategies.no_restart())
        numbers = env.from_sequence(0, self.count - 1).uid("numbers")
        numbers.map(double).uid("double").sink_to(CollectSink(self.results)).uid("results")


def run_with(*faults: Fault, seed: int = 1) -> tuple[Doubling, SimulatedJob]:
    """A doubling job and its simulation, not run yet."""
    build = Doubling()
    return build, SimulatedJob(build, seed=seed, faults=Faults(chosen=faults))


def test_a_job_without_faults_runs_in_one_process() -> None:
    """And gives what the real job would."""
    build, job = run_with()
    outcome = job.run()
    assert build.results == [2 * number for number in range(200)]
    assert (outcome.processes, outcome.restarts, outcome.restores) == (1, 0, 0)
    assert job.folder.last_status() is RunStatus.FINISHED


def test_a_crash_at_a_chosen_point_happens_there_once() -> None:
    """The next process restores the checkpoint that had just been stored."""
    build, job = run_with(Fault("metadata stored"))
    outcome = job.run()
    assert (outcome.processes, outcome.restores) == (2, 1)
    assert set(build.results) == {2 * number for number in range(200)}
    assert any("crash at metadata stored (1)" in event for event in job.simulation.trace)


def test_a_dead_process_leaves_its_record_as_it_was() -> None:
    """No clean-up runs: the folder still says that the run goes on."""
    seen: list[RunStatus | None] = []

    class Watched(Doubling):
        def __call__(self, env: StreamExecutionEnvironment, simulation: Simulation) -> None:
            seen.append(job.folder.last_status())
            super().__call__(env, simulation)

    faults = Faults(chosen=(Fault("double", count=100),))
    job = SimulatedJob(Watched(), seed=1, faults=faults)
    job.run()
    assert seen == [None, RunStatus.RUNNING]


def test_a_stop_is_followed_by_a_process_that_goes_on() -> None:
    """Nothing is read twice: the stop has a final checkpoint."""
    build, job = run_with(Fault("step", FaultKind.STOP, 20))
    assert job.run().processes == 2
    assert sorted(build.results) == [2 * number for number in range(200)]


def test_a_stop_while_state_is_restored_is_not_forgotten() -> None:
    """The process ends, and the next one does the work."""
    build = Doubling(count=5_000)
    faults = Faults(chosen=(Fault("metadata stored"), Fault("open state", FaultKind.STOP)))
    assert SimulatedJob(build, seed=2, faults=faults).run().processes == 3
    assert 0 < build.results_before[1] < 5_000
    assert build.results_before[1] == build.results_before[2]
    assert set(build.results) == {2 * number for number in range(5_000)}


def test_a_failure_of_the_job_names_the_seed_that_replays_it() -> None:
    """With the last events before it."""
    _, job = run_with(Fault("double", FaultKind.FAILURE, 50), seed=4711)
    with pytest.raises(JobExecutionError, match="double, time 50") as failed:
        job.run()
    (note,) = failed.value.__notes__
    assert note.startswith("seed 4711, process 1")
    assert "failure at double (50)" in note


def test_a_full_disk_fails_a_job_that_tolerates_none() -> None:
    """As the real one would."""
    _, job = run_with(Fault("write state", FaultKind.FAILURE))
    with pytest.raises(JobExecutionError, match="the simulated disk is full"):
        job.run()


def test_a_crash_between_the_last_checkpoint_and_its_commits_loses_none() -> None:
    """The restored job commits what had finished before, which would not run again."""
    for seed in range(10):
        counting = CountingJob(seed=seed, count=40)
        clean = SimulatedJob(counting, seed=seed)
        clean.run()
        last = clean.passed["metadata stored"]
        counting = CountingJob(seed=seed, count=40)
        crashing = SimulatedJob(
            counting, seed=seed, faults=Faults(chosen=(Fault("metadata stored", count=last),))
        )
        assert crashing.run().processes == 2
        assert violations(counting.inputs, counting.outside) == []
