"""What goes wrong in a simulated job, where and when: by the seed, or at chosen points."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from random import Random

from runtime.simulation_loop import SimulatedDeath

STEP_CHANCE_SHARE = 0.05
"""A step is passed far more often than any other point, so its chance is this share of theirs."""


class FaultKind(StrEnum):
    """What can happen at a point."""

    CRASH = "crash"
    """The process dies; nothing that it was about to do happens."""

    FAILURE = "failure"
    """What was tried there fails: an exception."""

    STOP = "stop"
    """The job is asked to stop, with a final checkpoint."""


STEP = "step"
"""The point passed before each step of the loop."""

STORAGE_POINTS = (
    "write state",
    "state written",
    "store metadata",
    "metadata stored",
    "discard",
    "open state",
)
"""Points of the checkpoint storage, before and after it does something."""


@dataclass(frozen=True, slots=True)
class Fault:
    """A fault at a chosen point: the `count`-th time that it is passed, from 1."""

    point: str
    kind: FaultKind = FaultKind.CRASH
    count: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Faults:
    """How much goes wrong at random, and what goes wrong for certain.

    * `crashes`, `failures`, `stops`: at most so many of each kind at random points.
    * `chance`: of a fault each time that a point is passed, as long as some are left: a run
      draws one between a hundredth of this and all of it, so that some runs break early and
      others late.
    * `storage_ms`: the longest time that a call of the checkpoint storage takes.
    * `chosen`: faults at chosen points, besides.
    """

    crashes: int = 0
    failures: int = 0
    stops: int = 0
    chance: float = 0.02
    storage_ms: int = 5
    chosen: tuple[Fault, ...] = ()


class SimulatedFailureError(Exception):
    """A failure that the simulation wanted."""


@dataclass(slots=True)
class FaultSource:
    """Decides at each point what happens; lives as long as the run, over all its processes."""

    faults: Faults
    random: Random
    record: Callable[[str], None]
    passed: Counter[str] = field(default_factory=Counter)
    _chance: float = 0.0
    _left: dict[FaultKind, int] = field(default_factory=dict)
    _chosen: Mapping[tuple[str, int], FaultKind] = field(default_factory=dict)

    def __post_init__(self) -> None:
        faults = self.faults
        self._chance = faults.chance * 10 ** (-2 * self.random.random())
        self._left = {
            FaultKind.CRASH: faults.crashes,
            FaultKind.FAILURE: faults.failures,
            FaultKind.STOP: faults.stops,
        }
        self._chosen = {(each.point, each.count): each.kind for each in faults.chosen}

    def decide(self, point: str, *kinds: FaultKind) -> FaultKind | None:
        """What happens this time; at random only one of `kinds`."""
        self.passed[point] += 1
        kind = self._chosen.get((point, self.passed[point]))
        if kind is None:
            kind = self._drawn(point, kinds)
        if kind is not None:
            self.record(f"{kind} at {point} ({self.passed[point]})")
        return kind

    def _drawn(self, point: str, kinds: tuple[FaultKind, ...]) -> FaultKind | None:
        possible = [kind for kind in kinds if self._left[kind]]
        if not possible:
            return None
        chance = self._chance * (STEP_CHANCE_SHARE if point == STEP else 1)
        if self.random.random() >= chance:
            return None
        kind = possible[int(self.random.random() * len(possible))]
        self._left[kind] -= 1
        return kind


class SimulatedProcess:
    """One life of the job's process: the points that its code passes."""

    def __init__(
        self, source: FaultSource, *, die: Callable[[], None], stop: Callable[[], None]
    ) -> None:
        self._source = source
        self._die = die
        self._stop = stop
        self.alive = True

    def pass_point(self, point: str, *kinds: FaultKind) -> None:
        """Something may go wrong here: at random only one of `kinds`, which are all but a stop.

        Raises `SimulatedFailureError`, or `SimulatedDeath` if the process dies.
        """
        self.check_alive()
        kind = self._source.decide(point, *(kinds or (FaultKind.CRASH, FaultKind.FAILURE)))
        if kind is FaultKind.CRASH:
            self.crash()
        if kind is FaultKind.STOP:
            self._stop()
        if kind is FaultKind.FAILURE:
            raise SimulatedFailureError(f"{point}, time {self._source.passed[point]}")

    def crash(self) -> None:
        """The process dies here; raises `SimulatedDeath`."""
        self.alive = False
        self._die()
        raise SimulatedDeath

    def check_alive(self) -> None:
        """Raises `SimulatedDeath` for what a dead process still tries."""
        if not self.alive:
            raise SimulatedDeath
