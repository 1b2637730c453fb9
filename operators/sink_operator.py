"""Runs a sink: hands batches to its writer and its committables through the checkpoints.

A sink with a committer is exactly-once (Flink: `CommitterOperator` of Sink V2): at the barrier
of checkpoint n the writer hands out committables; they are operator state until the committer
returned, which it is asked to as soon as n, or a later checkpoint, is complete. What was in
the state of the restored checkpoint is committed again before the first record.
"""

from __future__ import annotations

import asyncio
from typing import Any

from operators.connector_results import awaited, wrong_object
from operators.elements import RecordBatch
from operators.errors import WrongResultError
from operators.sink import Committer, Sink, SinkWriter
from operators.stream_operator import OperatorContext, StreamOperator, Work
from operators.user_code import check_object
from statebackends.descriptors import ListStateDescriptor
from statebackends.state import ListState


class SinkOperator(StreamOperator):
    """The operator around one subtask's writer and committer."""

    def __init__(self, sink: Sink[Any]) -> None:
        self._sink = sink
        self._writer: SinkWriter[Any] | None = None
        self._committer: Committer | None = None
        self._state: ListState[tuple[int, bytes]] | None = None
        # In the order of their checkpoints.
        self._uncommitted: list[tuple[int, bytes]] = []
        self._complete = 0
        self._snapshot_taken = 0
        self._commits: asyncio.Task[None] | None = None

    def initialize_state(self) -> None:
        """Fetches the committables that were in the restored checkpoint."""
        committer = self._sink.create_committer()
        if committer is not None and not isinstance(committer, Committer):
            raise wrong_object(self._sink, "create_committer", "a Committer or None", committer)
        self._committer = committer
        if committer is not None:
            self._state = self.context.operator_state.get_list_state(
                ListStateDescriptor("committables")
            )
            self._uncommitted = sorted(self._state.get())
            self._complete = max((each for each, _ in self._uncommitted), default=0)

    async def start(self) -> None:
        """Commits what was restored, before a writer could abort it, then connects the writer."""
        if self._uncommitted:
            await self._commit_complete()
        writer = self._sink.create_writer(_WriterContext(self.context))
        if not isinstance(writer, SinkWriter):
            raise wrong_object(self._sink, "create_writer", "a SinkWriter", writer)
        try:
            check_object(writer, "sink_to", SinkWriter, "write")
        except TypeError as error:
            raise WrongResultError(str(error)) from error
        self._writer = writer
        self.always_has_room = type(writer).has_room is SinkWriter.has_room
        await awaited(writer.start(), writer, "start")

    async def restore_finished(self, context: OperatorContext) -> None:
        """Commits what was restored: nobody else will."""
        self.setup(context)
        self.initialize_state()
        if self._committer is not None:
            try:
                await self._commit_complete()
            finally:
                await awaited(self._committer.close(), self._committer, "close")

    def process_batch(self, batch: RecordBatch) -> Work:
        """Hands the batch to the writer."""
        writer = self._writer
        if writer is None:
            writer = self._open_writer()
        writer.write(batch.values, batch.timestamps)
        return ()

    @property
    def has_room(self) -> bool:
        """Whether the writer has room."""
        return self._writer is None or self._writer.has_room

    def snapshot_state(self, checkpoint_id: int) -> None:
        """Takes the writer's committables over and puts all that are uncommitted into state."""
        self._snapshot_taken = checkpoint_id
        if self._state is not None:
            self._prepare(checkpoint_id)
            self._state.update(self._uncommitted)

    async def flush(self, checkpoint_id: int) -> None:
        """Waits until all that was written before the barrier is safe."""
        writer = self._open_writer()
        await awaited(writer.flush(end_of_input=False), writer, "flush")

    def notify_checkpoint_complete(self, checkpoint_id: int) -> None:
        """Begins to commit what belongs to this and earlier checkpoints."""
        self._complete = max(self._complete, checkpoint_id)
        if self._committer is not None and self._commits is None and self._due():
            self._commits = asyncio.create_task(self._commit_in_background())

    async def finish(self) -> None:
        """Flushes; commits what no checkpoint will commit any more (the job has none)."""
        writer = self._open_writer()
        await awaited(writer.flush(end_of_input=True), writer, "flush")
        await self._await_commits()
        if self._committer is not None:
            last = self._snapshot_taken + 1
            self._prepare(last)
            self._complete = last
            await self._commit_complete()

    async def close_async(self) -> None:
        """Waits for the commits under way, then closes committer and writer."""
        try:
            await self._await_commits()
        finally:
            try:
                if self._committer is not None:
                    await awaited(self._committer.close(), self._committer, "close")
            finally:
                if self._writer is not None:
                    await awaited(self._writer.close(), self._writer, "close")

    def _open_writer(self) -> SinkWriter[Any]:
        if self._writer is None:
            raise RuntimeError(f"sink {self.context.operator_name!r} was used before its start")
        return self._writer

    def _prepare(self, checkpoint_id: int) -> None:
        committables = self._open_writer().prepare_commit(checkpoint_id)
        self._uncommitted += [(checkpoint_id, committable) for committable in committables]

    def _due(self) -> list[tuple[int, bytes]]:
        return [each for each in self._uncommitted if each[0] <= self._complete]

    async def _commit_complete(self) -> None:
        # More may become due while the committer is at work; nothing is committed out of order.
        while self._committer is not None and (due := self._due()):
            work = self._committer.commit([committable for _, committable in due])
            await awaited(work, self._committer, "commit")
            del self._uncommitted[: len(due)]

    async def _commit_in_background(self) -> None:
        try:
            await self._commit_complete()
        except Exception as error:
            self.context.fail(error)
        finally:
            self._commits = None

    async def _await_commits(self) -> None:
        if self._commits is not None:
            # Only waits: a cancellation of the waiter must not reach the commit under way.
            await asyncio.wait({self._commits})


class _WriterContext:
    """What the writer sees of the operator's context (`SinkWriterContext`)."""

    def __init__(self, context: OperatorContext) -> None:
        self.subtask_index = context.subtask_index
        self.parallelism = context.parallelism
        self.clock = context.clock
        self.metrics = context.metrics
        self.operator_name = context.operator_name
        self.restored_checkpoint_id = context.restored_checkpoint_id
        self.room_freed = context.output_freed
        self.fail = context.fail
