"""The turns of a loop: which task goes on when, and for how long."""

import asyncio
from collections.abc import Generator
from contextvars import ContextVar

import pytest

from runtime.turn import LoopTurn, Wakeup
from tests.runtime.task_rig import Ticks, settle

Steps = Generator[None, None, None]


class Worker:
    """Takes so many steps of a length, and gives way whenever its share is used up."""

    def __init__(self, turn: LoopTurn, ticks: Ticks, log: list[str], name: str = "a") -> None:
        self.wakeup = Wakeup(turn)
        self._turn = turn
        self._ticks = ticks
        self._log = log
        self._name = name

    def steps(self, number: int, seconds: float) -> Steps:
        for _ in range(number):
            self._log.append(self._name)
            self._ticks.now += seconds
            if self._turn.over():
                self.wakeup.go_on()
                yield

    def waiting(self) -> Steps:
        """A step for each wake-up."""
        while True:
            self._log.append(self._name)
            self.wakeup.waits = True
            yield


class Rig:
    """Workers on the running loop, which notes when it comes round."""

    def __init__(self) -> None:
        self.log: list[str] = []
        self.ticks = Ticks()
        self.turn = LoopTurn(
            asyncio.get_running_loop(),
            self.ticks,
            seconds=0.004,
            on_turn=lambda: self.log.append("turn"),
        )

    def worker(self, name: str = "a") -> Worker:
        return Worker(self.turn, self.ticks, self.log, name)


@pytest.fixture
async def rig() -> Rig:
    return Rig()


async def test_the_tasks_of_one_turn_share_its_time(rig: Rig) -> None:
    """Each gives way after a quarter of it, and the loop comes round after the whole."""
    workers = [rig.worker(name) for name in "abc"]
    await asyncio.gather(*(each.wakeup.drive(each.steps(4, 0.0005)) for each in workers))
    assert "".join(rig.log).replace("turn", "|") == "aabbccaa|bbcc"


async def test_a_long_step_ends_the_turn(rig: Rig) -> None:
    """The others have the next one, with a time of its own."""
    long, short = rig.worker("a"), rig.worker("b")
    await asyncio.gather(
        long.wakeup.drive(long.steps(2, 1.0)), short.wakeup.drive(short.steps(2, 0.0005))
    )
    assert "".join(rig.log).replace("turn", "|") == "a|bba|"


async def test_the_loop_comes_round_between_two_turns(rig: Rig) -> None:
    """However much there is to do."""
    worker = rig.worker()
    driven = asyncio.ensure_future(worker.wakeup.drive(worker.steps(10, 1.0)))
    rounds = 0
    while not driven.done():
        await asyncio.sleep(0)
        rounds += 1
    assert rounds >= 10


async def test_a_loop_without_work_sleeps(rig: Rig) -> None:
    """Nothing is called while all tasks wait."""
    worker = rig.worker()
    driven = asyncio.ensure_future(worker.wakeup.drive(worker.waiting()))
    await settle()
    assert rig.turn.asleep
    assert rig.log == ["a"]
    driven.cancel()


async def test_several_calls_end_one_wait(rig: Rig) -> None:
    """Data, room and mail may come in the same turn."""
    worker = rig.worker()
    driven = asyncio.ensure_future(worker.wakeup.drive(worker.waiting()))
    await settle()
    worker.wakeup.wake()
    worker.wakeup.wake()
    await settle()
    assert rig.log == ["a", "a"]
    driven.cancel()


async def test_a_call_without_a_wait_is_forgotten(rig: Rig) -> None:
    """A task looks at everything before it waits."""
    worker = rig.worker()

    def wakes_itself() -> Steps:
        worker.wakeup.wake()
        yield from worker.waiting()

    driven = asyncio.ensure_future(worker.wakeup.drive(wakes_itself()))
    await settle()
    assert rig.log == ["a"]
    driven.cancel()


async def test_tasks_wake_each_other_within_a_turn(rig: Rig) -> None:
    """Handing on a record costs no turn of the loop."""
    ping, pong = rig.worker("ping"), rig.worker("pong")
    rounds: list[int] = []

    def hand(one: Worker, other: Worker) -> Steps:
        for number in range(100):
            rounds.append(number)
            other.wakeup.wake()
            one.wakeup.waits = True
            yield

    hands = [
        asyncio.ensure_future(one.wakeup.drive(hand(one, other)))
        for one, other in ((ping, pong), (pong, ping))
    ]
    await asyncio.sleep(0)  # they begin
    await asyncio.sleep(0)  # and have a turn
    assert len(rounds) == 200
    for each in hands:
        each.cancel()


async def test_an_error_ends_the_task_only(rig: Rig) -> None:
    """It is raised where the task is awaited."""
    failing, other = rig.worker("failing"), rig.worker("other")

    def fail() -> Steps:
        yield from failing.steps(1, 1.0)
        raise ValueError("of the task")

    driven = asyncio.ensure_future(other.wakeup.drive(other.steps(3, 1.0)))
    with pytest.raises(ValueError, match="of the task"):
        await failing.wakeup.drive(fail())
    await driven
    assert rig.log.count("other") == 3


async def test_a_cancelled_task_is_closed_and_takes_no_further_step(rig: Rig) -> None:
    """Whether it waits or is ready."""
    closed: list[str] = []

    def work(worker: Worker, steps: Steps, name: str) -> Steps:
        try:
            yield from steps
        finally:
            closed.append(name)

    waiting, ready = rig.worker("waiting"), rig.worker("ready")
    tasks = [
        asyncio.ensure_future(waiting.wakeup.drive(work(waiting, waiting.waiting(), "waiting"))),
        asyncio.ensure_future(ready.wakeup.drive(work(ready, ready.steps(999, 1.0), "ready"))),
    ]
    await settle(4)
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks)
    taken = len(rig.log)
    waiting.wakeup.wake()
    await settle()
    assert sorted(closed) == ["ready", "waiting"]
    assert [each for each in rig.log[taken:] if each != "turn"] == []
    assert rig.turn.asleep


async def test_an_error_together_with_the_cancellation_is_raised(rig: Rig) -> None:
    """In the same turn before it, when nobody has seen the error yet, and right after it."""
    before, cancelling, after = rig.worker(), rig.worker(), rig.worker()

    def fail() -> Steps:
        raise ValueError("of the task")
        yield

    def cancel() -> Steps:
        for each in driven:
            each.cancel()
        return
        yield

    works = [(before, fail()), (cancelling, cancel()), (after, fail())]
    driven = [asyncio.ensure_future(each.wakeup.drive(work)) for each, work in works]
    await asyncio.wait(driven)
    assert [str(each.exception()) for each in (driven[0], driven[2])] == ["of the task"] * 2
    assert driven[1].cancelled()


async def test_all_steps_share_the_context_of_their_task(rig: Rig) -> None:
    """What is set before is there, what one step sets is there afterwards, and can be reset."""
    variable: ContextVar[str] = ContextVar("variable")
    seen: list[str] = []

    async def task(worker: Worker) -> None:
        token = variable.set("before")

        def work() -> Steps:
            seen.append(variable.get())
            worker.wakeup.go_on()
            yield
            variable.reset(token)
            seen.append(variable.get())
            variable.set("in a step")

        await worker.wakeup.drive(work())
        seen.append(variable.get())

    variable.set("outside")
    worker = rig.worker()
    loop = asyncio.get_running_loop()
    await loop.create_task(task(worker), context=worker.wakeup.context)
    assert seen == ["before", "outside", "in a step"]
    assert variable.get() == "outside"


def test_an_interrupt_leaves_the_loop_and_stops_no_other_task() -> None:
    """As asyncio has it: it is the error of the task, and the loop raises it."""
    loop = asyncio.new_event_loop()
    ticks, log = Ticks(), list[str]()
    turn = LoopTurn(loop, ticks, seconds=0.004)
    worker, other = Worker(turn, ticks, log), Worker(turn, ticks, log, "other")

    def interrupted() -> Steps:
        yield from worker.steps(1, 0.0)
        raise KeyboardInterrupt

    try:
        failed = loop.create_task(worker.wakeup.drive(interrupted()))
        left = loop.create_task(other.wakeup.drive(other.steps(30, 1.0)))
        with pytest.raises(KeyboardInterrupt):
            loop.run_until_complete(left)
        loop.run_until_complete(left)
        assert isinstance(failed.exception(), KeyboardInterrupt)
    finally:
        loop.close()
    assert log.count("other") == 30
