"""How the input of a task ends, and the task with it."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from operators.elements import MAX_WATERMARK, RecordBatch, Watermark
from operators.source import InputStatus
from operators.stream_operator import Work
from runtime.errors import OperatorFailure
from tests.runtime.chain_parts import DRAINED, STOPPED, Custom, Relay, batch
from tests.runtime.task_rig import Items, TaskRig, reading, records, settle


async def test_the_end_of_all_inputs_is_the_end_of_the_task() -> None:
    """MAX watermark, then the operators' last words, then the end of its outputs."""
    operator = Custom(lambda one: (one,), on_end=lambda: (batch("rest"),))
    rig = TaskRig(operator, inputs=2)
    async with rig.running() as run:
        rig.put(batch(1), DRAINED)
        await settle()
        assert rig.out() == [1]
        rig.put(batch(2), DRAINED, channel=1)
        await asyncio.wait_for(run, 5)
    assert operator.log == [[1], [2], MAX_WATERMARK, "end"]
    assert rig.out() == [2, "rest", DRAINED]
    assert rig.listened == ["finished"]


async def test_an_end_without_drain_fires_nothing() -> None:
    """After a stop no timer fires and nobody says last words; the receivers are told the same."""
    operator = Relay()
    rig = TaskRig(operator)
    async with rig.running() as run:
        rig.put(batch(1), Watermark(5), STOPPED)
        await asyncio.wait_for(run, 5)
    assert operator.log == [[1], Watermark(5)]
    assert rig.out() == [1, Watermark(5), STOPPED]
    assert rig.listened == []


async def test_one_input_without_drain_means_no_drain() -> None:
    """An input that was cut off holds event time back for good."""
    operator = Relay()
    rig = TaskRig(operator, inputs=2)
    async with rig.running() as run:
        rig.put(STOPPED)
        rig.put(DRAINED, channel=1)
        await asyncio.wait_for(run, 5)
    assert operator.log == []
    assert rig.out() == [STOPPED]


async def test_an_ended_input_no_longer_holds_the_watermark_back() -> None:
    """The others decide."""
    rig = TaskRig(Relay(), inputs=2)
    async with rig.running():
        rig.put(Watermark(3))
        rig.put(Watermark(8), channel=1)
        await settle()
        assert rig.out() == [Watermark(3)]
        rig.put(DRAINED)
        await settle()
        assert rig.out() == [Watermark(8)]
        assert rig.task.watermark == 8


async def test_the_end_of_a_source_is_the_end_of_its_task() -> None:
    """Its last records go before the end."""
    rig = TaskRig(reading(Items(records(1, 2), InputStatus.END_OF_INPUT)), Relay())
    async with rig.running() as run:
        await asyncio.wait_for(run, 5)
    assert rig.out() == [1, 2, DRAINED]
    assert rig.listened == ["finished"]


async def test_long_last_words_are_suspended_like_any_work() -> None:
    """A million windows at the end fill no memory, and the end comes after them."""

    def rest() -> Work:
        return (batch(n) for n in range(4))

    rig = TaskRig(Custom(lambda one: (one,), on_end=rest), capacity=1)
    async with rig.running() as run:
        rig.put(DRAINED)
        out: list[Any] = []
        for _ in range(4):
            await settle()
            assert rig.outputs[0].size == 1
            out += rig.out()
        await asyncio.wait_for(run, 5)
        assert [*out, *rig.out()] == [0, 1, 2, 3, DRAINED]


async def test_a_source_waits_until_it_has_something() -> None:
    """Its reader wakes the task."""
    source = Items()
    rig = TaskRig(reading(source))
    async with rig.running():
        await settle()
        assert rig.out() == []
        source.add(records(1))
        await settle()
        assert rig.out() == [1]


async def test_a_failing_source_names_itself() -> None:
    """With what it was doing."""

    class Broken(Items):
        @property
        def items(self) -> Any:
            raise OSError("broker gone")

        @items.setter
        def items(self, value: Any) -> None:
            return None

    rig = TaskRig(reading(Broken()))
    async with rig.running() as run:
        with pytest.raises(OperatorFailure, match=r"'SourceOperator'.*reading its source"):
            await run


async def test_closing_closes_work_that_is_suspended() -> None:
    """A user's generator gets to run its `finally`."""
    closed: list[str] = []

    def long(one: RecordBatch) -> Work:
        try:
            while True:
                yield batch(1)
        finally:
            closed.append("closed")

    rig = TaskRig(Custom(long), capacity=1)
    async with rig.running():
        rig.put(batch(0))
        await settle()
        assert closed == []
    assert closed == ["closed"]
    assert rig.cut.closed


async def test_finish_is_awaited_once_after_the_end() -> None:
    """A sink completes what it has outside before the task is over."""

    class Sink(Relay):
        async def finish(self) -> None:
            await asyncio.sleep(0)
            self.log.append("finish")

    sink = Sink()
    rig = TaskRig(sink, outputs=0)
    async with rig.running() as run:
        rig.put(DRAINED)
        await asyncio.wait_for(run, 5)
    assert sink.log == [MAX_WATERMARK, "end", "finish"]
