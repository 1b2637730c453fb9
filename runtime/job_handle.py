"""A job that runs in some event loop, as other threads and signal handlers see it."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
from collections.abc import Callable
from concurrent.futures import Future

from operators.graph import StreamGraph
from runtime.clock import SystemClock, wall_clock_ms
from runtime.config import JobConfig
from runtime.job import JobRun
from runtime.job_result import JobExecutionResult, JobStatistics, JobStatus, new_job_id

logger = logging.getLogger(__name__)


class JobHandle:
    """Starts a job in the loop that awaits `run`, and passes on requests from anywhere.

    Requests take no lock: a signal handler may interrupt any line of this thread. A request that
    comes before the job has started is done as soon as it has.
    """

    def __init__(self, graph: StreamGraph, config: JobConfig) -> None:
        self.config = config
        self.job_id = new_job_id(config.name, wall_clock_ms())
        self.future: Future[JobExecutionResult] = Future()
        # A future that runs cannot be cancelled by whoever stops waiting for it.
        self.future.set_running_or_notify_cancel()
        self.loop: asyncio.AbstractEventLoop | None = None
        self.thread: threading.Thread | None = None
        """The thread that exists for this job only, if there is one."""
        self.asked = False
        """Somebody waits for the outcome or has got it, so that a failure is not lost."""
        self.on_unread: Callable[[], None] | None = None
        """Called when the program has ended that was to read the job's results, if it has any."""
        self._graph = graph
        self._run: JobRun | None = None
        self._stop_reason: str | None = None
        self._cancelled = False

    async def run(self) -> JobExecutionResult:
        """Runs the job to its end; raises JobExecutionError and the like.

        The outcome is also that of `future`.
        """
        try:
            result = await self._run_job()
        except asyncio.CancelledError:
            self.future.set_exception(RuntimeError(f"job {self.config.name!r} was cancelled"))
            raise
        except BaseException as error:
            self.future.set_exception(error)
            raise
        self.future.set_result(result)
        return result

    async def _run_job(self) -> JobExecutionResult:
        loop = asyncio.get_running_loop()
        clock = SystemClock(loop)
        started_ms = clock.now_ms()
        run = JobRun(self._graph, self.config, lambda: SystemClock(loop))
        self._run = run
        self.loop = loop
        # From here on requests come by the loop; those from before are done now.
        if self._cancelled:
            run.cancel()
        elif self._stop_reason is not None:
            self._do_stop()
        await run.run()
        statistics = self.statistics()
        runtime_ms = clock.now_ms() - started_ms
        logger.info(
            "job %r is %s after %.1f s: records in %d, out %d",
            self.config.name,
            statistics.status.value,
            runtime_ms / 1000,
            statistics.records_in,
            statistics.records_out,
        )
        return JobExecutionResult(
            job_id=self.job_id,
            job_name=self.config.name,
            status=statistics.status,
            net_runtime_ms=runtime_ms,
            statistics=statistics,
        )

    def request_stop(self, reason: str) -> None:
        """Asks for a clean stop, with a final checkpoint if checkpoints are on; from anywhere."""
        if self._stop_reason is None:
            self._stop_reason = reason
            self._call(self._do_stop)

    def cancel(self) -> None:
        """Asks for the end without a final checkpoint; from anywhere."""
        self._cancelled = True
        self._call(self._do_cancel)

    def wait(self) -> None:
        """Waits until the job and the thread of its own have ended; raises nothing."""
        self.future.exception()
        if self.thread is not None and self.thread is not threading.current_thread():
            self.thread.join()

    def statistics(self) -> JobStatistics:
        """The figures of this moment."""
        return self._run.statistics() if self._run is not None else JobStatistics()

    def status(self) -> JobStatus:
        """The status of this moment."""
        if self.future.done() and self.future.exception() is not None:
            return JobStatus.CANCELED if self._cancelled else JobStatus.FAILED
        return self.statistics().status

    def _do_stop(self) -> None:
        if self._run is not None and not self.future.done():
            logger.info("job %r: %s", self.config.name, self._stop_reason)
            self._run.request_stop()

    def _do_cancel(self) -> None:
        if self._run is not None and not self.future.done():
            self._run.cancel()

    def _call(self, action: Callable[[], None]) -> None:
        loop = self.loop
        if loop is not None:
            # A loop that is closed has no job any more.
            with contextlib.suppress(RuntimeError):
                loop.call_soon_threadsafe(action)
