"""Mail of a task: timers, requests, and when they are served."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from operators.elements import RecordBatch, Watermark
from operators.stream_operator import Work
from runtime.errors import OperatorFailure
from runtime.mailbox import Mail
from tests.runtime.chain_parts import DRAINED, PerRecord, Relay, barrier, batch
from tests.runtime.task_rig import Items, TaskRig, reading, records, settle


async def test_a_timer_is_served_under_back_pressure() -> None:
    """The user's function is called although the output is full."""
    fired: list[str] = []

    def fire() -> Work:
        fired.append("timer")
        yield batch("from the timer")

    rig = TaskRig(Relay(), capacity=1, records_max=1)
    async with rig.running():
        rig.put(batch(1), batch(2))
        await settle()
        assert rig.room.full == 1
        rig.timer(fire)
        await settle()
        assert fired == ["timer"]
        assert rig.out() == [1, "from the timer"]


async def test_timers_under_back_pressure_put_out_no_more_than_a_batch_each() -> None:
    """What is left of their work waits for room."""
    fired: list[int] = []

    def fire() -> Work:
        for n in range(100):
            fired.append(n)
            yield batch(n)

    rig = TaskRig(Relay(), capacity=1)
    async with rig.running():
        rig.put(batch("full"))
        await settle()
        rig.timer(fire)
        await settle()
        assert len(fired) <= 2


async def test_a_checkpoint_is_triggered_under_back_pressure() -> None:
    """The barrier queues behind what is there; the source need not be asked first."""
    source = Items(*(records(n) for n in range(5)))
    rig = TaskRig(reading(source), capacity=1)
    async with rig.running():
        await settle()
        assert rig.room.full == 1
        rig.task.trigger_checkpoint(barrier(1))
        await settle()
        assert rig.cut.taken == [(1, False)]
        assert rig.out() == [0, barrier(1)]


async def test_a_watermark_tick_does_not_keep_a_checkpoint_waiting_for_room() -> None:
    """The periodic watermark of a source goes out at once, so the trigger behind it is served."""

    def tick() -> Work:
        yield Watermark(5)

    rig = TaskRig(reading(Items(records(1), records(2))), capacity=1)
    async with rig.running():
        await settle()
        rig.timer(tick)
        rig.task.trigger_checkpoint(barrier(1))
        await settle()
        assert rig.out() == [1, Watermark(5), barrier(1)]


async def test_a_task_under_back_pressure_can_be_cancelled() -> None:
    """It waits on nothing that a cancellation does not end."""
    rig = TaskRig(Relay(), capacity=1)
    async with rig.running() as run:
        rig.put(batch(1), batch(2))
        await settle()
        run.cancel()
        with pytest.raises(asyncio.CancelledError):
            await run


async def test_a_timer_comes_in_between_two_records_of_a_unit() -> None:
    """It does not wait for the end of the batch."""
    log: list[Any] = []

    def fire() -> Work:
        log.append("timer")
        return ()

    class Mailing(PerRecord):
        def process_batch(self, one: RecordBatch) -> Work:
            for value in one.values:
                log.append(value)
                if value == 1:
                    rig.timer(fire)
                yield batch(value)

    rig = TaskRig(Mailing())
    async with rig.running():
        rig.put(batch(0, 1, 2, 3))
        await settle()
        assert log == [0, 1, "timer", 2, 3]


async def test_no_timer_comes_inside_one_record() -> None:
    """The operator says when it is inside a record; the timer waits until it is not."""
    log: list[Any] = []

    def fire() -> Work:
        log.append("timer")
        return ()

    class Long(PerRecord):
        def process_batch(self, one: RecordBatch) -> Work:
            for value in one.values:
                rig.timer(fire)
                for part in range(3):
                    log.append((value, part))
                    self.in_record = part < 2
                    yield batch(part)

    rig = TaskRig(Long())
    async with rig.running():
        rig.put(batch("a", "b"))
        await settle()
    inside = [("a", 0), ("a", 1), ("a", 2), "timer", ("b", 0), ("b", 1), ("b", 2), "timer"]
    assert log == inside


async def test_a_record_suspended_anywhere_in_the_chain_keeps_timers_out() -> None:
    """The timer of the head waits while an operator below is inside a record."""
    log: list[Any] = []

    def fire() -> Work:
        log.append("timer")
        return ()

    class Below(PerRecord):
        def process_batch(self, one: RecordBatch) -> Work:
            rig.timer(fire)
            self.in_record = True
            yield batch("part")
            log.append("part")
            self.in_record = False
            yield batch("whole")

    rig = TaskRig(Relay(), Below())
    async with rig.running():
        rig.put(batch(1))
        await settle()
    assert log == ["part", "timer"]


async def test_other_mail_waits_for_the_end_of_the_unit() -> None:
    """A checkpoint, for one, must not see half of a batch."""
    source = Items(records(1, 2, 3))
    rig = TaskRig(reading(source), PerRecord(), capacity=1)
    async with rig.running():
        await settle()
        rig.task.trigger_checkpoint(barrier(1))
        await settle()
        assert rig.cut.taken == []
        seen = []
        for _ in range(4):
            seen += rig.out()
            await settle()
    assert seen == [1, 2, 3, barrier(1)]
    assert rig.cut.states == [[[], [1, 2, 3]]]


async def test_mail_keeps_its_order() -> None:
    """Requests are served in the order in which they came."""
    log: list[int] = []
    rig = TaskRig(Relay())
    async with rig.running():
        for n in range(5):
            rig.mailbox.put(Mail(lambda n=n: log.append(n)))  # type: ignore[misc]  # appends
        await settle()
    assert log == [0, 1, 2, 3, 4]


async def test_mail_after_the_end_of_the_outputs_calls_no_operator() -> None:
    """A timer that comes too late is dropped."""
    fired: list[str] = []

    def fire() -> Work:
        fired.append("late")
        return ()

    rig = TaskRig(Relay(), lingers=True)
    async with rig.running():
        rig.put(DRAINED)
        await settle()
        rig.timer(fire)
        await settle()
    assert fired == []


async def test_a_failure_found_outside_of_any_call_fails_the_task() -> None:
    """It has the coordinates of its operator."""
    rig = TaskRig(Relay())
    async with rig.running() as run:
        node = rig.head
        rig.mailbox.put(Mail(lambda: node.raise_failure(OSError("connection lost"))))
        await settle()
        with pytest.raises(OperatorFailure, match="'Relay'") as failed:
            await run
    assert isinstance(failed.value.__cause__, OSError)


@pytest.mark.parametrize("in_record", [False, True])
async def test_a_failure_is_told_though_work_is_suspended(in_record: bool) -> None:
    """A sink that died never has room again, so nothing else would end the wait."""

    class Sink(PerRecord):
        always_has_room = False
        has_room = True

        def process_batch(self, one: RecordBatch) -> Work:
            for value in one.values:
                self.has_room = False
                self.in_record = in_record
                yield batch(value)

    rig = TaskRig(Relay(), Sink())
    async with rig.running() as run:
        rig.put(batch(1, 2, 3))
        await settle()
        assert not run.done()
        rig.last.context.fail(OSError("connection lost"))
        with pytest.raises(OperatorFailure, match="'Sink'"):
            await asyncio.wait_for(run, 5)
