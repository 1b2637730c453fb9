"""A running job in the hands of the program that started it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Generator
from concurrent.futures import Future
from typing import Any, Generic, TypeVar

from runtime.job_handle import JobHandle
from runtime.job_result import JobExecutionResult, JobStatistics, JobStatus

T = TypeVar("T")
R = TypeVar("R")


class JobFuture(Generic[T]):
    """A result that is still to come: `await` it, or wait in a thread (`CompletableFuture`)."""

    def __init__(self, future: Future[T], job: JobHandle) -> None:
        self._future = future
        self._job = job

    def __await__(self) -> Generator[Any, None, T]:
        self._note_asked()
        return asyncio.wrap_future(self._future).__await__()

    def result(self, timeout: float | None = None) -> T:
        """Waits for the result, at most `timeout` seconds; raises the failure if there is one.

        Raises RuntimeError in the event loop that runs the job, which would wait for itself,
        and TimeoutError.
        """
        loop = self._job.loop
        if loop is not None and loop is _running_loop() and not self._future.done():
            raise RuntimeError(
                "result() would block the event loop that runs the job; await this instead"
            )
        self._note_asked()
        return self._future.result(timeout)

    def exception(self, timeout: float | None = None) -> BaseException | None:
        """Waits as `result` does and gives the failure, or None."""
        try:
            self.result(timeout)
        except TimeoutError:
            raise
        except Exception as error:
            return error
        return None

    def done(self) -> bool:
        """Whether the result is there."""
        return self._future.done()

    def cancelled(self) -> bool:
        """False: who waits cannot cancel the work."""
        return False

    def _note_asked(self) -> None:
        if self._future is self._job.future:
            self._job.asked = True

    def cancel(self) -> bool:
        """Does nothing and returns False; `JobClient.cancel` ends the job."""
        return False


class JobClient:
    """What can be asked of a job that was started by `execute_async` (PyFlink: `JobClient`).

    Awaiting the client gives the job's result.
    """

    def __init__(self, job: JobHandle) -> None:
        self._job = job

    def __await__(self) -> Generator[Any, None, JobExecutionResult]:
        return self.get_job_execution_result().__await__()

    def get_job_id(self) -> str:
        """The id of the job."""
        return self._job.job_id

    def get_job_status(self) -> JobFuture[JobStatus]:
        """The status of this moment."""
        future: Future[JobStatus] = Future()
        future.set_result(self._job.status())
        return JobFuture(future, self._job)

    def get_job_execution_result(self) -> JobFuture[JobExecutionResult]:
        """The result, once the job has ended; raises JobExecutionError if it failed."""
        return JobFuture(self._job.future, self._job)

    def cancel(self) -> JobFuture[None]:
        """Ends the job without a final checkpoint; done when it has ended."""
        self._job.cancel()
        return JobFuture(_after(self._job.future, lambda _: None), self._job)

    def stop(self) -> JobFuture[None]:
        """Ends the job cleanly, with a final checkpoint if checkpoints are on."""
        self._job.request_stop("stopping as its client asked")
        return JobFuture(_after(self._job.future, lambda _: None), self._job)

    def statistics(self) -> JobStatistics:
        """The figures of this moment."""
        return self._job.statistics()


def _after(first: Future[T], convert: Callable[[Future[T]], R]) -> Future[R]:
    """A future that has a result as soon as `first` is over, however that ended."""
    then: Future[R] = Future()
    then.set_running_or_notify_cancel()
    first.add_done_callback(lambda done: then.set_result(convert(done)))
    return then


def _running_loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None
