"""The simulated event loop: time, order, and what it refuses."""

from __future__ import annotations

import asyncio
from random import Random

import pytest

from runtime.simulation_loop import SimulatedDeath, SimulationError, new_simulated_loop


async def later(seconds: float) -> None:
    """Waits in virtual time."""
    loop = asyncio.get_running_loop()
    woken = loop.create_future()
    loop.call_later(seconds, woken.set_result, None)
    await woken


def test_time_passes_only_as_far_as_somebody_waits() -> None:
    """A sleep of an hour takes an hour of virtual time and no other."""
    loop = new_simulated_loop(Random(1))

    async def sleep() -> float:
        began = loop.time()
        await later(3_600)
        return loop.time() - began

    assert loop.run_until_complete(sleep()) == pytest.approx(3_600, abs=0.01)


def order(seed: int) -> list[int]:
    """The order in which ten tasks run that are ready at once."""
    seen: list[int] = []

    async def one(number: int) -> None:
        seen.append(number)

    async def main() -> None:
        await asyncio.gather(*(one(number) for number in range(10)))

    new_simulated_loop(Random(seed)).run_until_complete(main())
    return seen


def test_the_seed_decides_which_ready_task_comes_next() -> None:
    """The same order for the same seed, another for another."""
    assert order(1) == order(1)
    assert order(1) != order(2)


def test_a_deadlock_names_the_tasks_and_where_they_wait() -> None:
    """Nothing is ready and nothing is scheduled."""

    async def wait_for_ever() -> None:
        await asyncio.Event().wait()

    async def main() -> None:
        waiting = asyncio.get_running_loop().create_task(wait_for_ever(), name="reader")
        await waiting

    loop = new_simulated_loop(Random(1))
    with pytest.raises(SimulationError, match=r"deadlock.*reader in .*wait_for_ever"):
        loop.run_until_complete(main())
    loop.abandon()


def test_threads_are_refused() -> None:
    """Their order could not be replayed."""

    async def main() -> None:
        await asyncio.to_thread(print)

    loop = new_simulated_loop(Random(1))
    with pytest.raises(SimulationError, match="no thread can be used in a simulation"):
        loop.run_until_complete(main())
    with pytest.raises(SimulationError, match="there are none"):
        loop.call_soon_threadsafe(print)


def test_a_death_lets_no_finally_block_get_anywhere() -> None:
    """What is behind an await in it does not run, no task begins, nobody is warned."""
    done: list[str] = []

    async def clean_up() -> None:
        done.append("cleaned up")

    async def main() -> None:
        try:
            await later(1)
            loop.die()
        finally:
            done.append("begun")
            await asyncio.gather(clean_up(), clean_up())
            done.append("ended")

    loop = new_simulated_loop(Random(1))
    with pytest.raises(SimulatedDeath):
        loop.run_until_complete(main())
    loop.abandon()
    assert done == ["begun"]


def test_an_error_that_nobody_looked_at_is_kept() -> None:
    """A job that leaves one behind is found out."""

    async def fail() -> None:
        raise ValueError("lost")

    async def main() -> None:
        task = asyncio.get_running_loop().create_task(fail())
        await later(1)
        del task

    loop = new_simulated_loop(Random(1))
    loop.run_until_complete(main())
    assert ["lost" in error for error in loop.errors] == [True]
