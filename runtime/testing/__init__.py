"""For tests of jobs: operators and functions step by step, whole jobs on virtual time.

    harness = OperatorHarness.of(lambda clicks: clicks.key_by("page").process(Alert()))
    harness.process({"page": "home"}, timestamp=1_000)
    assert harness.watermark(60_999) == [EmittedRecord("home", 60_999), Watermark(60_999)]

`verify_operators` runs the same steps in every way in which the outcome must be the same;
`SimulatedJob` runs a whole job under a seed, with crashes.
"""

from operators.elements import ACTIVE, IDLE, Watermark, WatermarkStatus
from runtime.clock import SimulatedClock
from runtime.simulation import SimulatedJob, SimulatedOutcome, Simulation
from runtime.simulation_faults import Fault, FaultKind, Faults, SimulatedFailureError
from runtime.simulation_loop import SimulationError
from runtime.testing.harness import OperatorHarness
from runtime.testing.outputs import Emitted, EmittedRecord
from runtime.testing.snapshot import OperatorSnapshot
from runtime.testing.verification import InputRecord, ProcessingTime, Step, verify_operators

__all__ = [
    "ACTIVE",
    "IDLE",
    "Emitted",
    "EmittedRecord",
    "Fault",
    "FaultKind",
    "Faults",
    "InputRecord",
    "OperatorHarness",
    "OperatorSnapshot",
    "ProcessingTime",
    "SimulatedClock",
    "SimulatedFailureError",
    "SimulatedJob",
    "SimulatedOutcome",
    "Simulation",
    "SimulationError",
    "Step",
    "Watermark",
    "WatermarkStatus",
    "verify_operators",
]
