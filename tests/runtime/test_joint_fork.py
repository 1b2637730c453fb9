"""Subtasks whose barriers come close together share one snapshot child."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterator
from pathlib import Path

import pytest

from runtime.clock import SimulatedClock
from runtime.fork_snapshot import SnapshotChildError, can_fork
from runtime.joint_fork import WAIT_MS, ChildSlots, ForkPart, JointFork, Write
from tests.runtime.children import children

pytestmark = pytest.mark.skipif(not can_fork(), reason="the platform has no pidfd")
SECONDS = 10


@pytest.fixture(autouse=True)
def no_children() -> Iterator[None]:
    """No test leaves a child behind."""
    before = children()
    yield
    assert children() <= before


class Rig:
    """A joint fork with members a and b whose last cuts were big."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.clock = SimulatedClock()
        self.slots = ChildSlots()
        self.work: list[asyncio.Task[None]] = []
        self.resumed: list[str] = []
        self.forks = JointFork(self.clock, self.slots, self._spawn)

    def _spawn(self, coroutine: Coroutine[object, object, None]) -> asyncio.Task[None]:
        self.work.append(asyncio.ensure_future(coroutine))  # type: ignore[arg-type]  # a coroutine
        return self.work[-1]

    def join(
        self, checkpoint_id: int, member: str, write: Write | None = None
    ) -> tuple[ForkPart, bool]:
        def own(sink: object, _: object) -> None:
            sink.write(member.encode())  # type: ignore[attr-defined]  # a sink

        path = str(self.folder / f"{checkpoint_id}-{member}")
        resume = self.resumed.append
        return self.forks.join(
            checkpoint_id, member, write or own, path, lambda: resume(f"{member}{checkpoint_id}")
        )

    async def done(self) -> None:
        await asyncio.wait_for(asyncio.gather(*self.work, return_exceptions=True), SECONDS)
        await asyncio.sleep(0)


@pytest.fixture
async def rig(tmp_path: Path) -> Rig:
    """Checkpoint 1 is over: nobody was expected in it, so each was forked alone."""
    made = Rig(tmp_path)
    for member in "ab":
        part, waits = made.join(1, member)
        assert not waits
        await asyncio.wait_for(part.written, SECONDS)
    await made.done()
    return made


async def test_members_known_to_be_big_share_a_child(rig: Rig) -> None:
    """The first one waits untouched; with the last one there is one child for all files."""
    first, waits = rig.join(2, "a")
    assert waits
    assert rig.slots.alive == 0
    second, waits = rig.join(2, "b")
    assert not waits
    assert rig.slots.alive == 1
    assert rig.resumed == ["a2"]
    await asyncio.wait_for(asyncio.gather(first.written, second.written), SECONDS)
    assert [(rig.folder / f"2-{member}").read_text() for member in "ab"] == ["a", "b"]
    await rig.done()
    assert rig.slots.alive == 0


async def test_a_member_waits_for_a_bounded_time(rig: Rig) -> None:
    """A sibling whose barrier does not come is left to a child of its own."""
    first, waits = rig.join(2, "a")
    assert waits
    rig.clock.advance_by(WAIT_MS - 1)
    assert rig.resumed == []
    rig.clock.advance_by(1)
    assert rig.resumed == ["a2"]
    await asyncio.wait_for(first.written, SECONDS)
    await rig.done()


async def test_nobody_waits_for_a_member_that_turned_small(rig: Rig) -> None:
    """Its small cut ends the wait, and it is not expected again."""
    first, waits = rig.join(2, "a")
    assert waits
    rig.forks.small("b")
    assert rig.resumed == ["a2"]
    await asyncio.wait_for(first.written, SECONDS)
    third, waits = rig.join(3, "a")
    assert not waits
    await asyncio.wait_for(third.written, SECONDS)
    await rig.done()


async def test_a_failing_part_fails_all_of_the_child(rig: Rig) -> None:
    """None of the files can be trusted to be whole."""

    def fails(sink: object, _: object) -> None:
        raise OSError("no space")

    first, _ = rig.join(2, "a")
    second, _ = rig.join(2, "b", fails)
    for part in (first, second):
        with pytest.raises(SnapshotChildError, match="no space"):
            await asyncio.wait_for(part.written, SECONDS)
    await rig.done()


async def test_a_part_that_leaves_before_the_fork_is_not_written(rig: Rig) -> None:
    """The others go on without it."""
    first, _ = rig.join(2, "a")
    rig.forks.leave(first)
    second, waits = rig.join(2, "b")
    assert not waits
    await asyncio.wait_for(second.written, SECONDS)
    assert not (rig.folder / "2-a").exists()
    await rig.done()


async def test_the_last_part_to_leave_ends_the_child(rig: Rig) -> None:
    """Nobody wants its files any more."""

    def blocks(sink: object, alive: object) -> None:
        import signal

        signal.pause()

    first, _ = rig.join(2, "a", blocks)
    second, _ = rig.join(2, "b", blocks)
    rig.forks.leave(first)
    assert rig.slots.alive == 1
    rig.forks.leave(second)
    await rig.done()
    assert rig.slots.alive == 0
