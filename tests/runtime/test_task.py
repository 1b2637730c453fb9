"""The loop of one task: input, back-pressure, suspended work and its budget."""

from __future__ import annotations

import asyncio

import pytest

from operators.elements import RecordBatch, Watermark
from operators.source import InputStatus, SourceReader, SourceReaderContext, SplitBatch
from operators.stream_operator import Work
from runtime.errors import OperatorFailure
from tests.runtime.chain_parts import Custom, PerRecord, Relay, batch
from tests.runtime.task_rig import Items, TaskRig, Ticks, reading, records, settle


async def test_elements_go_through_in_order() -> None:
    """Records and watermarks come out as they came in."""
    rig = TaskRig(Relay())
    async with rig.running():
        rig.put(batch(1), Watermark(1), batch(2, 3), Watermark(4))
        await settle()
        assert rig.out() == [1, Watermark(1), 2, 3, Watermark(4)]


async def test_no_input_is_taken_while_an_output_is_full() -> None:
    """Back-pressure: what waits stays in the input channel, and goes on when there is room."""
    rig = TaskRig(Relay(), capacity=2, records_max=1)
    async with rig.running():
        rig.put(*(batch(n) for n in range(6)))
        await settle()
        assert rig.inputs[0].size == 4
        assert rig.out() == [0, 1]
        await settle()
        assert rig.out() == [2, 3]


async def test_one_full_output_holds_up_the_task() -> None:
    """Room in the others does not count."""
    rig = TaskRig(Relay(), outputs=2, capacity=1, records_max=1)
    async with rig.running():
        rig.put(*(batch(n) for n in range(4)))
        await settle()
        assert rig.out(0) == [0]
        await settle()
        assert rig.out(0) == []
        assert rig.out(1) == [0]


async def test_no_input_is_taken_while_an_operator_has_no_room() -> None:
    """A sink whose buffer is full holds its task up until it says that it has room."""

    class Sink(Relay):
        always_has_room = False
        has_room = True

    sink = Sink()
    rig = TaskRig(sink, outputs=0, records_max=1)
    async with rig.running():
        sink.has_room = False
        rig.put(batch(1))
        await settle()
        assert sink.log == []
        sink.has_room = True
        sink.context.output_freed()
        await settle()
        assert sink.log == [[1]]


async def test_a_source_is_not_polled_while_an_output_is_full() -> None:
    """Back-pressure reaches the source."""
    source = Items(*(records(n) for n in range(5)))
    rig = TaskRig(reading(source), capacity=1)
    async with rig.running():
        await settle()
        assert len(source.items) == 4
        assert rig.out() == [0]
        await settle()
        assert len(source.items) == 3


async def test_long_work_is_suspended_between_outputs() -> None:
    """An operator that makes much out of one record fills no memory."""
    made: list[int] = []

    def explode(one: RecordBatch) -> Work:
        for n in range(1_000_000):
            made.append(n)
            yield batch(n)

    rig = TaskRig(Custom(explode), capacity=3, records_max=1)
    async with rig.running():
        rig.put(batch("big"), batch("next"))
        await settle()
        assert made == [0, 1, 2]
        assert rig.out() == [0, 1, 2]
        await settle()
        assert made == [0, 1, 2, 3, 4, 5]
        assert rig.inputs[0].size == 1


async def test_work_below_in_the_chain_is_suspended_too() -> None:
    """The whole chain stands still, wherever the output was made."""
    first = PerRecord()
    rig = TaskRig(first, PerRecord(), capacity=1)
    async with rig.running():
        rig.put(batch(1, 2, 3))
        await settle()
        assert first.log == [1]
        assert rig.out() == [1]
        await settle()
        assert first.log == [1, 2]


async def test_a_turn_that_is_over_lets_the_loop_turn() -> None:
    """A task with endless work gives way between two outputs once its budget is used up."""
    rig = TaskRig(PerRecord(), seconds=0.001, records_max=1)
    turns = 0

    def slow(one: RecordBatch) -> Work:
        for value in one.values:
            rig.ticks.now += 0.0006
            yield batch(value)

    rig.head.operator.process_batch = slow  # type: ignore[method-assign]  # a slow one
    async with rig.running():
        rig.put(*(batch(n) for n in range(20)))
        while rig.outputs[0].size < 20:
            turns += 1
            await asyncio.sleep(0)
        assert turns >= 10


class Slow(Custom):
    """Takes 10 ms for each of its first records, on the clock of the rig it is put into."""

    def __init__(self, records: int = 10_000) -> None:
        super().__init__(self._take)
        self.sizes: list[int] = []
        self.ticks = Ticks()
        self._records = records

    def _take(self, one: RecordBatch) -> Work:
        if sum(self.sizes) < self._records:
            self.ticks.now += 0.01 * len(one)
        self.sizes.append(len(one))
        return (one,)


async def test_a_slow_function_gets_its_records_one_by_one() -> None:
    """So mail is served between any two of them."""
    slow = Slow()
    rig = TaskRig(slow, seconds=0.002)
    slow.ticks = rig.ticks
    async with rig.running():
        rig.put(batch(*range(200)))
        await settle(400)
        assert sum(slow.sizes) == 200
        assert slow.sizes[-100:] == [1] * 100


async def test_a_function_that_is_slow_no_longer_gets_its_records_by_the_hundred_again() -> None:
    """One record at a time was all it could do in a turn, for a while."""
    slow = Slow(records=100)
    rig = TaskRig(slow, seconds=0.002)
    slow.ticks = rig.ticks
    async with rig.running():
        rig.put(batch(*range(2000)))
        await settle(400)
        assert 1 in slow.sizes
        assert max(slow.sizes[slow.sizes.index(1) :]) >= 500


async def test_a_slow_function_behind_a_source_gets_its_records_one_by_one() -> None:
    """The source is asked for fewer at once."""
    slow = Slow()
    rig = TaskRig(reading(Items(records(*range(200)))), slow, seconds=0.002)
    slow.ticks = rig.ticks
    async with rig.running():
        await settle(400)
        assert sum(slow.sizes) == 200
        assert slow.sizes[-100:] == [1] * 100


async def test_polls_of_few_records_say_nothing_about_many() -> None:
    """A trickle does not raise what is asked for: a burst behind it might be slow."""
    source = Items()
    rig = TaskRig(reading(source), Relay())
    async with rig.running():
        for n in range(20):
            source.add(records(n))
            await settle(3)
        assert max(source.asked) == source.asked[0]


class _Reporting(SourceReader[object]):
    """Finds a failure when it is polled, and nothing to read."""

    def poll(self, records_max: int) -> InputStatus:
        self.context.fail(ValueError("found in poll"))
        return InputStatus.NOTHING_AVAILABLE

    def snapshot_state(self, checkpoint_id: int) -> None:
        return None


class Reporting(Items):
    """The source of such a reader."""

    def create_reader(self, context: SourceReaderContext) -> SourceReader[object]:
        return _Reporting(context)


class _Hurrying(SourceReader[object]):
    """Finds while it is polled that there will be something, and says so at once."""

    def __init__(self, context: SourceReaderContext, call: str) -> None:
        super().__init__(context)
        self._call = call
        self._polls = 0

    def poll(self, records_max: int) -> SplitBatch | InputStatus:
        self._polls += 1
        if self._polls == 1:
            if self._call == "available":
                self.context.available()
            else:
                self.context.split_opened("a")
            return InputStatus.NOTHING_AVAILABLE
        batch = SplitBatch([1], split="a" if self._call == "split_opened" else None)
        return batch if self._polls == 2 else InputStatus.NOTHING_AVAILABLE

    def snapshot_state(self, checkpoint_id: int) -> None:
        return None


class Hurrying(Items):
    """The source of such a reader."""

    def __init__(self, call: str) -> None:
        super().__init__()
        self._call = call

    def create_reader(self, context: SourceReaderContext) -> SourceReader[object]:
        return _Hurrying(context, self._call)


@pytest.mark.parametrize("call", ["available", "split_opened"])
async def test_a_source_that_calls_while_it_is_polled_is_polled_again(call: str) -> None:
    """The call comes before the task waits; it would wait for ever."""
    rig = TaskRig(reading(Hurrying(call)), Relay())
    async with rig.running():
        await settle()
        assert rig.out() == [1]


async def test_a_failure_that_a_source_reports_while_it_is_polled_ends_the_task() -> None:
    """Also if it then has nothing: nobody would wake the task for it."""
    rig = TaskRig(reading(Reporting()))
    async with rig.running() as run:
        await settle()
        assert run.done()
        error = run.exception()
        assert isinstance(error, OperatorFailure)
        assert str(error.__cause__) == "found in poll"
