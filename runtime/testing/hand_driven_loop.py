"""Runs coroutines by hand, without a running event loop."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine
from contextvars import Context, copy_context
from functools import partial
from typing import Any, TypeVar, cast

R = TypeVar("R")


class _Driven:
    """A coroutine under way; has what the runtime asks of an `asyncio.Task`."""

    def __init__(
        self, coroutine: Coroutine[Any, None, object], context: Context | None = None
    ) -> None:
        self.coroutine = coroutine
        self._context = copy_context() if context is None else context
        self.future: asyncio.Future[object] | None = None
        self.result: object = None
        self.error: BaseException | None = None
        self.done = False
        self._callbacks: list[Callable[[Any], object]] = []
        self._cancelled = False

    @property
    def ready(self) -> bool:
        """Whether a step would get anywhere."""
        return not self.done and (self.future is None or self._cancelled or self.future.done())

    def step(self) -> None:
        """Runs on to the next wait."""
        try:
            if self._cancelled:
                self._cancelled = False
                self.future = self._context.run(self.coroutine.throw, asyncio.CancelledError())
            else:
                self.future = self._context.run(self.coroutine.send, None)
        except StopIteration as end:
            self.result = end.value
        except asyncio.CancelledError:
            self.result = None
        except BaseException as error:
            self.error = error
        else:
            return
        self.done = True
        for callback in self._callbacks:
            callback(self)

    def cancel(self) -> bool:
        """Throws `CancelledError` into the coroutine at its next step."""
        self._cancelled = not self.done
        return self._cancelled

    def add_done_callback(self, callback: Callable[[Any], object]) -> None:
        """Calls `callback` at the end."""
        self._callbacks.append(callback)


class HandDrivenLoop:
    """Steps the coroutines it was given, in turn, until all of them wait.

    It is no running event loop: nothing here sleeps, waits for I/O or is known to asyncio, so it
    can be driven from plain functions and from coroutines alike. The coroutines may wait for
    futures that it made, and for nothing else.
    """

    def __init__(self) -> None:
        self._driven: list[_Driven] = []
        self._calls: deque[Callable[[], object]] = deque()

    def spawn(
        self, coroutine: Coroutine[Any, Any, None], context: Context | None = None
    ) -> asyncio.Task[None]:
        """Takes a coroutine over; it runs with `run_until_quiet`."""
        driven = _Driven(coroutine, context)
        self._driven.append(driven)
        return cast("asyncio.Task[None]", driven)

    def run_until_quiet(self) -> None:
        """Returns once every coroutine is over or waits; raises what the first one raised."""
        progress = True
        while progress:
            progress = bool(self._calls)
            while self._calls:
                self._calls.popleft()()
            for driven in list(self._driven):
                if driven.ready:
                    driven.step()
                    progress = True
                if driven.done:
                    self._driven.remove(driven)
                    if driven.error is not None:
                        raise driven.error

    def run(self, coroutine: Coroutine[Any, Any, R], context: Context | None = None) -> R:
        """Runs one coroutine to its end; `RuntimeError` if it waits for something outside."""
        driven = _Driven(coroutine, context)
        while driven.ready:
            driven.step()
        if not driven.done:
            coroutine.close()
            raise RuntimeError(
                "an operator under test waits for something outside (a client, a timer of the "
                "event loop): test it in a job, or give it a stand-in that answers at once"
            )
        if driven.error is not None:
            raise driven.error
        return cast("R", driven.result)

    def stop(self) -> None:
        """Gives up all coroutines."""
        for driven in self._driven:
            driven.coroutine.close()
        self._driven.clear()
        self._calls.clear()

    # -- what the runtime asks of a loop ------------------------------------------------------

    def as_event_loop(self) -> asyncio.AbstractEventLoop:
        """Itself: it has the few methods that tasks and futures ask for."""
        return cast("asyncio.AbstractEventLoop", self)

    def create_future(self) -> asyncio.Future[Any]:
        """A future whose waiter goes on at its next step after the result is set."""
        return asyncio.Future(loop=self.as_event_loop())

    def call_soon(
        self, callback: Callable[..., object], *args: object, context: Context | None = None
    ) -> None:
        """Has `callback` called by `run_until_quiet`."""
        self._calls.append(partial(callback, *args))

    def get_debug(self) -> bool:
        """False."""
        return False
