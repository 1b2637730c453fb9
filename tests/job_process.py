"""Runs job files as processes, as a user does."""

import os
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

TIMEOUT_SECONDS = 30


@dataclass(frozen=True)
class Outcome:
    """How a process ended."""

    code: int
    out: str
    err: str


class JobFolder:
    """A folder with the file of a job, and ways to run it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.job = path / "job.py"

    def write(self, code: str) -> None:
        """Makes `code` the job."""
        self.job.write_text(code)

    def command(self, *arguments: str) -> Sequence[str]:
        """The command line that runs the job with the arguments."""
        return [sys.executable, "-m", "runtime", str(self.job), *arguments]

    def start(
        self, *arguments: str, plain: bool = False, own_group: bool = False
    ) -> subprocess.Popen[str]:
        """Starts the job, in a process group of its own if asked; its output is to be read."""
        command = [sys.executable, str(self.job)] if plain else self.command(*arguments)
        return subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=self.path,
            env={**os.environ, "PYTHONUNBUFFERED": "1"},
            start_new_session=own_group,
        )

    def run(self, *arguments: str, plain: bool = False) -> Outcome:
        """Runs the job to its end."""
        return outcome(self.start(*arguments, plain=plain))


def read_until(process: subprocess.Popen[str], text: str) -> list[str]:
    """Reads the log of a job up to a line with `text`; fails if the job ends before.

    A job that hangs is ended by the timeout of the test.
    """
    assert process.stderr is not None
    lines: list[str] = []
    for line in process.stderr:
        lines.append(line)
        if text in line:
            return lines
    raise AssertionError(f"the job ended without {text!r}: {''.join(lines)}")


def outcome(process: subprocess.Popen[str]) -> Outcome:
    """Waits for the end of a process; gives what of its output has not been read yet."""
    assert process.stdout is not None
    assert process.stderr is not None
    # Not `communicate`: it reads past what the streams have buffered while lines were read.
    with process, ThreadPoolExecutor(2) as readers:
        out, err = readers.submit(process.stdout.read), readers.submit(process.stderr.read)
        try:
            process.wait(TIMEOUT_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            raise
        return Outcome(process.returncode, out.result(), err.result())
