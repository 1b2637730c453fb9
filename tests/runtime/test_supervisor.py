"""One supervisor for all coroutines of an attempt: causes, stops, and nothing left behind."""

from __future__ import annotations

import asyncio
import logging

import pytest

from runtime.supervisor import StuckTasksError, Supervisor

SECONDS = 10


async def ends() -> None:
    """A coroutine that is done at once."""


async def waits() -> None:
    await asyncio.Event().wait()


async def fails(error: BaseException, turns: int = 0) -> None:
    for _ in range(turns):
        await asyncio.sleep(0)
    raise error


async def run(supervisor: Supervisor) -> None:
    await asyncio.wait_for(supervisor.run(), SECONDS)


def others() -> set[str]:
    return {task.get_name() for task in asyncio.all_tasks() - {asyncio.current_task()}}


async def test_the_run_ends_when_all_members_have() -> None:
    """Background work does not keep it, and is ended."""
    supervisor = Supervisor()
    supervisor.spawn(ends())
    supervisor.spawn(ends())
    background = supervisor.spawn(waits(), background=True)
    await run(supervisor)
    assert background.cancelled()


async def test_a_run_without_members_ends_at_once() -> None:
    """There is nothing to wait for."""
    supervisor = Supervisor()
    supervisor.spawn(waits(), background=True)
    await run(supervisor)
    assert others() == set()


async def test_the_first_failure_in_time_is_the_cause() -> None:
    """The user's exception itself is raised; later ones are notes on it."""
    supervisor = Supervisor()
    first = ValueError("first")
    supervisor.spawn(fails(KeyError("second"), turns=1))
    supervisor.spawn(fails(first))
    supervisor.spawn(waits())
    with pytest.raises(ValueError, match="first") as raised:
        await run(supervisor)
    assert raised.value is first
    assert first.__notes__ == ["then also: KeyError: 'second'"]
    assert others() == set()


async def test_a_failure_in_answer_to_the_cancellation_is_a_note() -> None:
    """It is a consequence, not the cause."""

    async def clings() -> None:
        try:
            await waits()
        finally:
            raise OSError("while closing")

    supervisor = Supervisor()
    supervisor.spawn(clings())
    supervisor.spawn(fails(ValueError("cause")))
    with pytest.raises(ValueError, match="cause") as raised:
        await run(supervisor)
    assert raised.value.__notes__ == ["then also: OSError: while closing"]


async def test_a_failing_background_coroutine_fails_the_run() -> None:
    """Checkpoints that no longer work must not go unnoticed."""
    supervisor = Supervisor()
    supervisor.spawn(waits())
    supervisor.spawn(fails(ValueError("checkpoints")), background=True)
    with pytest.raises(ValueError, match="checkpoints"):
        await run(supervisor)
    assert others() == set()


async def test_a_background_failure_together_with_the_end_is_not_lost() -> None:
    """Whichever of both comes first within the last turns."""
    for turns in range(6):
        supervisor = Supervisor()
        supervisor.spawn(fails(ValueError("late"), turns=turns), background=True)

        async def lasts(turns: int = turns) -> None:
            for _ in range(turns):
                await asyncio.sleep(0)

        supervisor.spawn(lasts())
        with pytest.raises(ValueError, match="late"):
            await run(supervisor)


async def test_a_failure_from_outside_of_the_coroutines_fails_the_run() -> None:
    """A callback reports it."""
    supervisor = Supervisor()
    supervisor.spawn(waits())
    asyncio.get_running_loop().call_soon(supervisor.fail, OSError("from a callback"))
    with pytest.raises(OSError, match="from a callback"):
        await run(supervisor)


async def test_a_stop_ends_the_run_without_an_error() -> None:
    """Everything is cancelled."""
    supervisor = Supervisor()
    member = supervisor.spawn(waits())
    asyncio.get_running_loop().call_soon(supervisor.request_stop)
    await run(supervisor)
    assert member.cancelled()
    assert supervisor.stop_requested


@pytest.mark.parametrize("stop_first", [True, False])
async def test_a_stop_that_coincides_with_a_failure_is_honoured(
    stop_first: bool, caplog: pytest.LogCaptureFixture
) -> None:
    """In the same turn of the loop; the failure is told in the log."""
    supervisor = Supervisor()
    supervisor.spawn(waits())
    loop = asyncio.get_running_loop()
    calls = [supervisor.request_stop, lambda: supervisor.fail(ValueError("at the same time"))]
    for call in calls if stop_first else reversed(calls):
        loop.call_soon(call)
    with caplog.at_level(logging.WARNING):
        await run(supervisor)
    assert "at the same time" in caplog.text


async def test_a_coroutine_that_swallows_its_cancellation_is_named() -> None:
    """Within the deadline, with the line that it is at; the failure before it is the cause."""
    let_go = asyncio.Event()

    async def stubborn() -> None:
        while not let_go.is_set():
            try:
                await let_go.wait()
            except asyncio.CancelledError:
                continue

    supervisor = Supervisor(cancellation_seconds=0.01)
    task = supervisor.spawn(stubborn(), "the stubborn one")
    cause = ValueError("first")
    supervisor.spawn(fails(cause, turns=2))
    try:
        with pytest.raises(StuckTasksError) as raised:
            await run(supervisor)
    finally:
        let_go.set()
        await asyncio.wait([task])
    assert "await let_go.wait()" in str(raised.value)
    assert "the stubborn one" in str(raised.value)
    assert raised.value.__cause__ is cause


async def test_what_is_started_during_the_cancellation_is_ended_too() -> None:
    """Nothing runs any more on return."""
    supervisor = Supervisor()

    async def starts_another() -> None:
        try:
            await waits()
        finally:
            supervisor.spawn(waits(), background=True)

    supervisor.spawn(starts_another())
    asyncio.get_running_loop().call_soon(supervisor.request_stop)
    await run(supervisor)
    assert others() == set()


async def test_a_cancelled_run_leaves_nothing_running() -> None:
    """Whoever runs the job may be cancelled itself."""
    supervisor = Supervisor()
    supervisor.spawn(waits())
    supervisor.spawn(waits(), background=True)
    running = asyncio.create_task(supervisor.run())
    await asyncio.sleep(0)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert others() == set()


async def test_a_member_cancelled_by_another_is_no_good_end() -> None:
    """A task that was cancelled has not processed its input."""
    supervisor = Supervisor()
    member = supervisor.spawn(waits(), "count")
    asyncio.get_running_loop().call_soon(member.cancel)
    with pytest.raises(RuntimeError, match="'count' was cancelled"):
        await run(supervisor)


@pytest.mark.parametrize("background", [True, False])
async def test_a_cancellation_from_within_is_a_failure(background: bool) -> None:
    """A client library that cancels what somebody awaits must not end the job in silence."""
    supervisor = Supervisor()
    supervisor.spawn(waits())
    supervisor.spawn(fails(asyncio.CancelledError()), "sink", background=background)
    with pytest.raises(RuntimeError, match="'sink' was cancelled"):
        await run(supervisor)


async def test_background_work_may_be_given_up() -> None:
    """An aborted checkpoint is no failure."""
    supervisor = Supervisor()
    given_up = supervisor.spawn(waits(), background=True)

    async def gives_up() -> None:
        await asyncio.sleep(0)
        given_up.cancel()
        await asyncio.sleep(0)

    supervisor.spawn(gives_up())
    await run(supervisor)
    assert given_up.cancelled()
