"""The checkpoints of one subtask: the cut is taken at once, the rest goes on beside the task."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass
from typing import Protocol

from operators.elements import CheckpointBarrier
from runtime.chain import ChainNode
from runtime.errors import USER_FAILURES, failure_of, summary
from runtime.fork_snapshot import SnapshotChildError, can_fork
from runtime.joint_fork import ChildSlots, ForkPart, JointFork
from statebackends.backend import KeyedSnapshot
from statebackends.errors import StateError
from statebackends.operator_state_format import OperatorStateSnapshot
from statebackends.snapshot import ChunkSink, SnapshotFileWriter
from statebackends.storage import CheckpointStorage, StateFile

INLINE_ENTRIES_MAX = 5000
"""A cut with fewer entries is serialised at once; a fork would cost more."""

CHILDREN_MAX = 4
"""Snapshot children alive in this process at once; a cut beyond them is serialised at once."""


def _nothing_to_resume() -> None:
    """For a subtask that has no siblings to wait for."""


class CheckpointReplies(Protocol):
    """Where the outcome of a subtask's part of a checkpoint goes."""

    def acknowledged(self, checkpoint_id: int, file: StateFile | None, *, finished: bool) -> None:
        """State is stored, sinks are flushed."""

    def declined(self, checkpoint_id: int, reason: str) -> None:
        """The part could not be taken or stored."""

    def failed(self, error: BaseException) -> None:
        """A flush failed: the subtask fails, not only the checkpoint."""


@dataclass(frozen=True, slots=True)
class _OperatorCut:
    uid: str
    keyed: KeyedSnapshot | None
    operator_state: OperatorStateSnapshot | None


class SubtaskCheckpoints:
    """Takes the cuts of one subtask's operators, writes them and acknowledges.

    One state file per subtask and checkpoint. A small cut is serialised within the turn of its
    barrier, a big one by a forked child; `flush` of the operators runs beside the writing.
    `passive` hands restored state on untouched: the operators had finished and were not opened.
    """

    def __init__(
        self,
        nodes: Sequence[ChainNode],
        storage: CheckpointStorage,
        replies: CheckpointReplies,
        *,
        file_name: str,
        slots: ChildSlots,
        forks: JointFork,
        spawn: Callable[[Coroutine[object, object, None]], asyncio.Task[None]],
        inline_entries_max: int = INLINE_ENTRIES_MAX,
        passive: bool = False,
        resume: Callable[[], None] = _nothing_to_resume,
    ) -> None:
        self._nodes = nodes
        self._passive = passive
        self._storage = storage
        self._replies = replies
        self._file_name = file_name
        self._slots = slots
        self._forks = forks
        self._resume = resume
        self._spawn = spawn
        self._inline_entries_max = inline_entries_max
        self._running: dict[int, asyncio.Task[None]] = {}
        self._parts: dict[int, ForkPart] = {}

    def take(self, barrier: CheckpointBarrier, *, finished: bool) -> bool:
        """Fixes the cut now; a failure of user code or of a serializer declines the checkpoint.

        True if the state must stay as it is until `resume` is called (`joint_fork.py`).
        """
        checkpoint_id = barrier.checkpoint_id
        try:
            cuts = [self._cut_operator(node, checkpoint_id) for node in self._nodes]
            writing, waits = self._begin_writing(checkpoint_id, cuts)
        except USER_FAILURES as error:
            self._replies.declined(checkpoint_id, _reason(error))
            return False
        work = self._spawn(self._finish(checkpoint_id, writing, finished=finished))
        self._running[checkpoint_id] = work
        work.add_done_callback(lambda _: self._over(checkpoint_id))
        return waits

    def notify_aborted(self, checkpoint_id: int) -> None:
        """Stops the work for a checkpoint that is over without success."""
        work = self._running.get(checkpoint_id)
        if work is not None:
            work.cancel()

    def close(self) -> None:
        """Stops all work; children are killed."""
        for work in list(self._running.values()):
            work.cancel()

    def _cut_operator(self, node: ChainNode, checkpoint_id: int) -> _OperatorCut:
        if not self._passive:
            node.operator.snapshot_state(checkpoint_id)
        context = node.context
        keyed = context.keyed_state.snapshot() if node.keyed else None
        if keyed is not None and not keyed.entries:
            keyed = None
        operator_state: OperatorStateSnapshot | None = context.operator_state.snapshot()
        if operator_state is not None and operator_state.empty:
            operator_state = None
        return _OperatorCut(context.uid, keyed, operator_state)

    def _begin_writing(
        self, checkpoint_id: int, cuts: Sequence[_OperatorCut]
    ) -> tuple[Callable[[], Coroutine[object, object, StateFile | None]], bool]:
        """Serialises a small cut, has a big one forked; what is left to do, and whether to wait."""
        cuts = [cut for cut in cuts if cut.keyed is not None or cut.operator_state is not None]
        if not cuts:
            self._forks.small(self)
            return _nothing, False

        def write(sink: ChunkSink, alive: Callable[[], bool]) -> None:
            writer = SnapshotFileWriter(sink)
            for cut in cuts:
                if cut.keyed is not None:
                    writer.add_keyed(cut.uid, cut.keyed, alive)
                if cut.operator_state is not None:
                    writer.add_operator_state(cut.uid, cut.operator_state)
            writer.finish()

        entries = sum(cut.keyed.entries for cut in cuts if cut.keyed is not None)
        path = self._storage.local_path(checkpoint_id, self._file_name)
        if (
            entries > self._inline_entries_max
            and path is not None
            and can_fork()
            and self._slots.alive < CHILDREN_MAX
        ):
            part, waits = self._forks.join(checkpoint_id, self, write, str(path), self._resume)
            self._parts[checkpoint_id] = part
            return lambda: self._adopt(checkpoint_id, part), waits
        self._forks.small(self)
        buffer = _Buffer()
        write(buffer, lambda: True)
        data = b"".join(buffer.chunks)
        return lambda: self._storage.write(checkpoint_id, self._file_name, data), False

    async def _adopt(self, checkpoint_id: int, part: ForkPart) -> StateFile | None:
        try:
            await part.written
        except SnapshotChildError as error:
            raise SnapshotChildError(f"{part.path}: cannot be written: {error}") from error
        return await self._storage.adopt(checkpoint_id, self._file_name)

    def _over(self, checkpoint_id: int) -> None:
        self._running.pop(checkpoint_id, None)
        # Work that is cancelled before its first step has not waited for its file.
        part = self._parts.pop(checkpoint_id, None)
        if part is not None:
            self._forks.leave(part)

    async def _finish(
        self,
        checkpoint_id: int,
        writing: Callable[[], Coroutine[object, object, StateFile | None]],
        *,
        finished: bool,
    ) -> None:
        """What is left after the cut: the file, then the flush of the sinks, then the answer."""
        try:
            file = await writing()
        except (OSError, StateError, SnapshotChildError) as error:
            self._replies.declined(checkpoint_id, _reason(error))
            return
        for node in () if self._passive else self._nodes:
            if (failure := await failure_of(node.operator.flush, checkpoint_id)) is not None:
                doing = f"flushing for checkpoint {checkpoint_id}"
                self._replies.failed(node.failure(failure, doing=doing))
                return
        self._replies.acknowledged(checkpoint_id, file, finished=finished)


class _Buffer:
    """A sink in memory."""

    __slots__ = ("chunks",)

    def __init__(self) -> None:
        self.chunks: list[bytes] = []

    def write(self, chunk: bytes, /) -> None:
        self.chunks.append(chunk)


async def _nothing() -> StateFile | None:
    return None


def _reason(error: BaseException) -> str:
    return (
        str(error)
        if isinstance(error, StateError | OSError | SnapshotChildError)
        else summary(error)
    )
