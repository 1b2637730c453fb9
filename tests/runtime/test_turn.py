"""The time budget that all tasks of a loop share."""

import asyncio

from runtime.turn import LoopTurn
from tests.runtime.task_rig import Ticks


def turn(ticks: Ticks, seconds: float = 0.002) -> LoopTurn:
    return LoopTurn(asyncio.get_running_loop(), ticks, seconds=seconds)


async def test_the_tasks_of_one_turn_share_its_budget() -> None:
    """Once it is used up it stays so for every task until the loop comes round."""
    ticks = Ticks()
    budget = turn(ticks)
    ticks.now = 0.0015
    assert not budget.over()
    ticks.now = 0.002
    assert budget.over()
    budget.renew()
    assert budget.over()


async def test_the_next_turn_has_a_budget_of_its_own() -> None:
    """It begins when the loop comes round to the marker of the first task that asked."""
    ticks = Ticks()
    budget = turn(ticks)
    ticks.now = 0.005
    budget.renew()
    budget.renew()
    await asyncio.sleep(0)
    assert not budget.over()
    assert budget.end == 0.005 + 0.002


async def test_each_new_turn_is_told_once() -> None:
    """What has to be done between two turns hangs on that; an idle loop sleeps."""
    told: list[float] = []
    ticks = Ticks()
    budget = LoopTurn(
        asyncio.get_running_loop(), ticks, seconds=0.002, on_turn=lambda: told.append(ticks.now)
    )
    for _ in range(2):
        budget.renew()
        budget.renew()
        await asyncio.sleep(0)
        ticks.now += 1
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert told == [0.0, 1.0]
