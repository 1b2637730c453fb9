"""For tests of jobs: runs operators and user functions step by step, without a job.

harness = OperatorHarness.of(lambda clicks: clicks.key_by("page").process(Alert()))
harness.process({"page": "home"}, timestamp=1_000)
assert harness.watermark(60_999) == [EmittedRecord("home", 60_999), Watermark(60_999)]
"""

from operators.elements import ACTIVE, IDLE, Watermark, WatermarkStatus
from runtime.clock import SimulatedClock
from runtime.testing.harness import OperatorHarness
from runtime.testing.outputs import Emitted, EmittedRecord
from runtime.testing.snapshot import OperatorSnapshot

__all__ = [
    "ACTIVE",
    "IDLE",
    "Emitted",
    "EmittedRecord",
    "OperatorHarness",
    "OperatorSnapshot",
    "SimulatedClock",
    "Watermark",
    "WatermarkStatus",
]
