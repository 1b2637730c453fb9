"""Writes a snapshot in a forked child, so that the loop stalls for the fork only.

Serialising a million entries in a thread keeps the GIL for seconds; a child has a GIL and a
frozen copy of the state of its own. The child is not a worker: it shares the parent's event
loop, sockets and locks, so it touches none of them, writes with `os.write` and leaves by
`os._exit` whatever happens.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import os
import signal
import warnings
from collections.abc import Callable, Iterator

from statebackends.snapshot import ChunkSink

CHILD_NICE = 5
"""The child yields to the job, which is what somebody waits for."""

_FAILED = 70
_MESSAGE_BYTES_MAX = 2000
_HANDLED = (
    signal.SIGINT,
    signal.SIGTERM,
    signal.SIGHUP,
    signal.SIGQUIT,
    signal.SIGUSR1,
    signal.SIGUSR2,
)


class DescriptorSink:
    """Writes to a file descriptor without a buffer of its own."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def write(self, chunk: bytes, /) -> None:
        """Writes all of `chunk`; raises OSError (a full disk)."""
        view = memoryview(chunk)
        while view:
            view = view[os.write(self._descriptor, view) :]


def can_fork() -> bool:
    """Whether this platform has what the recipe needs (pidfd: Linux 5.3 and later)."""
    return hasattr(os, "fork") and hasattr(os, "pidfd_open")


@contextlib.contextmanager
def _signals_blocked() -> Iterator[set[signal.Signals | int]]:
    """A signal that came between fork and the child's own handlers would run the parent's."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _HANDLED)
    try:
        yield before
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def fork_writer(
    write: Callable[[ChunkSink, Callable[[], bool]], object], path: str, errors: int
) -> int:
    """Forks a child that runs `write(sink, alive)` into the new file `path`; returns its pid.

    `errors` is the write end of a pipe for the child's last words.
    """
    parent = os.getpid()
    with _signals_blocked() as mask, warnings.catch_warnings():
        # Python 3.12 warns of threads at fork; the child runs none of their code.
        warnings.simplefilter("ignore", DeprecationWarning)
        pid = os.fork()
        if pid == 0:
            _child(write, path, errors, parent, mask)
    return pid


def _child(
    write: Callable[[ChunkSink, Callable[[], bool]], object],
    path: str,
    errors: int,
    parent: int,
    mask: set[signal.Signals | int],
) -> None:
    """Runs in the child and never returns."""
    code = _FAILED
    try:
        gc.disable()
        signal.set_wakeup_fd(-1)
        for number in _HANDLED:
            # The parent decides: Ctrl-C reaches the whole process group.
            stays = number is signal.SIGTERM
            signal.signal(number, signal.SIG_DFL if stays else signal.SIG_IGN)
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        os.closerange(3, errors)
        os.closerange(errors + 1, 1 << 20)
        os.nice(CHILD_NICE)
        _be_first_out_of_memory()
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        write(DescriptorSink(descriptor), lambda: os.getppid() == parent)
        os.fsync(descriptor)
        code = 0
    except BaseException as error:
        message = f"{type(error).__name__}: {error}".encode(errors="replace")
        with contextlib.suppress(OSError):
            os.write(errors, message[:_MESSAGE_BYTES_MAX])
    finally:
        os._exit(code)


def _be_first_out_of_memory() -> None:
    with contextlib.suppress(OSError):
        descriptor = os.open("/proc/self/oom_score_adj", os.O_WRONLY)
        os.write(descriptor, b"1000")
        os.close(descriptor)


class SnapshotChildError(Exception):
    """A snapshot child did not finish its file; says why."""


def _watched(pid: int) -> int:
    """A descriptor of a child; a child that gets none (a process has so many) ends at once."""
    try:
        return os.pidfd_open(pid)
    except OSError:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        raise


class SnapshotChild:
    """A forked child under the parent's eyes: awaited or abandoned, and reaped in any case."""

    def __init__(self, write: Callable[[ChunkSink, Callable[[], bool]], object], path: str) -> None:
        self._errors, child_end = os.pipe()
        try:
            self.pid = fork_writer(write, path, child_end)
            self._pidfd = _watched(self.pid)
        except BaseException:
            os.close(self._errors)
            raise
        finally:
            os.close(child_end)
        self._reaped = False

    async def wait(self) -> None:
        """Waits for the child; raises `SnapshotChildError` if it failed.

        If the wait is cancelled (a deadline, the end of the attempt) the child is killed.
        """
        loop = asyncio.get_running_loop()
        ended: asyncio.Future[None] = loop.create_future()

        def on_end() -> None:
            if not ended.done():
                ended.set_result(None)

        loop.add_reader(self._pidfd, on_end)
        try:
            await ended
        finally:
            loop.remove_reader(self._pidfd)
            if not ended.done() or ended.cancelled():
                self.kill()
            code, words = self._reap()
        if code != 0:
            raise SnapshotChildError(words or f"the snapshot child ended with code {code}")

    def kill(self) -> None:
        """Ends the child at once; does nothing once it was waited for."""
        if self._reaped:
            # By now its descriptor may stand for another child.
            return
        with contextlib.suppress(ProcessLookupError):
            signal.pidfd_send_signal(self._pidfd, signal.SIGKILL)

    def abandon(self) -> None:
        """Ends a child that nobody waits for; does nothing once it was waited for."""
        if not self._reaped:
            self.kill()
            self._reap()

    def _reap(self) -> tuple[int, str]:
        # A killed child ends at once, so this does not wait.
        _, status = os.waitpid(self.pid, 0)
        self._reaped = True
        os.close(self._pidfd)
        with contextlib.closing(open(self._errors, "rb", buffering=0)) as pipe:
            words = pipe.read(_MESSAGE_BYTES_MAX).decode(errors="replace")
        return os.waitstatus_to_exitcode(status), words
