"""Lets threads have the interpreter while they have something to do for the job.

A loop under load gives the interpreter up each turn and takes it back before a waiting thread
wakes, and each such release starts the waiting thread's patience anew: threads were late by
0.3 to 3 s. So whoever gives work to a thread counts it here, and as long as some is outstanding
the loop really sleeps for a moment once in a while, at the end of a turn.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import ParamSpec, TypeVar

from runtime.clock import give_way_to_threads, turn_seconds

P = ParamSpec("P")
T = TypeVar("T")

THREAD_NAME_PREFIX = "riverrun"
"""Begins the name of each thread of a job's thread pool."""

WORK_SECONDS = 0.002
"""How long a loop works between two moments for threads, at least."""


class ThreadWork:
    """Counts what threads have to do, in all of the process: all threads share one interpreter.

    `pause` is called at the end of each turn of each loop that runs a job.
    """

    __slots__ = ("_lock", "_next", "outstanding")

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._next = 0.0
        self.outstanding = 0

    def begin(self) -> None:
        """A thread has been given something to do; from any thread."""
        with self._lock:
            self.outstanding += 1

    def end(self) -> None:
        """A thread has done it; from any thread."""
        with self._lock:
            self.outstanding -= 1

    def pause(self) -> None:
        """Sleeps for a moment if work is outstanding and the last moment is long enough ago."""
        if self.outstanding and turn_seconds() >= self._next:
            give_way_to_threads()
            self._next = turn_seconds() + WORK_SECONDS


THREAD_WORK = ThreadWork()
"""The work outstanding in this process."""


class CountedExecutor(ThreadPoolExecutor):
    """A thread pool whose work counts as outstanding from its submission to its end.

    A job may outlive the main thread, and the interpreter closes all thread pools as soon as that
    has ended. What is submitted from then on gets a thread of its own.
    """

    _over = False

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """See `Executor.submit`."""
        THREAD_WORK.begin()
        try:
            future = self._submitted(partial(fn, *args, **kwargs))
        except BaseException:
            THREAD_WORK.end()
            raise
        future.add_done_callback(_ended)
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """See `Executor.shutdown`."""
        self._over = True
        super().shutdown(wait, cancel_futures=cancel_futures)

    def _submitted(self, work: Callable[[], T]) -> Future[T]:
        try:
            return super().submit(work)
        except RuntimeError:
            if self._over:
                raise
        future: Future[T] = Future()
        threading.Thread(target=_resolve, args=(future, work), name=THREAD_NAME_PREFIX).start()
        return future


def _resolve(future: Future[T], work: Callable[[], T]) -> None:
    if not future.set_running_or_notify_cancel():
        return
    try:
        result = work()
    except BaseException as error:
        future.set_exception(error)
    else:
        future.set_result(result)


def _ended(_: object) -> None:
    THREAD_WORK.end()


def counted_executor() -> CountedExecutor:
    """The default executor of a loop that belongs to a job."""
    return CountedExecutor(thread_name_prefix=THREAD_NAME_PREFIX)
