"""An event loop with virtual time that runs one ready call after the other, chosen by a seed.

Nothing in it comes from outside: no selector, no threads, no system clock. Tasks and futures
hash by the order of their creation, because asyncio keeps them in sets, which would otherwise be
walked in the order of memory addresses. The order of `call_soon` is shuffled, which every pair
of tasks must bear; libraries that rely on it do not belong in a simulation.
"""

from __future__ import annotations

import asyncio
import heapq
import traceback
import warnings
from collections.abc import Awaitable, Callable, Coroutine, Generator
from contextvars import Context
from random import Random
from typing import Any, TypeVar

T = TypeVar("T")

NANOS_PER_SECOND = 1_000_000_000

STEP_NANOS_MAX = 200_000
"""A step takes up to this long in virtual time: else a job at full speed would take none."""

STEPS_MAX = 2_000_000
"""A run that has not ended after so many steps never will."""

CLOSINGS_MAX = 50
"""How many awaits in a row a coroutine may have in its `finally` blocks."""


class SimulationError(Exception):
    """What a simulation found that no run may ever show: a deadlock, a leak, an endless loop."""


class SimulatedDeath(BaseException):
    """The process is dead: nothing that it still tries to do has any effect."""


class _SimulatedTask(asyncio.Task[T]):
    """A task that hashes by its number."""

    def __init__(
        self,
        coroutine: Coroutine[Any, Any, T],
        *,
        loop: SimulatedLoop,
        name: str,
        number: int,
        context: Context | None,
    ) -> None:
        # asyncio puts the task into a set while it is made.
        self._number = number
        super().__init__(coroutine, loop=loop, name=name, context=context)

    def __hash__(self) -> int:
        return self._number


class _SimulatedFuture(asyncio.Future[T]):
    """A future that hashes by its number."""

    def __init__(self, *, loop: SimulatedLoop, number: int) -> None:
        self._number = number
        super().__init__(loop=loop)

    def __hash__(self) -> int:
        return self._number


class SimulatedLoop(asyncio.AbstractEventLoop):
    """Runs coroutines to their end, in an order that only `random` decides.

    `before_step` is called before each step and may raise `SimulatedDeath`, which ends
    `run_until_complete` at once; `abandon` then forgets what was under way.
    """

    def __init__(
        self,
        random: Random,
        *,
        start_nanos: int = 0,
        before_step: Callable[[], None] = lambda: None,
    ) -> None:
        self._random = random
        self._nanos = start_nanos
        self._before_step = before_step
        self._ready: list[asyncio.Handle] = []
        self._scheduled: list[tuple[int, int, asyncio.TimerHandle]] = []
        self._numbers = 0
        self._tasks: dict[int, asyncio.Task[Any]] = {}
        self._running = False
        self._closed = False
        self._dead = False
        self.steps = 0
        self.errors: list[str] = []
        """What asyncio reported: exceptions that nobody has looked at."""

    # -- time ----------------------------------------------------------------------------------

    def nanos(self) -> int:
        """Virtual time in nanoseconds."""
        return self._nanos

    def time(self) -> float:
        """Virtual time in seconds."""
        return self._nanos / NANOS_PER_SECOND

    def pass_time(self, nanos: int) -> None:
        """Lets time go on within a step, as work does."""
        self._nanos += nanos

    # -- calls ---------------------------------------------------------------------------------

    def call_soon(  # type: ignore[override]  # typeshed ties the arguments by a type variable
        self, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> asyncio.Handle:
        """Makes a call ready; it is not promised to come before later ones."""
        self._check_alive()
        handle = asyncio.Handle(callback, args, self, context)
        self._ready.append(handle)
        return handle

    def call_later(  # type: ignore[override]  # as above
        self,
        delay: float,
        callback: Callable[..., object],
        *args: Any,
        context: Context | None = None,
    ) -> asyncio.TimerHandle:
        """Makes a call ready when `delay` seconds of virtual time have passed."""
        return self.call_at(self.time() + delay, callback, *args, context=context)

    def call_at(  # type: ignore[override]  # as above
        self,
        when: float,
        callback: Callable[..., object],
        *args: Any,
        context: Context | None = None,
    ) -> asyncio.TimerHandle:
        """Makes a call ready at a virtual time."""
        self._check_alive()
        handle = asyncio.TimerHandle(when, callback, args, self, context)
        self._numbers += 1
        due = round(when * NANOS_PER_SECOND)
        heapq.heappush(self._scheduled, (due, self._numbers, handle))
        return handle

    def call_soon_threadsafe(self, *args: Any, **kwargs: Any) -> asyncio.Handle:  # type: ignore[override]  # refused for all arguments
        """Refused: there are no threads."""
        raise SimulationError("a thread wants to reach a simulated loop; there are none")

    def run_in_executor(self, *args: Any, **kwargs: Any) -> asyncio.Future[Any]:  # type: ignore[override]  # refused for all arguments
        """Refused: there are no threads."""
        raise SimulationError(f"no thread can be used in a simulation, wanted for {args[1:]!r}")

    def _timer_handle_cancelled(self, handle: asyncio.TimerHandle) -> None:
        """Cancelled calls are passed over when they are due."""

    # -- tasks and futures ---------------------------------------------------------------------

    def create_future(self) -> asyncio.Future[Any]:
        """A future that hashes by its number."""
        self._check_alive()
        self._numbers += 1
        return _SimulatedFuture(loop=self, number=self._numbers)

    def create_task(  # type: ignore[override]  # typeshed's differs between versions of Python
        self,
        coroutine: Coroutine[Any, Any, T],
        *,
        name: object = None,
        context: Context | None = None,
        **_: object,
    ) -> asyncio.Task[T]:
        """A task that hashes by its number, and is named by it unless it has a name."""
        if self._dead:
            coroutine.close()
        self._check_alive()
        self._numbers += 1
        number = self._numbers
        named = f"task {number}" if name is None else str(name)
        task = _SimulatedTask(coroutine, loop=self, name=named, number=number, context=context)
        self._tasks[number] = task
        task.add_done_callback(lambda _: self._tasks.pop(number, None))
        return task

    @property
    def unfinished(self) -> list[asyncio.Task[Any]]:
        """The tasks that have not ended, the oldest first."""
        return [task for task in self._tasks.values() if not task.done()]

    # -- running -------------------------------------------------------------------------------

    def run_until_complete(self, future: Generator[Any, None, T] | Awaitable[T]) -> T:
        """Runs a coroutine to its end.

        Raises what it raises; `SimulationError` if it waits for something that never comes.
        """
        assert asyncio.iscoroutine(future)
        task: asyncio.Task[T] = self.create_task(future, name="main")
        self._running = True
        asyncio._set_running_loop(self)
        try:
            while not task.done():
                self._step()
        finally:
            self._running = False
            asyncio._set_running_loop(None)
        return task.result()

    def _step(self) -> None:
        self.steps += 1
        if self.steps > STEPS_MAX:
            raise SimulationError(f"no end after {STEPS_MAX} steps: {self._waiting()}")
        self._before_step()
        self._nanos += int(self._random.random() * STEP_NANOS_MAX)
        self._move_due()
        ready = self._ready
        if not ready:
            return
        index = int(self._random.random() * len(ready))
        handle = ready.pop(index)
        if not handle.cancelled():
            handle._run()
        self._check_alive()

    def _move_due(self) -> None:
        scheduled = self._scheduled
        while scheduled and scheduled[0][2].cancelled():
            heapq.heappop(scheduled)
        if not self._ready:
            if not scheduled:
                raise SimulationError(f"deadlock, nothing will ever happen: {self._waiting()}")
            self._nanos = max(self._nanos, scheduled[0][0])
        while scheduled and scheduled[0][0] <= self._nanos:
            self._ready.append(heapq.heappop(scheduled)[2])

    def _waiting(self) -> str:
        places = []
        for task in self.unfinished:
            stack = task.get_stack()
            code = stack[-1].f_code if stack else None
            place = "" if code is None else f" in {code.co_qualname}:{stack[-1].f_lineno}"
            places.append(f"{task.get_name()}{place}")
        return "; ".join(places)

    def _check_alive(self) -> None:
        if self._dead:
            raise SimulatedDeath

    def die(self) -> None:
        """Ends the loop after the present step; what the step still does is without effect."""
        self._dead = True

    def abandon(self) -> None:
        """Forgets everything that was under way, as the end of a process does.

        Python runs the `finally` blocks of coroutines that are dropped. None of them gets
        anywhere: what they await from this loop raises `SimulatedDeath`.
        """
        self._dead = True
        self._ready.clear()
        self._scheduled.clear()
        with warnings.catch_warnings():
            # Coroutines that a finally block makes and cannot await.
            warnings.simplefilter("ignore", RuntimeWarning)
            for task in self._tasks.values():
                if not task.done():
                    task._log_destroy_pending = False  # type: ignore[attr-defined]  # no error
                    self._close(task)
                elif not task.cancelled():
                    _forget(task.exception())
            self._tasks.clear()

    def _close(self, task: asyncio.Task[Any]) -> None:
        coroutine = task.get_coro()
        assert coroutine is not None
        asyncio._set_running_loop(self)
        asyncio._enter_task(self, task)
        try:
            for _ in range(CLOSINGS_MAX):
                try:
                    coroutine.close()
                    return
                except BaseException as error:
                    _forget(error)
        finally:
            asyncio._leave_task(self, task)
            asyncio._set_running_loop(None)

    # -- the rest of an event loop -------------------------------------------------------------

    def is_running(self) -> bool:
        """Whether a coroutine is run."""
        return self._running

    def is_closed(self) -> bool:
        """Whether `close` was called."""
        return self._closed

    def close(self) -> None:
        """No more calls."""
        self._closed = True
        self._ready.clear()
        self._scheduled.clear()

    def get_debug(self) -> bool:
        """False."""
        return False

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        """Keeps what asyncio reports."""
        if not self._dead:
            error = context.get("exception")
            self.errors.append(f"{context.get('message')}: {error!r}")


def new_simulated_loop(
    random: Random,
    *,
    start_nanos: int = 0,
    before_step: Callable[[], None] = lambda: None,
) -> SimulatedLoop:
    """A loop that begins at a virtual time."""
    return SimulatedLoop(  # type: ignore[abstract]  # at run time what is missing raises
        random, start_nanos=start_nanos, before_step=before_step
    )


def _forget(error: BaseException | None) -> None:
    """Lets go of what the frames behind an error hold, instead of at some later collection."""
    while error is not None:
        traceback.clear_frames(error.__traceback__)
        error = error.__context__
