"""Checkpoints as one task sees them: barriers, triggers, and the end in the midst of them."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from operators.elements import CheckpointCancelled, Watermark
from operators.source import InputStatus
from runtime.errors import OperatorFailure
from tests.runtime.chain_parts import DRAINED, STOPPED, PerRecord, Relay, barrier, batch
from tests.runtime.task_rig import Items, TaskRig, reading, records, settle


async def test_the_barrier_leaves_between_the_records_it_came_between() -> None:
    """The cut has what came before it and nothing of what came after."""
    rig = TaskRig(Relay(), records_max=1)
    async with rig.running():
        rig.put(batch(1), barrier(1), batch(2))
        await settle()
        assert rig.out() == [1, barrier(1), 2]
        assert rig.cut.states == [[[[1]]]]


async def test_a_channel_whose_barrier_came_waits_for_the_others() -> None:
    """Records behind the first barrier are not in the cut; they follow it in order."""
    operator = Relay()
    rig = TaskRig(operator, inputs=2, records_max=1)
    async with rig.running():
        rig.put(batch("a1"), barrier(1), batch("a2"))
        await settle()
        rig.put(batch("b1"), batch("b2"), channel=1)
        await settle()
        assert rig.cut.taken == []
        rig.put(barrier(1), batch("b3"), channel=1)
        await settle()
    assert rig.cut.states == [[[["a1"], ["b1"], ["b2"]]]]
    out = rig.out()
    assert out[:4] == ["a1", "b1", "b2", barrier(1)]
    assert sorted(out[4:]) == ["a2", "b3"]


async def test_a_cut_that_waits_for_its_fork_keeps_everything_from_the_operators() -> None:
    """Neither records nor timers nor the end of an input come through until it is resumed."""
    operator = Relay()
    rig = TaskRig(operator, inputs=2)
    rig.cut.waits = True
    async with rig.running():
        rig.put(barrier(1), batch("later"))
        rig.put(DRAINED, channel=1)
        rig.put(Watermark(5))
        await settle()
        rig.timer(lambda: (batch("timer"),))
        await settle()
        assert rig.out() == [barrier(1)]
        rig.cut.waits = False
        rig.task.resume()
        await settle()
        assert rig.out() == ["timer", "later", Watermark(5)]


async def test_a_newer_barrier_overtakes_an_alignment() -> None:
    """The older checkpoint is declined and passed on as cancelled; blocked data flows again."""
    rig = TaskRig(Relay(), inputs=2)
    async with rig.running():
        rig.put(barrier(1), batch("behind"), barrier(2))
        await settle()
        rig.put(barrier(2), channel=1)
        await settle()
    assert rig.listened == [(1, "cancelled upstream")]
    assert rig.cut.taken == [(2, False)]
    assert rig.out() == [CheckpointCancelled(1), "behind", barrier(2)]


async def test_a_cancelled_barrier_ends_the_alignment() -> None:
    """The checkpoint is declined, the receivers are told, and blocked data flows again."""
    rig = TaskRig(Relay(), inputs=2)
    async with rig.running():
        rig.put(barrier(1), batch("behind"))
        await settle()
        assert rig.out() == []
        rig.put(CheckpointCancelled(1), channel=1)
        await settle()
    assert rig.listened == [(1, "cancelled upstream")]
    assert rig.cut.taken == []
    assert rig.out() == [CheckpointCancelled(1), "behind"]


async def test_an_ended_input_counts_as_aligned() -> None:
    """The checkpoint needs the barriers of the others only, also if the end comes during it."""
    rig = TaskRig(Relay(), inputs=2)
    async with rig.running():
        rig.put(barrier(1))
        await settle()
        rig.put(DRAINED, channel=1)
        await settle()
        assert rig.cut.taken == [(1, False)]
        rig.put(barrier(2))
        await settle()
        assert rig.cut.taken == [(1, False), (2, False)]


async def test_the_watermark_that_an_end_frees_comes_behind_the_barrier_it_completes() -> None:
    """Timers that it fires belong to the next checkpoint, here and at the receivers alike."""
    operator = Relay()
    rig = TaskRig(operator, inputs=2)
    async with rig.running():
        rig.put(Watermark(8), barrier(1))
        rig.put(Watermark(3), DRAINED, channel=1)
        await settle()
    assert rig.out() == [Watermark(3), barrier(1), Watermark(8)]
    assert rig.cut.states == [[[Watermark(3)]]]


# -- triggers --------------------------------------------------------------------------------------


async def test_a_source_takes_its_checkpoint_when_told() -> None:
    """There is no input that could bring the barrier."""
    rig = TaskRig(reading(Items(records(1))))
    async with rig.running():
        await settle()
        rig.task.trigger_checkpoint(barrier(1))
        await settle()
        assert rig.out() == [1, barrier(1)]
        assert rig.cut.taken == [(1, False)]


async def test_a_checkpoint_that_is_over_is_not_triggered_again() -> None:
    """A trigger that comes late is ignored."""
    rig = TaskRig(reading(Items()))
    async with rig.running():
        for checkpoint_id in (2, 1, 2):
            rig.task.trigger_checkpoint(barrier(checkpoint_id))
        await settle()
        assert rig.cut.taken == [(2, False)]


async def test_a_task_with_open_inputs_waits_for_their_barriers() -> None:
    """A trigger there is only for the case that all inputs end without the barrier."""
    rig = TaskRig(Relay())
    async with rig.running():
        rig.task.trigger_checkpoint(barrier(1))
        await settle()
        assert rig.cut.taken == []
        rig.put(barrier(1), DRAINED)
        await settle()
        assert rig.cut.taken == [(1, False)]


async def test_a_trigger_is_remembered_until_the_inputs_have_ended_without_its_barrier() -> None:
    """The senders had ended before the checkpoint began: the cut has the final state."""
    operator = Relay()
    rig = TaskRig(operator, lingers=True)
    async with rig.running():
        rig.task.trigger_checkpoint(barrier(1))
        await settle()
        rig.put(batch(1), DRAINED)
        await settle()
        assert rig.cut.taken == [(1, True)]
        assert rig.cut.states[0][0][-1] == "end"  # type: ignore[index]  # the operator's log
        assert rig.out() == [1, DRAINED]


async def test_a_finished_task_goes_on_taking_checkpoints_until_it_is_released() -> None:
    """Its state belongs to every checkpoint; no barrier follows the end of its outputs."""
    rig = TaskRig(reading(Items(InputStatus.END_OF_INPUT)), lingers=True)
    async with rig.running() as run:
        await settle()
        rig.task.trigger_checkpoint(barrier(1))
        rig.task.trigger_checkpoint(barrier(2))
        await settle()
        assert rig.cut.taken == [(1, True), (2, True)]
        assert rig.out() == [DRAINED]
        assert not run.done()
        rig.task.release()
        await asyncio.wait_for(run, 5)


async def test_a_trigger_in_the_midst_of_the_last_words_comes_after_them() -> None:
    """The end of a source may take long; a cut inside it would lose what is still to come."""

    class Talkative(PerRecord):
        def end_input(self) -> Any:
            for n in range(3):
                self.log.append(f"word {n}")
                yield batch(n)

    operator = Talkative()
    source = Items(InputStatus.END_OF_INPUT)
    rig = TaskRig(reading(source), operator, capacity=1, lingers=True)
    async with rig.running():
        await settle()
        rig.task.trigger_checkpoint(barrier(1))
        seen: list[Any] = []
        for _ in range(5):
            await settle()
            seen += rig.out()
        assert seen == [0, 1, 2, DRAINED]
        assert rig.cut.taken == [(1, True)]


# -- stop ------------------------------------------------------------------------------------------


async def test_a_stopped_source_reads_no_more() -> None:
    """It waits for the final barrier."""
    source = Items()
    rig = TaskRig(reading(source))
    async with rig.running():
        rig.task.stop_source()
        await settle()
        source.add(records(1))
        await settle()
        assert rig.out() == []


async def test_after_the_final_barrier_the_outputs_end_without_drain() -> None:
    """No timer fires behind it, and the state is not that of a finished source."""
    rig = TaskRig(reading(Items(records(1))), lingers=True)
    async with rig.running() as run:
        await settle()
        rig.task.stop_source()
        rig.task.trigger_checkpoint(barrier(1, final=True))
        await settle()
        assert rig.out() == [1, barrier(1, final=True), STOPPED]
        assert rig.cut.taken == [(1, False)]
        assert rig.listened == []
        rig.task.release()
        await asyncio.wait_for(run, 5)


async def test_the_final_barrier_ends_a_task_with_inputs() -> None:
    """With all barriers in, nothing more is processed and no last words are said."""
    operator = Relay()
    rig = TaskRig(operator, inputs=2)
    async with rig.running() as run:
        rig.put(batch(1), barrier(1, final=True), STOPPED)
        rig.put(batch(2), Watermark(5), barrier(1, final=True), STOPPED, channel=1)
        await asyncio.wait_for(run, 5)
    assert sorted(each for each in operator.log if isinstance(each, list)) == [[1], [2]]
    assert "end" not in operator.log
    assert rig.out()[-2:] == [barrier(1, final=True), STOPPED]
    assert rig.cut.taken == [(1, False)]


async def test_a_final_barrier_ends_a_task_whose_other_input_had_ended() -> None:
    """A side of the job that was finished does not drain the rest."""
    operator = Relay()
    rig = TaskRig(operator, inputs=2)
    async with rig.running() as run:
        rig.put(DRAINED)
        rig.put(barrier(1, final=True), STOPPED, channel=1)
        await asyncio.wait_for(run, 5)
    assert operator.log == []
    assert rig.out() == [barrier(1, final=True), STOPPED]


# -- restored as finished, and being told ---------------------------------------------------------


class Closed(Relay):
    """May not be used; says so where it is."""

    def setup(self, context: Any) -> None:
        raise AssertionError("it had finished")

    def close(self) -> None:
        raise AssertionError("it had finished")

    async def restore_finished(self, context: Any) -> None:
        self.log.append("restored as finished")


async def test_a_task_restored_as_finished_only_ends_its_outputs() -> None:
    """Its operators stay shut and keep their state in every checkpoint."""
    operator = Closed()
    rig = TaskRig(operator, restored_finished=True, lingers=True)
    async with rig.running() as run:
        await settle()
        assert rig.out() == [DRAINED]
        assert rig.listened == ["finished"]
        rig.task.trigger_checkpoint(barrier(1))
        rig.task.notify_complete(1)
        await settle()
        assert rig.cut.taken == [(1, True)]
        rig.task.release()
        await asyncio.wait_for(run, 5)
    assert operator.log == ["restored as finished"]


class Told(Relay):
    """Notes what it is told about checkpoints."""

    def notify_checkpoint_complete(self, checkpoint_id: int) -> None:
        self.log.append(("complete", checkpoint_id))

    def notify_checkpoint_aborted(self, checkpoint_id: int) -> None:
        self.log.append(("aborted", checkpoint_id))


async def test_operators_are_told_how_a_checkpoint_ended() -> None:
    """Each operator of the chain, and of an abort also what writes its state."""
    log: list[Any] = []
    rig = TaskRig(Told(log), Told(log))
    async with rig.running():
        rig.task.notify_aborted(1)
        rig.task.notify_complete(2)
        await settle()
    assert log == [("aborted", 1)] * 2 + [("complete", 2)] * 2
    assert rig.cut.aborted == [1]


async def test_a_failure_while_being_told_names_operator_and_checkpoint() -> None:
    """It fails the task."""

    class Failing(Relay):
        def notify_checkpoint_complete(self, checkpoint_id: int) -> None:
            raise OSError("no broker")

    rig = TaskRig(Failing())
    async with rig.running() as run:
        rig.task.notify_complete(7)
        with pytest.raises(OperatorFailure, match=r"'Failing'.*about checkpoint 7"):
            await run
