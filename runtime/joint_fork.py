"""One snapshot child for the subtasks of a process whose barriers come close together.

Every child that lives beside another holds pages of the state that the others have copied since:
with two children a page can exist three times. So a subtask with big state waits at its barrier
for the siblings whose state was big at their last cut, and one child writes the files of all.
"""

from __future__ import annotations

import asyncio
import gc
import os
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field

from runtime.fork_snapshot import DescriptorSink, SnapshotChild, SnapshotChildError
from statebackends.clock import Clock, ScheduledCall
from statebackends.snapshot import ChunkSink

WAIT_MS = 100
"""How long a subtask waits at its barrier, at most; it takes no input meanwhile."""

Write = Callable[[ChunkSink, Callable[[], bool]], object]


class ChildSlots:
    """Counts the snapshot children of this process."""

    __slots__ = ("alive",)

    def __init__(self) -> None:
        self.alive = 0


@dataclass(slots=True)
class Gathering:
    """The parts of one checkpoint that share a child; open until that is forked."""

    checkpoint_id: int
    expected: set[object]
    parts: list[ForkPart] = field(default_factory=list)
    deadline: ScheduledCall | None = None
    child: SnapshotChild | None = None


@dataclass(slots=True, eq=False)
class ForkPart:
    """One subtask's file in a child that is, or will be, forked."""

    gathering: Gathering
    write: Write
    path: str
    resume: Callable[[], None]
    written: asyncio.Future[None]
    """Done once the file is whole; has a `SnapshotChildError` if it will never be."""


class JointFork:
    """Forks for the subtasks of one attempt; each is a member under a name of its own."""

    def __init__(
        self,
        clock: Clock,
        slots: ChildSlots,
        spawn: Callable[[Coroutine[object, object, None]], asyncio.Task[None]],
    ) -> None:
        self._clock = clock
        self._slots = slots
        self._spawn = spawn
        self._big: dict[object, int] = {}
        """The newest checkpoint of each member whose last cut was big."""
        self._open: dict[int, Gathering] = {}

    def small(self, member: object) -> None:
        """A member's cut was too small for a child: nobody waits for it."""
        self._big.pop(member, None)
        for gathering in list(self._open.values()):
            gathering.expected.discard(member)
            if not gathering.expected:
                self._fork(gathering)

    def join(
        self,
        checkpoint_id: int,
        member: object,
        write: Write,
        path: str,
        resume: Callable[[], None],
    ) -> tuple[ForkPart, bool]:
        """Has a child write `path`; also whether the member must wait, untouched, for `resume`.

        The child is forked within this call, and `resume` not called for the member, if nobody
        else is expected.
        """
        gathering = self._open.get(checkpoint_id)
        if gathering is None:
            gathering = self._gather(checkpoint_id)
        self._big[member] = checkpoint_id
        gathering.expected.discard(member)
        written = asyncio.get_running_loop().create_future()
        part = ForkPart(gathering, write, path, resume, written)
        gathering.parts.append(part)
        if gathering.expected:
            return part, True
        self._fork(gathering, within=part)
        return part, False

    def leave(self, part: ForkPart) -> None:
        """A part is not wanted any more; with the last one the child goes."""
        gathering = part.gathering
        part.written.cancel()
        gathering.parts.remove(part)
        if gathering.parts:
            return
        if gathering.child is not None:
            gathering.child.kill()
        elif self._open.get(gathering.checkpoint_id) is gathering:
            self._close(gathering)

    def _gather(self, checkpoint_id: int) -> Gathering:
        expected = {member for member, newest in self._big.items() if newest < checkpoint_id}
        gathering = self._open[checkpoint_id] = Gathering(checkpoint_id, expected)
        due_ms = self._clock.now_ms() + WAIT_MS
        gathering.deadline = self._clock.call_at(due_ms, lambda: self._fork(gathering))
        return gathering

    def _close(self, gathering: Gathering) -> None:
        del self._open[gathering.checkpoint_id]
        if gathering.deadline is not None:
            gathering.deadline.cancel()

    def _fork(self, gathering: Gathering, within: ForkPart | None = None) -> None:
        """Forks for the parts that are there; later ones of the checkpoint gather anew."""
        self._close(gathering)
        parts = list(gathering.parts)
        try:
            child = gathering.child = _fork_without_collection(parts)
        except OSError as error:
            _settle(parts, SnapshotChildError(f"no process could be forked: {error}"))
        else:
            self._slots.alive += 1
            watch = self._spawn(self._watch(gathering, child))
            watch.add_done_callback(lambda _: self._part_with(child))
        for part in parts:
            if part is not within:
                part.resume()

    async def _watch(self, gathering: Gathering, child: SnapshotChild) -> None:
        try:
            await child.wait()
        except SnapshotChildError as error:
            _settle(gathering.parts, error)
        else:
            _settle(gathering.parts, None)
        finally:
            gathering.child = None

    def _part_with(self, child: SnapshotChild) -> None:
        # A watch that is cancelled before its first step has not waited for the child.
        child.abandon()
        self._slots.alive -= 1


def _settle(parts: list[ForkPart], failure: SnapshotChildError | None) -> None:
    for part in parts:
        if part.written.done():
            continue
        if failure is None:
            part.written.set_result(None)
        else:
            part.written.set_exception(SnapshotChildError(*failure.args))
            # Whoever waits gets it; that nobody may wait any more is no fault.
            part.written.exception()


def _fork_without_collection(parts: list[ForkPart]) -> SnapshotChild:
    first, *others = parts

    def write_all(sink: ChunkSink, alive: Callable[[], bool]) -> None:
        first.write(sink, alive)
        for part in others:
            descriptor = os.open(part.path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            part.write(DescriptorSink(descriptor), alive)
            os.fsync(descriptor)

    # A collection inside the fork's page copying would double the stall.
    enabled = gc.isenabled()
    gc.disable()
    try:
        return SnapshotChild(write_all, first.path)
    finally:
        if enabled:
            gc.enable()
