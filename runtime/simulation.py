"""A whole job under a seed: the real runtime on virtual time, with crashes and full disks.

    def build(env, simulation):
        env.enable_checkpointing(20)
        env.from_collection(range(1000)).key_by(...)....sink_to(...)

    SimulatedJob(build, seed=7, faults=Faults(crashes=2), parallelisms=(1, 2, 3)).run()

The same seed gives the same run, event for event, in every process.
"""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from random import Random

from typing_extensions import override

from operators.graph import StreamGraph
from runtime.clock import NANOS_PER_MS, NANOS_PER_SECOND, SystemClock
from runtime.config import FlowSettings, JobConfig
from runtime.environment import StreamExecutionEnvironment
from runtime.job import JobRun
from runtime.job_folder import InMemoryJobFolder
from runtime.job_result import JobStatus
from runtime.simulation_faults import STEP, FaultKind, Faults, FaultSource, SimulatedProcess
from runtime.simulation_loop import (
    SimulatedDeath,
    SimulatedLoop,
    SimulationError,
    new_simulated_loop,
)
from runtime.simulation_storage import SimulatedFolder, SimulatedStorage
from runtime.survival_settings import LATEST, RecoverySettings
from runtime.turn import LoopTurn, Wakeup
from statebackends.storage import InMemoryCheckpointStorage

START_MS = 1_700_000_000_000
"""Processing time at the start of each run."""

LOOK_NANOS_MAX = 500_000
"""Up to so long has a task worked each time that it looks whether its turn is over."""

DOWN_MS_MAX = 1_000
"""How long the job may be down between two processes."""

CAPACITIES = (1, 2, 7, 64, 4096)
BATCH_SIZES = (1, 3, 16, 1024)

Build = Callable[[StreamExecutionEnvironment, "Simulation"], None]
"""Makes the job, without `execute`; called for each process anew."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulatedOutcome:
    """How a simulated job went; two runs with one seed have equal outcomes."""

    digest: str
    """Of everything that happened and when."""
    steps: int
    processes: int
    restarts: int
    """New attempts within a process, after a failure."""
    restores: int
    """Attempts that began from a checkpoint."""
    last_checkpoint: int
    """The id of the newest complete checkpoint; 0 if there is none."""
    virtual_ms: int


class Simulation:
    """What the job under test may use of the simulation: its chance, its points, its record."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.process: SimulatedProcess | None = None
        self.clock: SystemClock | None = None
        self.trace: list[str] = []

    def pass_point(self, point: str) -> None:
        """A place in the job where something may go wrong, by a name of its author's.

        Raises `SimulatedFailureError` if the function there shall fail, or ends the process.
        """
        assert self.process is not None
        self.process.pass_point(point)

    async def pause(self, longest_ms: int) -> None:
        """Waits for a while of virtual time, as something outside would."""
        assert self.clock is not None
        await self.clock.sleep(self.random.random() * longest_ms / 1_000)

    def record(self, text: str) -> None:
        """Adds to what the digest is made of."""
        self.trace.append(text)

    def __deepcopy__(self, _: object) -> Simulation:
        """User functions are copied per subtask; they all belong to this simulation."""
        return self


class _SimulatedEnvironment(StreamExecutionEnvironment):
    """An environment whose job is taken instead of executed."""

    def take(self) -> tuple[StreamGraph, JobConfig]:
        """The job as `execute` would run it."""
        return self._take(None)


class SimulatedJob:
    """Runs a job to its end over as many processes as it takes.

    Each process after the first starts from the latest checkpoint, with the next parallelism
    drawn from `parallelisms`. Channel capacities, batch sizes and turns are drawn as well, once
    per process.
    """

    def __init__(
        self,
        build: Build,
        *,
        seed: int,
        faults: Faults | None = None,
        parallelisms: tuple[int, ...] = (1,),
    ) -> None:
        self.seed = seed
        self.storage = InMemoryCheckpointStorage()
        self.folder = InMemoryJobFolder(self.storage, "the simulated folder")
        self._build = build
        self._faults = Faults() if faults is None else faults
        self._parallelisms = parallelisms
        self._random = Random(seed)
        self.simulation = Simulation(Random(self._random.random()))
        self._source = FaultSource(self._faults, Random(self._random.random()), self._record)
        self._loop: SimulatedLoop | None = None
        self._run: JobRun | None = None
        self._nanos = 0
        self._steps = 0
        self._processes = 0
        self._restarts = 0
        self._restores = 0
        self._process_storage: SimulatedStorage | None = None

    @property
    def passed(self) -> Mapping[str, int]:
        """How often each point has been passed, over all processes."""
        return self._source.passed

    def run(self) -> SimulatedOutcome:
        """Runs the job until it has finished by itself.

        Raises what ends the job for good, `SimulationError` for what no run may show; either
        carries the seed as a note.
        """
        try:
            while not self._run_process():
                self._nanos += int(self._random.random() * DOWN_MS_MAX) * NANOS_PER_MS
        except Exception as error:
            error.add_note(
                f"seed {self.seed}, process {self._processes}, "
                f"{self._nanos // NANOS_PER_MS} ms; the last events: {self.simulation.trace[-8:]}"
            )
            raise
        complete = new_simulated_loop(Random(0)).run_until_complete(self.storage.checkpoints())
        events = "\n".join(self.simulation.trace)
        return SimulatedOutcome(
            digest=hashlib.sha256(f"{events}\n{self._steps} {self._nanos}".encode()).hexdigest(),
            steps=self._steps,
            processes=self._processes,
            restarts=self._restarts,
            restores=self._restores,
            last_checkpoint=max(complete, default=0),
            virtual_ms=self._nanos // NANOS_PER_MS,
        )

    def _run_process(self) -> bool:
        """One process; whether the job finished by itself in it."""
        self._processes += 1
        loop = new_simulated_loop(
            Random(self._random.random()),
            start_nanos=self._nanos,
            before_step=self._before_step,
        )
        self._loop = loop
        self.simulation.process = SimulatedProcess(self._source, die=loop.die, stop=self._stop)
        try:
            finished = loop.run_until_complete(self._live(loop))
            self._check_nothing_left(loop)
        except SimulatedDeath:
            return False
        finally:
            self._nanos = loop.nanos()
            self._steps += loop.steps
            if self._run is not None:
                self._restarts += self._run.statistics().restarts
            if self._process_storage is not None:
                self._restores += self._process_storage.verified
            self._run = self._process_storage = None
            loop.abandon()
            loop.close()
        return finished

    async def _live(self, loop: SimulatedLoop) -> bool:
        process = self.simulation.process
        assert process is not None
        random = self._random
        parallelism = random.choice(self._parallelisms)
        self._record(f"process {self._processes} with parallelism {parallelism}")
        env = _SimulatedEnvironment()
        self._build(env, self.simulation)
        graph, config = env.take()
        flow = FlowSettings(
            channel_capacity_records=random.choice(CAPACITIES),
            batch_records_max=random.choice(BATCH_SIZES),
        )
        recovery = config.recovery
        if self._processes > 1:
            recovery = RecoverySettings(path=LATEST)
        clock = self.simulation.clock = _clock(loop)
        storage = self._process_storage = SimulatedStorage(
            self.storage, process, clock, Random(random.random()), delay_ms=self._faults.storage_ms
        )
        self._run = JobRun(
            graph,
            replace(config, parallelism=parallelism, flow=flow, recovery=recovery),
            lambda: _clock(loop),
            open_folder=lambda: SimulatedFolder(self.folder, process, storage),
            seed=int(random.random() * 2**32),
            turn_factory=lambda _: _simulated_turn(
                loop, Random(random.random()), self._before_step
            ),
            watched=False,
        )
        await self._run.run()
        status = self._run.statistics().status
        self._record(f"{status} at {loop.nanos()}")
        return status is JobStatus.FINISHED

    def _before_step(self) -> None:
        process, run = self.simulation.process, self._run
        if run is None or process is None:
            return
        process.pass_point(STEP, FaultKind.CRASH, FaultKind.STOP)

    def _stop(self) -> None:
        if self._run is not None:
            self._run.request_stop()

    def _check_nothing_left(self, loop: SimulatedLoop) -> None:
        left = [task.get_name() for task in loop.unfinished]
        if left or loop.errors:
            raise SimulationError(f"left behind: {left}; errors nobody saw: {loop.errors}")

    def _record(self, text: str) -> None:
        nanos = 0 if self._loop is None else self._loop.nanos()
        self.simulation.record(f"{nanos} {text}")


def _clock(loop: SimulatedLoop) -> SystemClock:
    """The clock of an attempt, on virtual time."""
    return SystemClock(
        loop,
        wall_ns=lambda: START_MS * NANOS_PER_MS + loop.nanos(),
        monotonic_ns=loop.nanos,
    )


class _DrawnTasks(deque[Wakeup]):
    """The tasks that are ready: each may be the next, and before each the process may die."""

    def __init__(self, random: Random, before_step: Callable[[], None]) -> None:
        super().__init__()
        self._random = random
        self._before_step = before_step

    @override
    def popleft(self) -> Wakeup:
        self._before_step()
        self.rotate(int(self._random.random() * len(self)))
        return super().popleft()


def _simulated_turn(
    loop: SimulatedLoop, random: Random, before_step: Callable[[], None]
) -> LoopTurn:
    """Turns whose time passes as tasks look at it, by chance."""

    def monotonic() -> float:
        loop.pass_time(int(random.random() * LOOK_NANOS_MAX))
        return loop.nanos() / NANOS_PER_SECOND

    return LoopTurn(loop, monotonic, ready=_DrawnTasks(random, before_step))
