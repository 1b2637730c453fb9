"""Awaits every coroutine of an attempt; the first failure in time is the cause."""

from __future__ import annotations

import asyncio
import io
import logging
from collections.abc import Coroutine
from contextvars import Context

from runtime.errors import summary

logger = logging.getLogger(__name__)

CANCELLATION_SECONDS = 30.0
"""How long cancelled coroutines may take to end before they are named and left behind."""


class StuckTasksError(Exception):
    """Coroutines did not end within the cancellation deadline; names them with their stacks."""


class Supervisor:
    """Runs coroutines side by side until all are done, one fails, or a stop is asked for.

    Not `asyncio.TaskGroup`: that loses a stop that coincides with a failure (3.11, 3.12), wraps
    the user's error and waits for ever for a task that swallows its cancellation.
    """

    def __init__(self, *, cancellation_seconds: float = CANCELLATION_SECONDS) -> None:
        self._cancellation_seconds = cancellation_seconds
        self._members: set[asyncio.Task[None]] = set()
        self._background: set[asyncio.Task[None]] = set()
        self._changed = asyncio.Event()
        self._stop_requested = False
        self._cancelling = False
        self._failures: list[BaseException] = []

    def spawn(
        self,
        coroutine: Coroutine[object, object, None],
        name: str = "",
        *,
        background: bool = False,
        context: Context | None = None,
    ) -> asyncio.Task[None]:
        """Starts a coroutine; `run` does not wait for a background one, but it may fail the run."""
        loop = asyncio.get_running_loop()
        task = loop.create_task(coroutine, name=name or None, context=context)
        members = self._background if background else self._members
        members.add(task)
        task.add_done_callback(lambda done: self._ended(done, members))
        return task

    def fail(self, error: BaseException) -> None:
        """Reports a failure that happened outside of the coroutines."""
        self._failures.append(error)
        self._changed.set()

    def request_stop(self) -> None:
        """Ends the run by cancelling what runs; outranks failures from now on."""
        self._stop_requested = True
        self._changed.set()

    @property
    def stop_requested(self) -> bool:
        """Whether `request_stop` was called."""
        return self._stop_requested

    async def run(self) -> None:
        """Returns when all members are done or a stop was requested; raises the first failure.

        Whatever the reason, nothing runs any more on return. Raises `StuckTasksError` if
        something does not end within the cancellation deadline.
        """
        try:
            while self._members and not self._failures and not self._stop_requested:
                self._changed.clear()
                await self._changed.wait()
        finally:
            await self.cancel_all()
        if self._failures:
            if not self._stop_requested:
                raise self._first_failure()
            for error in self._failures:
                logger.warning("while stopping: %s", summary(error))

    async def cancel_all(self) -> None:
        """Cancels what runs, and what that starts meanwhile, and waits for its end."""
        self._cancelling = True
        # One that is done is waited for as well: how it ended is noted a turn later.
        while left := self._members | self._background:
            for task in left:
                task.cancel()
            _, stuck = await asyncio.wait(left, timeout=self._cancellation_seconds)
            if stuck:
                error = StuckTasksError(_describe(stuck, self._cancellation_seconds))
                raise error from (self._first_failure() if self._failures else None)

    def _first_failure(self) -> BaseException:
        first, *later = self._failures
        for other in later:
            first.add_note(f"then also: {summary(other)}")
        return first

    def _ended(self, task: asyncio.Task[None], members: set[asyncio.Task[None]]) -> None:
        members.discard(task)
        if task.cancelled():
            # Background work may be given up by who started it. A cancellation that nobody asked
            # for comes from within: something that the coroutine awaited was cancelled.
            asked = task.cancelling() > 0 and (self._cancelling or members is self._background)
            if not asked:
                name = task.get_name()
                failure = RuntimeError(f"{name!r} was cancelled by another than its job")
                failure.__cause__ = _cancellation_of(task)
                self._failures.append(failure)
        elif (error := task.exception()) is not None:
            self._failures.append(error)
        self._changed.set()


def _cancellation_of(task: asyncio.Task[None]) -> BaseException:
    """What a cancelled task ended with: its traceback shows where."""
    try:
        task.result()
    except asyncio.CancelledError as cancelled:
        return cancelled
    raise AssertionError(f"{task.get_name()!r} is not cancelled")


def _describe(stuck: set[asyncio.Task[None]], seconds: float) -> str:
    text = io.StringIO()
    text.write(f"{len(stuck)} task(s) did not end within {seconds:g} s of their cancellation:\n")
    for task in stuck:
        task.print_stack(file=text)
    return text.getvalue()
