"""Counters, gauges, meters, distributions and their groups."""

import pytest

from operators.metrics import MetricGroup
from runtime.clock import SimulatedClock


def test_asking_twice_gives_the_same_counter() -> None:
    """Operators and user code may ask for a metric wherever they need it."""
    group = MetricGroup(SimulatedClock())
    group.counter("n").inc(3)
    group.counter("n").dec()
    assert group.counter("n").get_count() == 2


def test_another_kind_under_a_taken_name_is_refused() -> None:
    """The name says one thing."""
    group = MetricGroup(SimulatedClock())
    group.counter("n")
    with pytest.raises(ValueError, match="n is a Counter, not a Distribution"):
        group.distribution("n")


def test_a_gauge_is_asked_when_it_is_read() -> None:
    """It shows the value of that moment."""
    group = MetricGroup(SimulatedClock())
    values = [1]
    group.gauge("size", lambda: len(values))
    values.append(2)
    assert {path: metric.read() for path, metric in group.walk()} == {("size",): 2}


def test_a_meter_forgets_what_is_older_than_two_spans() -> None:
    """The rate is that of late, the count that of ever."""
    clock = SimulatedClock()
    meter = MetricGroup(clock).meter("events", 10)
    for _ in range(10):
        clock.advance_by(1_000)
        meter.mark_event(5)
    assert meter.rate() == pytest.approx(5)
    clock.advance_by(10_000)
    meter.rate()
    clock.advance_by(10_000)
    meter.rate()
    assert meter.rate() == 0
    assert meter.get_count() == 50


def test_a_distribution_sums_up_its_values() -> None:
    """Count, sum, extremes and mean."""
    distribution = MetricGroup(SimulatedClock()).distribution("sizes")
    assert distribution.read()["mean"] is None
    for value in (4, 2, 6):
        distribution.update(value)
    assert distribution.read() == {"count": 3, "sum": 12, "min": 2, "max": 6, "mean": 4}


def test_walk_shows_the_scope_of_each_metric() -> None:
    """A label and its value are two parts of the path."""
    group = MetricGroup(SimulatedClock(), ("job",))
    group.add_group("split", "clicks-3").counter("n")
    group.add_group("split", "clicks-3").counter("n").inc()
    assert [(path, m.read()) for path, m in group.walk()] == [
        (("job", "split", "clicks-3", "n"), 1)
    ]
