"""The broker as an operating-system process: found, signalled, waited for."""

import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import IO

from connectors.kafka.local.waiting import wait_until


class BrokerProcess:
    """A running process that was started for one server.properties file.

    Its identity is the process id together with that file's path among the
    arguments, so that a process id which the system gave away anew is never signalled.
    """

    def __init__(
        self, pid: int, properties: Path, child: subprocess.Popen[bytes] | None = None
    ) -> None:
        self.pid = pid
        self._properties = str(properties)
        self._child = child
        self._guard: subprocess.Popen[bytes] | None = None

    def alive(self) -> bool:
        """Tell whether the process still runs (a stopped one does, a zombie does not)."""
        if self._child is not None:
            return self._child.poll() is None
        return self._properties in _arguments(self.pid)

    def signal(self, number: signal.Signals) -> None:
        """Send a signal; nothing happens where the process has ended."""
        if self.alive():
            try:
                os.kill(self.pid, number)
            except ProcessLookupError:
                # It ended between the question and the signal, which is as good.
                return

    def end(self, grace_seconds: float) -> bool:
        """End the process: SIGTERM, after ``grace_seconds`` SIGKILL; return whether it is gone."""
        self.unguard()
        self.signal(signal.SIGTERM)
        # A paused process takes no notice of SIGTERM until it goes on.
        self.signal(signal.SIGCONT)
        return wait_until(lambda: not self.alive(), grace_seconds) or self.kill()

    def kill(self) -> bool:
        """End the process with SIGKILL; return whether it is gone."""
        self.unguard()
        self.signal(signal.SIGKILL)
        return wait_until(lambda: not self.alive(), 10)

    def pause(self) -> bool:
        """Stop the process by SIGSTOP; return whether all its threads have come to a halt.

        They do so a little after the signal was sent, and answer requests until then.
        """
        self.signal(signal.SIGSTOP)
        return wait_until(lambda: _halted(self.pid), 10)

    def guard(self) -> None:
        """See to it that the broker ends with this Python process, even if that is killed.

        A shell waits on a pipe that only this process can write to; its end comes
        when this process ends, in whichever way, and then the shell kills the broker.
        """
        self._guard = subprocess.Popen(
            ["/bin/sh", "-c", f"read line; kill -9 {self.pid}"],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )

    def unguard(self) -> None:
        """Take back :meth:`guard`; nothing happens where there is none."""
        if self._guard is None:
            return
        guard, self._guard = self._guard, None
        guard.kill()
        guard.wait()
        if guard.stdin is not None:
            guard.stdin.close()


def spawn(command: Sequence[str], properties: Path, output: IO[bytes]) -> BrokerProcess:
    """Start the broker in a session of its own, so that no terminal's Ctrl-C reaches it."""
    child = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    return BrokerProcess(child.pid, properties, child)


def find(pid_file: Path, properties: Path) -> BrokerProcess | None:
    """Find the broker whose id is in ``pid_file``; None where it does not run (any more)."""
    try:
        pid = int(pid_file.read_text(encoding="ascii"))
    except (FileNotFoundError, ValueError):
        return None
    process = BrokerProcess(pid, properties)
    return process if process.alive() else None


def _arguments(pid: int) -> Sequence[str]:
    """Return the command line of a process, empty where there is none."""
    return _of_proc(pid) if sys.platform == "linux" else _of_ps(pid)


def _of_proc(pid: int) -> Sequence[str]:
    try:
        command = Path(f"/proc/{pid}/cmdline").read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return ()
    return os.fsdecode(command).split("\0")


def _halted(pid: int) -> bool:
    if sys.platform == "linux":
        return _threads_halted(pid)
    else:
        return _ps(pid, "state=").startswith("T")


def _threads_halted(pid: int) -> bool:
    threads = Path(f"/proc/{pid}/task").glob("*/stat")
    try:
        # The state is the first field after the name, which stands in parentheses.
        states = {file.read_text().rpartition(") ")[2][:1] for file in threads}
    except (FileNotFoundError, ProcessLookupError):
        # A thread ended in between, so they were not all halted.
        return False
    return states == {"T"}


def _of_ps(pid: int) -> Sequence[str]:
    # ps joins the arguments by spaces; after the class comes the path, which may hold some.
    return (_ps(pid, "command=").partition(" kafka.Kafka ")[2],)


def _ps(pid: int, column: str) -> str:
    answer = subprocess.run(
        ["ps", "-ww", "-o", column, "-p", str(pid)],
        capture_output=True,
        text=True,
        timeout=10,
        check=False,
    )
    return answer.stdout.strip()
