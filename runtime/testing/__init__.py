"""For tests of jobs: operators and user functions step by step, and whole jobs under a seed.

harness = OperatorHarness.of(lambda clicks: clicks.key_by("page").process(Alert()))
harness.process({"page": "home"}, timestamp=1_000)
assert harness.watermark(60_999) == [EmittedRecord("home", 60_999), Watermark(60_999)]

SimulatedJob(build, seed=7, faults=Faults(crashes=2), parallelisms=(1, 2)).run()
"""

from operators.elements import ACTIVE, IDLE, Watermark, WatermarkStatus
from runtime.clock import SimulatedClock
from runtime.simulation import SimulatedJob, SimulatedOutcome, Simulation
from runtime.simulation_faults import Fault, FaultKind, Faults, SimulatedFailureError
from runtime.simulation_loop import SimulationError
from runtime.testing.harness import OperatorHarness
from runtime.testing.outputs import Emitted, EmittedRecord
from runtime.testing.snapshot import OperatorSnapshot

__all__ = [
    "ACTIVE",
    "IDLE",
    "Emitted",
    "EmittedRecord",
    "Fault",
    "FaultKind",
    "Faults",
    "OperatorHarness",
    "OperatorSnapshot",
    "SimulatedClock",
    "SimulatedFailureError",
    "SimulatedJob",
    "SimulatedOutcome",
    "Simulation",
    "SimulationError",
    "Watermark",
    "WatermarkStatus",
]
