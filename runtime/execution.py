"""Runs a job: in this thread, in a thread of its own, or in a loop that is already running."""

from __future__ import annotations

import asyncio
import atexit
import logging
import os
import sys
import sysconfig
import threading

import uvloop

from operators.graph import StreamGraph
from runtime.clock import SystemClock
from runtime.config import JobConfig
from runtime.errors import ConfigurationError
from runtime.failure_report import format_failure
from runtime.job_handle import JobHandle
from runtime.job_result import JobExecutionResult
from runtime.launch import current_launch
from runtime.live import live_line
from runtime.process_settings import job_process_settings
from runtime.standard_streams import open_standard_streams
from runtime.stop_signals import exit_code, stop_signals
from runtime.thread_work import THREAD_NAME_PREFIX, counted_executor

LEFTOVER_SECONDS = 2.0
"""How long what a job has left in its loop may take to end."""

UNNOTICED_FAILURES_MAX = 16
"""Failed jobs that are kept in case somebody asks; a program may start jobs without end."""

logger = logging.getLogger(__name__)


def execute_here(graph: StreamGraph, config: JobConfig) -> JobExecutionResult:
    """Runs the job in this thread to its end.

    Raises JobExecutionError; raises SystemExit with 130 or 143 after a clean stop by a signal,
    so that nothing after the job begins.
    """
    check_platform()
    job = JobHandle(graph, config)
    _leave_if_interrupted()
    with stop_signals.stopping(job):
        result = _run_loop(job)
    _leave_if_interrupted()
    return result


def execute_beside(graph: StreamGraph, config: JobConfig, *, log_failure: bool = True) -> JobHandle:
    """Starts the job in a thread of its own, which keeps the process alive until it has ended.

    A failure is in the handle's future; unless somebody has asked for that, it is logged as well.
    """
    check_platform()
    job = JobHandle(graph, config)
    job.asked = not log_failure

    def run() -> None:
        try:
            _run_loop(job)
        except Exception as error:
            if not job.asked:
                logger.error("%s", format_failure(error))
        finally:
            stop_signals.forget(job)

    stop_signals.watch(job)
    job.thread = threading.Thread(target=run, name=f"job {config.name}")
    unnoticed = [one for one in _beside if _unnoticed(one)][-UNNOTICED_FAILURES_MAX:]
    _beside[:] = [one for one in _beside if not one.future.done()] + unnoticed + [job]
    job.thread.start()
    return job


def wait_for_jobs() -> bool:
    """Waits for the jobs that `execute_beside` started and that still run.

    Returns whether all ended well; a failure that was asked for was its asker's affair.
    """
    _stop_unread()
    for job in _beside:
        job.wait()
    return not any(_unnoticed(job) for job in _beside)


def watch_for_readers() -> None:
    """Sees to it that jobs whose results nobody can read any more end with the main thread.

    They would be held back for ever, and keep the process alive.
    """
    if not _watchers:
        watcher = threading.Thread(target=_stop_unread_at_end, name="readers", daemon=True)
        _watchers.append(watcher)
        watcher.start()


def _stop_unread_at_end() -> None:
    threading.main_thread().join()
    _stop_unread()


def _stop_unread() -> None:
    """Tells the jobs that nobody reads them, unless a thread is left that might.

    Daemon threads do not count: they may end with the program at any time.
    """
    own = {threading.main_thread(), *(job.thread for job in _beside)}
    for thread in threading.enumerate():
        ours = thread in own or thread.name.startswith(THREAD_NAME_PREFIX)
        if not ours and not thread.daemon:
            return
    for job in _beside:
        if job.on_unread is not None and not job.future.done():
            job.on_unread()


def _unnoticed(job: JobHandle) -> bool:
    return job.future.done() and job.future.exception() is not None and not job.asked


@atexit.register
def _end_as_failed() -> None:
    """Has the process end with code 1 after a failure of a job that nobody asked for.

    The jobs have ended: Python waits for their threads before it comes here.
    """
    if any(map(_unnoticed, _beside)):
        # What else is to be done at the end of the program is done before.
        atexit._run_exitfuncs()
        for stream in (sys.stdout, sys.stderr):
            if stream is not None:
                stream.flush()
        os._exit(1)


def execute_within(graph: StreamGraph, config: JobConfig) -> JobHandle:
    """Starts the job in the event loop that is running; the process belongs to its host."""
    check_platform()
    logger.info(
        "job %r runs in its host's event loop: signals, garbage collection and the thread switch "
        "interval stay as they are, so longer pauses are possible",
        config.name,
    )
    job = JobHandle(graph, config)
    task = asyncio.get_running_loop().create_task(job.run(), name=f"job {config.name}")

    def ended(done: asyncio.Task[JobExecutionResult]) -> None:
        _running.discard(done)
        if not done.cancelled() and (error := done.exception()) is not None:
            logger.error("%s", format_failure(error))

    _running.add(task)
    task.add_done_callback(ended)
    return job


def check_platform() -> None:
    """Raises ConfigurationError where jobs cannot run."""
    if sys.platform == "win32":
        raise ConfigurationError(
            "jobs run on Linux and macOS: forked snapshots and signals are not there on Windows; "
            "use WSL"
        )
    if sysconfig.get_config_var("Py_GIL_DISABLED"):
        raise ConfigurationError(
            "jobs need a Python with the global interpreter lock: the free-threaded build is not "
            "supported, because the order of what tasks share relies on it"
        )


_beside: list[JobHandle] = []
_watchers: list[threading.Thread] = []

# The loop only keeps weak references to its tasks.
_running: set[asyncio.Task[JobExecutionResult]] = set()


def interruption() -> SystemExit | None:
    """What ends the program after a signal has stopped its job, or None without one."""
    received = stop_signals.received
    return None if received is None else SystemExit(exit_code(received))


def _leave_if_interrupted() -> None:
    interrupted = interruption()
    if interrupted is not None:
        raise interrupted


def _run_loop(job: JobHandle) -> JobExecutionResult:
    open_standard_streams()
    with (
        job_process_settings(),
        asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner,
    ):
        return runner.run(_run_shown(job))


async def _run_shown(job: JobHandle) -> JobExecutionResult:
    asyncio.get_running_loop().set_default_executor(counted_executor())
    clock = SystemClock()
    wanted = current_launch().live_line
    try:
        with live_line(job.config.name, job.statistics, clock, wanted=wanted):
            return await job.run()
    finally:
        await _end_leftovers()


async def _end_leftovers() -> None:
    """Ends what is left in the loop; leaves the process if something does not end.

    The runner would wait for it for ever.
    """
    left = asyncio.all_tasks() - {asyncio.current_task()}
    for task in left:
        task.cancel()
    if not left:
        return
    _, stuck = await asyncio.wait(left, timeout=LEFTOVER_SECONDS)
    if stuck:
        error = sys.exception()
        if error is not None:
            sys.stderr.write(format_failure(error) + "\n")
        for task in stuck:
            task.print_stack(file=sys.stderr)
        sys.stderr.write("these tasks did not end; leaving without them\n")
        sys.stderr.flush()
        os._exit(1)
