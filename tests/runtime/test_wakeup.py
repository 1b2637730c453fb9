"""The one wait of a task."""

import asyncio

import pytest

from runtime.wakeup import Wakeup


@pytest.fixture
async def wakeup() -> Wakeup:
    return Wakeup(asyncio.get_running_loop())


async def test_several_calls_end_one_wait(wakeup: Wakeup) -> None:
    """Data, room and mail may come in the same turn."""
    waiting = wakeup.waiting()
    wakeup.wake()
    wakeup.wake()
    await waiting
    assert waiting.done()


async def test_a_call_without_a_wait_is_forgotten(wakeup: Wakeup) -> None:
    """A task looks at everything before it waits."""
    wakeup.wake()
    assert not wakeup.waiting().done()


async def test_a_cancelled_wait_can_be_woken(wakeup: Wakeup) -> None:
    """The call comes too late and does nothing."""
    waiting = wakeup.waiting()
    waiting.cancel()
    wakeup.wake()
    assert waiting.cancelled()


async def test_each_wait_needs_a_call_of_its_own(wakeup: Wakeup) -> None:
    """The next one is not ended by the last."""
    first = wakeup.waiting()
    wakeup.wake()
    second = wakeup.waiting()
    assert first.done()
    assert not second.done()
