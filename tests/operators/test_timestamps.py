"""Timestamps and watermarks assigned in the middle of a stream."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from operators.elements import (
    ACTIVE,
    IDLE,
    MAX_TIMESTAMP,
    MAX_WATERMARK,
    RECORD_TIMESTAMP_LIMIT,
    RecordBatch,
    Watermark,
)
from operators.event_time import RECORDS_BETWEEN_WATERMARKS_MAX
from operators.timestamps import TimestampsAndWatermarksOperator
from operators.watermarks import (
    BoundedOutOfOrdernessWatermarks,
    WatermarkGenerator,
    WatermarkOutput,
    WatermarkStrategy,
)
from tests.operators.fakes import Driver, FakeContext


def by_value(value: int, _: int) -> int:
    return value


MONOTONOUS = WatermarkStrategy[Any].for_monotonous_timestamps().with_timestamp_assigner(by_value)


def driver(strategy: WatermarkStrategy[Any], interval_ms: int = 200) -> Driver:
    context = FakeContext()
    context.auto_watermark_interval_ms = interval_ms
    return Driver(TimestampsAndWatermarksOperator(strategy), context)


def stamp(target: Driver, *values: object, timestamps: list[int | None] | None = None) -> list[Any]:
    return target.collect(target.operator.process_batch(RecordBatch([*values], timestamps)))


class Punctuated(WatermarkGenerator[int]):
    """A negative value is a watermark at its record's timestamp."""

    def on_event(self, event: int, event_timestamp: int, output: WatermarkOutput) -> None:
        if event < 0:
            output.emit_watermark(event_timestamp)

    def on_periodic_emit(self, output: WatermarkOutput) -> None:
        return None


def test_the_watermark_comes_each_interval_if_it_rose() -> None:
    """Behind the highest timestamp by one."""
    target = driver(MONOTONOUS)
    assert target.processing_time(200) == []
    assert stamp(target, 5, 9, 7) == [(5, 5), (9, 9), (7, 7)]
    assert target.processing_time(399) == []
    assert target.processing_time(400) == [Watermark(8)]
    assert target.processing_time(600) == []


def test_a_custom_watermark_splits_the_batch_right_behind_its_record() -> None:
    """One that does not rise splits nothing."""
    target = driver(WatermarkStrategy.for_generator(Punctuated))
    outputs = stamp(target, 1, -1, -2, 3, -4, timestamps=[10, 20, 15, 30, 40])
    assert outputs == [(1, 10), (-1, 20), Watermark(20), (-2, 15), (3, 30), (-4, 40), Watermark(40)]
    assert target.batch_sizes == [2, 3]


def test_parts_of_a_split_batch_know_their_places() -> None:
    """An origin is asked by the index within the part."""
    target = driver(WatermarkStrategy.for_generator(Punctuated))
    batch = RecordBatch([-1, 2], [10, 20], None, "clicks@{}".format)
    _, _, second = target.operator.process_batch(batch)
    assert isinstance(second, RecordBatch)
    assert second.origin is not None
    assert second.origin(0) == "clicks@1"


def test_at_full_speed_a_watermark_comes_each_thousand_records() -> None:
    """Though the clock stands still; not if there are to be no periodic ones at all."""
    values = range(RECORDS_BETWEEN_WATERMARKS_MAX)
    assert stamp(driver(MONOTONOUS), *values)[-1] == Watermark(values[-2])
    assert Watermark(values[-2]) not in stamp(driver(MONOTONOUS, 0), *values)


def test_upstream_watermarks_and_statuses_are_swallowed_but_the_end() -> None:
    """The strategy alone says what event time is."""
    target = driver(MONOTONOUS)
    stamp(target, 5)
    operator = target.operator
    assert list(operator.process_watermark(Watermark(1_000))) == []
    assert list(operator.process_status(IDLE)) == []
    assert target.processing_time(200) == [Watermark(4)]
    assert list(operator.process_watermark(MAX_WATERMARK)) == [MAX_WATERMARK]


def test_an_idle_stream_becomes_active_with_the_end() -> None:
    """Receivers would ignore MAX from an idle sender."""
    target = driver(MONOTONOUS.with_idleness(100))
    assert target.processing_time(200) == []
    assert target.processing_time(400) == [IDLE]
    assert list(target.operator.process_watermark(MAX_WATERMARK)) == [ACTIVE, MAX_WATERMARK]


def test_the_end_of_the_input_puts_out_the_last_watermark_and_stops_the_clock() -> None:
    """No tick is left behind."""
    target = driver(MONOTONOUS)
    stamp(target, 5)
    assert list(target.operator.end_input()) == [Watermark(4)]
    assert target.context.clock.scheduled() == []


def test_close_stops_the_clock() -> None:
    """A mail that is under way does nothing any more."""
    target = driver(MONOTONOUS)
    stamp(target, 5)
    target.context.clock.set(200)
    target.operator.close()
    assert target.processing_time(400) == []
    assert target.context.clock.scheduled() == []


@pytest.mark.parametrize("strategy", [MONOTONOUS, WatermarkStrategy.no_watermarks()])
def test_without_interval_or_generator_there_are_no_ticks(strategy: WatermarkStrategy[Any]) -> None:
    """Only the end of time comes."""
    interval_ms = 0 if strategy.generator_factory else 200
    target = driver(strategy, interval_ms)
    stamp(target, 5)
    assert target.context.clock.scheduled() == []
    assert list(target.operator.end_input()) == []


def test_the_assigner_sees_the_timestamp_that_was_there() -> None:
    """The lowest of all where there was none."""
    seen: list[int] = []

    def assign(value: int, previous: int) -> int:
        seen.append(previous)
        return value

    target = driver(WatermarkStrategy[Any].no_watermarks().with_timestamp_assigner(assign))
    assert stamp(target, 1, 2, timestamps=[77, None]) == [(1, 1), (2, 2)]
    stamp(target, 3)
    assert seen == [77, -(2**63), -(2**63)]


@pytest.mark.parametrize(
    "timestamp",
    [
        1.5,
        True,
        "5",
        None,
        RECORD_TIMESTAMP_LIMIT,
        -RECORD_TIMESTAMP_LIMIT,
        MAX_TIMESTAMP,
    ],
)
def test_a_bad_timestamp_fails_its_record(timestamp: object) -> None:
    """Position says which record it was."""
    target = driver(WatermarkStrategy[Any].no_watermarks().with_timestamp_assigner(lambda v, _: v))
    with pytest.raises((TypeError, ValueError), match="a record's timestamp must"):
        stamp(target, 1, 2, timestamp, 3)
    assert target.operator.position() == 2


@pytest.mark.parametrize("timestamp", [RECORD_TIMESTAMP_LIMIT - 1, 1 - RECORD_TIMESTAMP_LIMIT, 0])
def test_timestamps_within_the_limits_are_legal(timestamp: int) -> None:
    """The limits themselves are not."""
    assert stamp(driver(MONOTONOUS), timestamp) == [(timestamp, timestamp)]


def test_timestamps_that_come_from_upstream_are_checked_as_well() -> None:
    """Also without an assigner."""
    target = driver(WatermarkStrategy.for_monotonous_timestamps())
    with pytest.raises(ValueError, match="strictly between"):
        stamp(target, "a", "b", timestamps=[None, 2**62])
    assert target.operator.position() == 1


def test_position_names_the_record_whose_timestamp_could_not_be_read() -> None:
    """The user's exception passes through untouched."""
    strategy = WatermarkStrategy[Any].no_watermarks().with_timestamp_assigner(lambda v, _: v["ts"])
    target = driver(strategy)
    with pytest.raises(KeyError, match="ts"):
        stamp(target, {"ts": 1}, {}, {"ts": 3})
    assert target.operator.position() == 1


def test_a_watermark_that_is_no_int_is_refused() -> None:
    """A generator of your own can be wrong as well."""

    class Wrong(Punctuated):
        def on_event(self, event: int, event_timestamp: int, output: WatermarkOutput) -> None:
            output.emit_watermark(1.5)  # type: ignore[arg-type]  # on purpose

    with pytest.raises(TypeError, match="a watermark is an int"):
        stamp(driver(WatermarkStrategy.for_generator(Wrong)), 1)


class Slowly(WatermarkGenerator[int]):
    """A bounded generator that is shown each record for itself."""

    def __init__(self) -> None:
        self.inner = BoundedOutOfOrdernessWatermarks(10)

    def on_event(self, event: int, event_timestamp: int, output: WatermarkOutput) -> None:
        self.inner.on_event(event, event_timestamp, output)

    def on_periodic_emit(self, output: WatermarkOutput) -> None:
        self.inner.on_periodic_emit(output)


@given(st.lists(st.lists(st.integers(-50, 50), min_size=1, max_size=5), max_size=8), st.booleans())
def test_showing_batches_or_single_records_to_a_generator_is_the_same(
    ticks: list[list[int]], idleness: bool
) -> None:
    """The built-in generators may look at the highest timestamp of a batch only."""
    outputs = []
    for factory in (Slowly, lambda: BoundedOutOfOrdernessWatermarks(10)):
        strategy = WatermarkStrategy[Any].for_generator(factory).with_timestamp_assigner(by_value)
        target = driver(strategy.with_idleness(300) if idleness else strategy)
        seen: list[Any] = []
        for number, values in enumerate(ticks):
            if number % 3 != 2:
                seen += stamp(target, *values)
            seen += target.processing_time(200 * (number + 1))
        outputs.append(seen)
    assert outputs[0] == outputs[1]


@given(st.lists(st.integers(-9, 9), min_size=1, max_size=30), st.integers(1, 7))
def test_batch_boundaries_do_not_show(values: list[int], size: int) -> None:
    """Records and watermarks come in the same order however the records are cut."""
    whole = driver(WatermarkStrategy.for_generator(Punctuated))
    pieces = driver(WatermarkStrategy.for_generator(Punctuated))
    timestamps: list[int | None] = [abs(value) for value in values]
    outputs = []
    for begin in range(0, len(values), size):
        end = begin + size
        outputs += stamp(pieces, *values[begin:end], timestamps=timestamps[begin:end])
    assert outputs == stamp(whole, *values, timestamps=timestamps)
