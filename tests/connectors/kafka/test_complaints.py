"""How often what may pass by itself is reported."""

from __future__ import annotations

import pytest

from connectors.kafka.complaints import Complaints
from runtime.clock import SimulatedClock


def test_complaints_are_a_line_every_few_seconds(caplog: pytest.LogCaptureFixture) -> None:
    """Those in between are counted."""
    clock = SimulatedClock()
    complaints = Complaints(clock, "Kafka source")
    for _ in range(100):
        complaints.say("no answer")
        clock.advance_by(60)
    assert [record.getMessage() for record in caplog.records] == [
        "Kafka source: no answer",
        "Kafka source: no answer (83 more since the last message)",
    ]
