"""Watermark strategies and generators."""

from datetime import timedelta
from typing import Any

import pytest

from operators.elements import MIN_TIMESTAMP, Watermark
from operators.time import Duration
from operators.watermarks import (
    BoundedOutOfOrdernessWatermarks,
    IdlenessTimer,
    TimestampAssigner,
    WatermarkGenerator,
    WatermarkOutput,
    WatermarkStrategy,
)


class Recorder(WatermarkOutput):
    """Keeps what a generator puts out."""

    def __init__(self) -> None:
        self.seen: list[object] = []

    def emit_watermark(self, watermark: int | Watermark) -> None:
        self.seen.append(watermark)

    def mark_idle(self) -> None:
        self.seen.append("idle")

    def mark_active(self) -> None:
        self.seen.append("active")


def test_bounded_generator_stays_behind_the_highest_timestamp() -> None:
    """By the bound and one; late records change nothing."""
    generator, output = BoundedOutOfOrdernessWatermarks(10), Recorder()
    generator.on_periodic_emit(output)
    for timestamp in (12_345, 12_300, 12_340, 12_280):
        generator.on_event("record", timestamp, output)
    generator.on_periodic_emit(output)
    generator.on_event("record", MIN_TIMESTAMP, output)
    generator.on_periodic_emit(output)
    assert output.seen == [12_334, 12_334]


def test_idleness_begins_at_the_first_quiet_check() -> None:
    """It is over when more than the timeout has passed since then, and with a record."""
    ticks = iter([400, 600, 700, 800])
    timer = IdlenessTimer(lambda: next(ticks), 300)
    timer.activity()
    assert [timer.check() for _ in range(5)] == [False, False, False, False, True]
    timer.activity()
    assert not timer.check()


def test_strategies_are_values_and_the_order_of_with_does_not_matter() -> None:
    """Each method returns a new strategy with everything that was said before."""

    def assigner(value: int, _: int) -> int:
        return value

    plain = WatermarkStrategy.for_bounded_out_of_orderness(timedelta(seconds=2))
    one = plain.with_timestamp_assigner(assigner).with_idleness(Duration.of_seconds(30))
    other = plain.with_idleness(30_000).with_timestamp_assigner(assigner)
    assert plain.timestamp_assigner is None
    assert plain.idle_timeout_ms is None
    for strategy in (one, other):
        assert strategy.timestamp_assigner is assigner
        assert strategy.idle_timeout_ms == 30_000


def test_each_split_gets_a_generator_of_its_own() -> None:
    """The factory is called once per split."""
    made: list[WatermarkGenerator[object]] = []

    def factory() -> WatermarkGenerator[object]:
        made.append(BoundedOutOfOrdernessWatermarks(0))
        return made[-1]

    strategy = WatermarkStrategy.for_generator(factory)
    assert strategy.create_generator(lambda: 0) is made[0]
    assert strategy.create_generator(lambda: 0) is made[1]
    assert WatermarkStrategy.no_watermarks().create_generator(lambda: 0) is None


def test_a_factory_that_wants_an_argument_is_refused_at_once() -> None:
    """In Flink it is given a context; here the line that passes it says so."""
    factory: Any = lambda context: BoundedOutOfOrdernessWatermarks(0)  # noqa: E731 - as jobs do
    with pytest.raises(TypeError, match=r"<lambda> at test_watermarks\.py:\d+ takes \(context\)"):
        WatermarkStrategy.for_generator(factory)


def test_an_assigner_object_is_copied_per_subtask() -> None:
    """What it keeps is its subtask's own."""

    class Numbering(TimestampAssigner[object]):
        def __init__(self) -> None:
            self.last = 0

        def extract_timestamp(self, value: object, record_timestamp: int) -> int:
            self.last += 1
            return self.last

    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(Numbering())
    one, other = strategy.create_assigner(), strategy.create_assigner()
    assert one is not None
    assert other is not None
    assert (one("a", 0), one("b", 0), other("c", 0)) == (1, 2, 1)


@pytest.mark.parametrize("bound", [-1, timedelta(seconds=-1)])
def test_a_negative_bound_is_refused(bound: int | timedelta) -> None:
    """A record cannot be out of order by less than nothing."""
    with pytest.raises(ValueError, match="must not be negative"):
        WatermarkStrategy.for_bounded_out_of_orderness(bound)


@pytest.mark.parametrize("timeout", [0, -5])
def test_an_idle_timeout_must_be_positive(timeout: int) -> None:
    """Else everything would always be idle."""
    with pytest.raises(ValueError, match="must be positive"):
        WatermarkStrategy.for_monotonous_timestamps().with_idleness(timeout)


def test_an_assigner_of_one_argument_is_refused_where_it_is_given() -> None:
    """Not at the first record."""
    with pytest.raises(
        TypeError, match=r"two arguments.*: <lambda> at test_watermarks\.py:\d+ takes \("
    ):
        WatermarkStrategy.no_watermarks().with_timestamp_assigner(lambda value: value)  # type: ignore[misc,arg-type]  # on purpose
