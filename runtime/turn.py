"""The turns of a loop: the tasks that can go on, one after the other, within a bounded time."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Generator
from contextvars import Context, copy_context
from functools import partial

TURN_SECONDS = 0.002
"""How long the tasks of one loop may work, together, before they let the loop turn."""

SHARES = 4
"""A task gives way to the next one after this part of a turn."""


class LoopTurn:
    """Runs the tasks that are ready, until none is or the present turn of the loop is over.

    With a budget per task the loop would come round after tasks x budget; so the budget belongs
    to the turn. Tasks wake each other within it: a future of asyncio each time would cost two
    thirds of what handing over a single record costs.
    """

    __slots__ = (
        "_on_turn",
        "_share",
        "asleep",
        "end",
        "loop",
        "monotonic",
        "ready",
        "seconds",
    )

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        monotonic: Callable[[], float],
        *,
        seconds: float = TURN_SECONDS,
        on_turn: Callable[[], None] | None = None,
        ready: deque[Wakeup] | None = None,
    ) -> None:
        self.loop = loop
        self.monotonic = monotonic
        self.seconds = seconds
        self.ready: deque[Wakeup] = deque() if ready is None else ready
        """The tasks that can go on, in the order of their turns."""
        self.asleep = True
        """No turn is under way or to come."""
        self._on_turn = on_turn
        self._share = seconds / SHARES
        self.end = monotonic() + self._share
        """When the task at work has to give way, by `monotonic`."""

    def over(self) -> bool:
        """Whether the task at work has to give way."""
        return self.monotonic() >= self.end

    def begin_soon(self) -> None:
        """A task is ready and the loop sleeps."""
        self.asleep = False
        self.loop.call_soon(self._run)

    def _run(self) -> None:
        ready, monotonic, share = self.ready, self.monotonic, self._share
        now = monotonic()
        over = now + self.seconds
        while ready:
            self.end = now + share
            wakeup = ready.popleft()
            try:
                wakeup.resume()
            except StopIteration:
                wakeup.ended(None)
            except BaseException as error:
                wakeup.ended(error)
            now = monotonic()
            if now >= over:
                break
        if ready:
            self.begin_soon()
        else:
            self.asleep = True
        if now >= over and self._on_turn is not None:
            self._on_turn()


class Wakeup:
    """A task's place in the turns of its loop: data, room and mail all `wake` it when it waits.

    There is no flag to remember a wake-up: task and callers share one thread, and a task looks
    at everything it could do right before it waits, so a wake-up that comes earlier is seen there.
    """

    __slots__ = ("_ended", "_error", "_turn", "context", "resume", "waits")

    def __init__(self, turn: LoopTurn) -> None:
        self._turn = turn
        self._ended: asyncio.Future[None] | None = None
        self._error: BaseException | None = None
        self.context: Context = copy_context()
        """All steps run in it, and so should whatever else is done for the task: context
        variables set in `open` can then be reset in a later call and at the end."""
        self.waits = False
        """Set by the task right before a `yield` that shall last until the next `wake`."""
        self.resume: Callable[[], object] = _nothing_to_resume

    def wake(self) -> None:
        """Ends the present wait, if there is one."""
        if self.waits:
            self.waits = False
            turn = self._turn
            turn.ready.append(self)
            if turn.asleep:
                turn.begin_soon()

    def go_on(self) -> None:
        """Puts the task behind those that are ready."""
        self.waits = True
        self.wake()

    async def drive(self, work: Generator[None, None, None]) -> None:
        """Runs `work` to its end, in turns, and raises what it raises.

        Before each of its `yield`s `work` either sets `waits` or calls `go_on`. An error of
        `work` comes before a cancellation at the same time: it would be told nowhere else.
        """
        self._ended = ended = self._turn.loop.create_future()
        self.resume = partial(self.context.run, work.__next__)
        self.go_on()
        try:
            await ended
        except asyncio.CancelledError:
            if self._error is None:
                raise
        finally:
            self.waits = False
            work.close()
        error, self._error = self._error, None
        if error is not None:
            raise error

    def ended(self, error: BaseException | None) -> None:
        """`work` is at its end; it may have been given up meanwhile."""
        assert self._ended is not None
        self._error = error
        if not self._ended.done():
            self._ended.set_result(None)


def _nothing_to_resume() -> None:
    raise RuntimeError("the task does not run yet")
