"""Process functions on streams that are not keyed, and what outputs become."""

from collections.abc import Iterator
from typing import Any, Self

import pytest

from operators.elements import RecordBatch, SideBatch, Watermark
from operators.output_tag import OutputTag
from operators.outputs import Outputs, detached
from operators.process import ProcessOperator
from operators.process_functions import ProcessFunction
from operators.stream_operator import BATCH_RECORDS_MAX
from tests.operators.fakes import Driver, FakeContext, HandClock

LATE: OutputTag[int] = OutputTag("late")
EARLY: OutputTag[int] = OutputTag("early")


class Sorting(ProcessFunction[int, object]):
    def process_element(self, value: int, ctx: ProcessFunction.Context) -> Iterator[object]:
        if value < 0:
            yield LATE, value
        else:
            yield value, ctx.timestamp()
            yield EARLY, value


def test_outputs_go_where_their_tag_says_at_the_time_of_their_record() -> None:
    """Main output and side outputs keep their order each."""
    driver = Driver(ProcessOperator(Sorting()))
    outputs = driver.records([1, -2, 3], [10, 20, 30], keys=[0, 0, 0])
    assert outputs == [
        ((1, 10), 10),
        ((3, 30), 30),
        ("early", 1, 10),
        ("early", 3, 30),
        ("late", -2, 20),
    ]


def test_records_without_timestamps_give_outputs_without() -> None:
    """The context has none either."""
    driver = Driver(ProcessOperator(Sorting()))
    assert driver.records([1, -1], keys=[0, 0]) == [
        ((1, None), None),
        ("early", 1, None),
        ("late", -1, None),
    ]


def test_clocks_but_no_timers_without_key() -> None:
    """The watermark is that of the operator; a timer needs a key."""
    seen: list[Any] = []

    def look(value: int, ctx: ProcessFunction.Context) -> None:
        service = ctx.timer_service()
        seen.append((service.current_watermark(), service.current_processing_time()))
        for method in (
            service.register_event_time_timer,
            service.register_processing_time_timer,
            service.delete_event_time_timer,
            service.delete_processing_time_timer,
        ):
            with pytest.raises(TypeError, match="call key_by"):
                method(5)

    driver = Driver(ProcessOperator(look), FakeContext(HandClock(70)))
    driver.records([1], keys=[0])
    driver.watermark(44)
    driver.records([2], keys=[0])
    assert seen == [(-(2**63), 70), (44, 70)]


def test_a_record_of_side_outputs_only_is_handed_on_in_full_batches() -> None:
    """They count towards the size of a batch."""

    def endless(value: int, ctx: ProcessFunction.Context) -> Iterator[object]:
        while True:
            yield LATE, value

    operator = ProcessOperator(endless)
    Driver(operator)
    work = iter(operator.process_batch(RecordBatch([7])))
    out = next(work)
    assert isinstance(out, SideBatch)
    assert len(out.batch) == BATCH_RECORDS_MAX
    assert operator.in_record


def test_nothing_comes_in_between_the_batches_of_several_outputs() -> None:
    """A timer that fired there would overtake the side output."""
    operator = ProcessOperator(Sorting())
    Driver(operator)
    states = [operator.in_record for _ in operator.process_batch(RecordBatch([1, -1]))]
    assert states == [True, True, False]


def test_a_tagged_output_must_be_a_pair() -> None:
    """The hint says how to write it."""

    def wrong(value: int, ctx: ProcessFunction.Context) -> Iterator[object]:
        yield LATE, value, value

    with pytest.raises(TypeError, match="yield tag, value"):
        Driver(ProcessOperator(wrong)).records([1], keys=[0])


def test_an_empty_tuple_is_an_output_like_any_other() -> None:
    """It begins with no tag."""
    outputs = Outputs()
    outputs.values += [(), (LATE, 1)]
    outputs.timestamps += [1, 2]
    main, side = outputs.take(timed=True)
    assert isinstance(main, RecordBatch)
    assert (main.values, main.timestamps) == ([()], [1])
    assert isinstance(side, SideBatch)
    assert side.batch.timestamps == [2]
    assert outputs.take(timed=True) == []


def test_a_returned_coroutine_is_refused() -> None:
    """An async callable inside a plain one shows at the first record."""

    async def later() -> None:
        raise AssertionError

    with pytest.raises(TypeError, match="not supported yet"):
        Driver(ProcessOperator(lambda value, ctx: later())).records([1], keys=[0])


class Point(tuple[object, ...]):
    """A tuple of a class of its own, made in its own way."""

    def __new__(cls, *parts: object) -> Self:
        return super().__new__(cls, parts)

    def __getnewargs__(self) -> tuple[object, ...]:
        return tuple(self)


def test_what_can_change_is_detached_however_deep_it_lies() -> None:
    """By a copy of the same type; what cannot change is passed on as it is."""
    held: list[int] = [1]
    for output in (
        held,
        ("k", held),
        (LATE, held),
        (LATE, ("k", held)),
        {"k": {"l": held}},
        [held],
    ):
        copied = detached(output)
        assert copied == output
        held.append(0)
        assert copied != output
        held.pop()
    point = detached(Point(1, held))
    assert (type(point), point) == (Point, Point(1, held))
    for unchanging in ((1, "x"), "x", (LATE, ("k", 1)), Point(1, 2), frozenset({1})):
        assert detached(unchanging) == unchanging
    pair = ("k", 1)
    assert detached(pair) is pair


def test_watermark_passes() -> None:
    """There is nothing to fire."""
    operator = ProcessOperator(Sorting())
    Driver(operator)
    assert list(operator.process_watermark(Watermark(5))) == [Watermark(5)]
