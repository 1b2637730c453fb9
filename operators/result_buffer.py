"""Results on their way from a job to the code that iterates over them."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from types import TracebackType
from typing import Generic, Self, TypeVar

T = TypeVar("T")

BUFFERED_RESULTS_MAX = 10_000
"""Results that wait for the consumer before the job is held back."""


class ResultBuffer(Generic[T]):
    """A bounded queue between the job (one thread) and a consumer (the same or another one).

    The job puts batches while `has_room`; the consumer takes single results. `on_room` is
    called, in the consumer's thread, when room comes back.
    """

    def __init__(self, results_max: int = BUFFERED_RESULTS_MAX) -> None:
        self._results_max = results_max
        self._changed = threading.Condition()
        self._results: deque[T] = deque()
        self._finished = False
        self._closed = False
        self._error: BaseException | None = None
        self.error_raised = False
        """The consumer has met the job's error."""
        self._on_room: list[Callable[[], None]] = []
        self._on_abandon: Callable[[], None] | None = None

    @property
    def has_room(self) -> bool:
        """Whether the job should go on."""
        return len(self._results) < self._results_max

    def on_room(self, callback: Callable[[], None]) -> None:
        """Registers what to call when `has_room` turned true again; kept until `finish`."""
        with self._changed:
            self._on_room.append(callback)

    def on_abandon(self, callback: Callable[[], None]) -> None:
        """Registers what to call when the consumer is gone; it must not wait for the job."""
        self._on_abandon = callback

    def put(self, results: Sequence[T]) -> None:
        """Adds results; never waits, may overshoot the bound by one batch."""
        with self._changed:
            if not self._closed:
                self._results.extend(results)
                self._changed.notify()

    def finish(self, error: BaseException | None = None) -> None:
        """Says that nothing more comes; `error` is raised to the consumer after the results."""
        with self._changed:
            if not self._finished:
                self._finished = True
                self._error = error
            self._on_room.clear()
            self._changed.notify_all()

    def take(self) -> T:
        """Waits for a result; raises StopIteration at the end, or the job's error."""
        with self._changed:
            while not self._results and not self._finished:
                self._changed.wait()
            if not self._results:
                if self._error is not None:
                    self.error_raised = True
                    raise self._error
                raise StopIteration
            had_room = self.has_room
            result = self._results.popleft()
            callbacks = () if had_room or not self.has_room else tuple(self._on_room)
        for callback in callbacks:
            callback()
        return result

    def close(self) -> None:
        """Drops what waits and what comes, so that a job that is being stopped is not held back."""
        with self._changed:
            self._closed = True
            self._results.clear()
            callbacks = tuple(self._on_room)
        for callback in callbacks:
            callback()

    def abandon(self) -> None:
        """Says that nobody takes results any more, from any thread and without waiting."""
        self.close()
        if self._on_abandon is not None:
            self._on_abandon()


class CloseableIterator(Iterator[T]):
    """The results of a running job, one by one (PyFlink: `CloseableIterator`).

    Use it as a context manager: leaving it early stops the job. Reading to the end waits for
    the job's end; an error of the job is raised where the results stop. An iterator that is
    dropped without `close` stops the job too, but does not wait for its end.
    """

    def __init__(self, results: ResultBuffer[T], stop: Callable[[], None]) -> None:
        self._results = results
        self._stop = stop
        self._closed = False

    def __next__(self) -> T:
        if self._closed:
            raise StopIteration
        return self._results.take()

    def next(self) -> T:
        """The next result; StopIteration at the end (PyFlink's name)."""
        return self.__next__()

    def close(self) -> None:
        """Stops the job if it still runs and waits for its end."""
        if not self._closed:
            self._closed = True
            self._results.close()
            self._stop()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def __del__(self) -> None:
        # Without a consumer the job would be held back for ever, and keep the process alive.
        if not self._closed:
            self._closed = True
            self._results.abandon()
