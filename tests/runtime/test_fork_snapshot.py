"""Snapshots written by a forked child: the file, its failures, and no trace of the child."""

from __future__ import annotations

import asyncio
import errno
import os
import resource
import select
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from runtime.fork_snapshot import DescriptorSink, SnapshotChild, SnapshotChildError, can_fork
from statebackends.snapshot import ChunkSink
from tests.runtime.children import children

pytestmark = pytest.mark.skipif(not can_fork(), reason="the platform has no pidfd")

Write = Callable[[ChunkSink, Callable[[], bool]], object]
SECONDS = 10


@pytest.fixture(autouse=True)
def no_traces() -> Iterator[None]:
    """No test leaves a child or an open descriptor behind."""
    descriptors, processes = len(os.listdir("/proc/self/fd")), children()
    yield
    assert children() <= processes
    assert len(os.listdir("/proc/self/fd")) <= descriptors


def blocks(sink: ChunkSink, alive: Callable[[], bool]) -> None:
    """Waits in the child until it is killed."""
    sink.write(b"begun")
    signal.pause()


async def failure(write: Write, path: Path) -> str:
    with pytest.raises(SnapshotChildError) as failed:
        await asyncio.wait_for(SnapshotChild(write, str(path)).wait(), SECONDS)
    return str(failed.value)


async def test_the_file_holds_what_was_written(tmp_path: Path) -> None:
    """All chunks, in order, whatever their sizes."""
    chunks = [bytes([n % 251]) * (n * 37 % 5000) for n in range(300)]

    def write(sink: ChunkSink, alive: Callable[[], bool]) -> None:
        for chunk in chunks:
            assert alive()
            sink.write(chunk)

    path = tmp_path / "state"
    await SnapshotChild(write, str(path)).wait()
    assert path.read_bytes() == b"".join(chunks)


async def test_the_child_sees_the_state_of_the_fork(tmp_path: Path) -> None:
    """What the parent changes later is not in the file."""
    state = ["before"]
    path = tmp_path / "state"
    child = SnapshotChild(lambda sink, _: sink.write(state[0].encode()), str(path))
    state[0] = "after"
    await child.wait()
    assert path.read_bytes() == b"before"


async def test_what_the_child_raises_is_told(tmp_path: Path) -> None:
    """Type and message come through the pipe."""

    def write(sink: ChunkSink, alive: Callable[[], bool]) -> None:
        raise TypeError("cannot pickle 'socket' object")

    assert await failure(write, tmp_path / "state") == "TypeError: cannot pickle 'socket' object"


async def test_a_child_that_exits_is_a_failed_child(tmp_path: Path) -> None:
    """Even with status 0: `sys.exit` of a user's `__reduce__` must not pass for a snapshot."""

    def write(sink: ChunkSink, alive: Callable[[], bool]) -> None:
        sys.exit(0)

    assert "SystemExit" in await failure(write, tmp_path / "state")


async def test_an_endless_message_is_cut(tmp_path: Path) -> None:
    """It must fit the pipe, or the child would wait for a reader."""

    def write(sink: ChunkSink, alive: Callable[[], bool]) -> None:
        raise ValueError("x" * 1_000_000)

    assert len(await failure(write, tmp_path / "state")) <= 2000


async def test_a_full_disk_is_told(tmp_path: Path) -> None:
    """Here a limit on the size of files, in the child only."""

    def write(sink: ChunkSink, alive: Callable[[], bool]) -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
        for _ in range(10):
            sink.write(b"x" * 1000)

    assert "File too large" in await failure(write, tmp_path / "state")


async def test_a_missing_folder_is_told(tmp_path: Path) -> None:
    """The message names the path."""
    path = tmp_path / "nowhere" / "state"
    assert str(path) in await failure(lambda sink, _: sink.write(b"x"), path)


async def test_no_file_is_overwritten(tmp_path: Path) -> None:
    """Two writers of one name would mix."""
    path = tmp_path / "state"
    path.write_bytes(b"another's")
    assert "exists" in await failure(lambda sink, _: sink.write(b"x"), path)
    assert path.read_bytes() == b"another's"


async def test_a_child_that_dies_is_told(tmp_path: Path) -> None:
    """The out-of-memory killer leaves no message but a signal."""

    def write(sink: ChunkSink, alive: Callable[[], bool]) -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    assert "-9" in await failure(write, tmp_path / "state")


async def test_a_deadline_kills_the_child(tmp_path: Path) -> None:
    """The wait ends by the deadline of the waiting side, and nothing is left."""
    child = SnapshotChild(blocks, str(tmp_path / "state"))
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.01):
            await child.wait()
    assert not _exists(child.pid)


async def test_a_cancelled_wait_kills_the_child(tmp_path: Path) -> None:
    """The end of an attempt does not wait for its snapshots."""
    child = SnapshotChild(blocks, str(tmp_path / "state"))
    waiting = asyncio.create_task(child.wait())
    await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert not _exists(child.pid)


async def test_a_child_that_nobody_waits_for_is_abandoned(tmp_path: Path) -> None:
    """A checkpoint can be over before its work has begun; doing it twice is harmless."""
    child = SnapshotChild(blocks, str(tmp_path / "state"))
    child.abandon()
    child.abandon()
    assert not _exists(child.pid)


async def test_an_awaited_child_need_not_be_abandoned(tmp_path: Path) -> None:
    """Its pid may be another's by then."""
    child = SnapshotChild(lambda sink, _: sink.write(b"x"), str(tmp_path / "state"))
    await child.wait()
    child.abandon()
    assert (tmp_path / "state").read_bytes() == b"x"


async def test_the_child_ignores_what_is_meant_for_its_parent(tmp_path: Path) -> None:
    """Ctrl-C reaches the whole process group; the parent decides what becomes of its child."""

    def write(sink: ChunkSink, alive: Callable[[], bool]) -> None:
        for number in (signal.SIGINT, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1):
            os.kill(os.getpid(), number)
        sink.write(b"alive")

    path = tmp_path / "state"
    await SnapshotChild(write, str(path)).wait()
    assert path.read_bytes() == b"alive"


async def test_the_parents_signal_handlers_do_not_run_in_the_child(tmp_path: Path) -> None:
    """SIGTERM ends the child by the system's default."""
    called: list[int] = []
    before = signal.signal(signal.SIGTERM, lambda number, _: called.append(number))

    def write(sink: ChunkSink, alive: Callable[[], bool]) -> None:
        os.kill(os.getpid(), signal.SIGTERM)
        sink.write(b"went on")

    try:
        assert str(-signal.SIGTERM) in await failure(write, tmp_path / "state")
    finally:
        signal.signal(signal.SIGTERM, before)
    assert called == []


async def test_the_parent_keeps_its_signals(tmp_path: Path) -> None:
    """They are blocked for the moment of the fork only."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [])
    await SnapshotChild(lambda sink, _: sink.write(b"x"), str(tmp_path / "state")).wait()
    assert signal.pthread_sigmask(signal.SIG_BLOCK, []) == before


async def test_the_child_holds_no_descriptor_of_its_parent(tmp_path: Path) -> None:
    """A socket that the parent closes is closed; a lock that it gives up is free."""
    reader, writer = os.pipe()

    def write(sink: ChunkSink, alive: Callable[[], bool]) -> None:
        sink.write(" ".join(sorted(os.listdir("/proc/self/fd"), key=int)).encode())

    path = tmp_path / "state"
    try:
        await SnapshotChild(write, str(path)).wait()
    finally:
        os.close(reader)
        os.close(writer)
    beyond = [int(name) for name in path.read_bytes().split() if int(name) > 2]
    # Its file, the pipe for its last words, and the folder that it lists.
    assert len(beyond) == 3


ORPHAN = """
import os, signal, sys
from runtime.fork_snapshot import fork_writer

def write(sink, alive):
    print(os.getpid(), flush=True)
    while alive():
        sink.write(b"x")
        signal.sigtimedwait([signal.SIGUSR2], 0.005)
    raise InterruptedError

reader, writer = os.pipe()
fork_writer(write, sys.argv[1], writer)
signal.pause()
"""


def test_an_orphan_ends_by_itself(tmp_path: Path) -> None:
    """A parent that was killed has nobody left who wants the file."""
    parent = subprocess.Popen(
        [sys.executable, "-c", ORPHAN, str(tmp_path / "state")],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert parent.stdout is not None
    with parent, parent.stdout:
        orphan = int(parent.stdout.readline())
        pidfd = os.pidfd_open(orphan)
        parent.kill()
        try:
            ended, _, _ = select.select([pidfd], [], [], SECONDS)
            assert ended
        finally:
            os.close(pidfd)


def test_a_sink_writes_all_of_a_chunk(tmp_path: Path) -> None:
    """The system may take less than it is given."""
    descriptor = os.open(tmp_path / "state", os.O_WRONLY | os.O_CREAT)
    try:
        DescriptorSink(descriptor).write(b"x" * 3_000_000)
    finally:
        os.close(descriptor)
    assert (tmp_path / "state").stat().st_size == 3_000_000


def _exists(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


async def test_a_child_that_cannot_be_watched_ends_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process has only so many descriptors; the checkpoint is declined, nothing stays behind."""

    def none_left(pid: int) -> int:
        raise OSError(errno.EMFILE, "Too many open files")

    monkeypatch.setattr(os, "pidfd_open", none_left)
    with pytest.raises(OSError, match="Too many open files"):
        SnapshotChild(blocks, str(tmp_path / "state"))


async def test_a_child_that_was_waited_for_is_not_killed(tmp_path: Path) -> None:
    """Its descriptor may stand for another one by then."""
    child = SnapshotChild(lambda sink, _: sink.write(b"whole"), str(tmp_path / "state"))
    await child.wait()
    other = SnapshotChild(blocks, str(tmp_path / "other"))
    child.kill()
    assert not select.select([other._pidfd], [], [], 0)[0]
    other.abandon()
