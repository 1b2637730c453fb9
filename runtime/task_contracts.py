"""Who a task talks to about its checkpoints and its end."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import TYPE_CHECKING, Protocol

from operators.elements import CheckpointBarrier

if TYPE_CHECKING:
    import asyncio
    from contextvars import Context

    from runtime.task import Task


class CheckpointCut(Protocol):
    """Takes the cut of a subtask's operators and sees to the rest of the checkpoint beside it."""

    def take(self, barrier: CheckpointBarrier, *, finished: bool) -> bool:
        """Fixes the cut now; serialises, stores, flushes and acknowledges in the background.

        True if the operators must be left alone until `Task.resume` is called: their state is
        still to be forked.
        """

    def notify_aborted(self, checkpoint_id: int) -> None:
        """The checkpoint is over without success."""

    def close(self) -> None:
        """Stops what runs beside the task."""


class Spawn(Protocol):
    """Starts work beside the tasks; its failure is that of the attempt."""

    def __call__(
        self, coroutine: Coroutine[object, object, None], context: Context | None = None
    ) -> asyncio.Task[None]:
        """Runs it in `context`, or in a copy of the present one."""


class TaskListener(Protocol):
    """Who wants to know what becomes of a task."""

    def finished(self, task: Task) -> None:
        """All its input is processed and its outputs have ended (not: a source was stopped)."""

    def checkpoint_declined(self, task: Task, checkpoint_id: int, reason: str) -> None:
        """The task will not take part in this checkpoint."""
