"""The folder of one job under the checkpoint directory: who runs in it, and how often.

`<directory>/<job name, percent-encoded>/` holds::

    chk-<id>/       the checkpoints
    epochs/<n>      one empty file for the newest start; a start makes the next one, atomically
    lock            locked (flock) by the live run, whose process id stands in it
    run.json        how the last run went
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path
from typing import Protocol
from urllib.parse import quote

from runtime.errors import ConfigurationError
from statebackends.errors import CheckpointStorageError
from statebackends.file_storage import (
    FileSystemCheckpointStorage,
    RunBlocking,
    run_in_executor,
)
from statebackends.storage import CheckpointStorage, InMemoryCheckpointStorage


class SupersededError(Exception):
    """A newer run of the same job has begun; this one must not touch its checkpoints any more."""


class RunStatus(StrEnum):
    """How a run stands; only `FINISHED` lets the next one start without saying from where."""

    RUNNING = "running"
    FINISHED = "finished"
    STOPPED = "stopped"
    CANCELED = "canceled"
    FAILED = "failed"


class JobFolder(Protocol):
    """What a run needs to know of the runs before it and beside it."""

    label: str
    """Names the folder in messages."""
    storage: CheckpointStorage

    def last_status(self) -> RunStatus | None:
        """How the last run went; None if there was none, or its record is lost."""

    def begin_run(self) -> int:
        """Takes the next epoch for this run and records it as running."""

    def newest_epoch(self) -> int:
        """The epoch of the newest run; higher than one's own: that run goes on, this one ends."""

    def end_run(self, status: RunStatus) -> None:
        """Records how this run went."""

    def close(self) -> None:
        """Lets the next run in."""


class InMemoryJobFolder:
    """A job folder without a disk, for tests and simulation; it outlives the runs in it."""

    def __init__(self, storage: CheckpointStorage | None = None, label: str = "memory") -> None:
        self.label = label
        self.storage = storage if storage is not None else InMemoryCheckpointStorage()
        self._epoch = 0
        self._status: RunStatus | None = None

    def last_status(self) -> RunStatus | None:
        """How the last run went."""
        return self._status

    def begin_run(self) -> int:
        """The next epoch."""
        self._epoch += 1
        self._status = RunStatus.RUNNING
        return self._epoch

    def newest_epoch(self) -> int:
        """The epoch of the newest run."""
        return self._epoch

    def end_run(self, status: RunStatus) -> None:
        """Records how the run went."""
        self._status = status

    def close(self) -> None:
        """Nothing is held."""


class FileSystemJobFolder:
    """The folder of job `job_name` under `directory`, locked for this process until `close`.

    Raises `ConfigurationError` if another live run holds it, `CheckpointStorageError` if it
    cannot be made or read.
    """

    def __init__(
        self,
        directory: str | Path,
        job_name: str,
        *,
        run_blocking: RunBlocking = run_in_executor,
    ) -> None:
        root = FileSystemCheckpointStorage(directory).directory
        self.path = root / folder_name(job_name)
        self.label = str(self.path)
        self.storage: CheckpointStorage = FileSystemCheckpointStorage(
            self.path, run_blocking=run_blocking
        )
        self._job_name = job_name
        self._epoch = 0
        self._epochs = self.path / "epochs"
        self._record = self.path / "run.json"
        with _named(self.path):
            self._epochs.mkdir(parents=True, exist_ok=True)
            self._lock: int | None = self._take_lock()

    def last_status(self) -> RunStatus | None:
        """How the last run went; None if there was none, or its record is lost or damaged."""
        try:
            fields = json.loads(self._record.read_bytes())
            return RunStatus(fields["status"])
        except (FileNotFoundError, ValueError, KeyError, TypeError):
            return None

    def begin_run(self) -> int:
        """Takes the next epoch by making its file; older ones have no meaning and go."""
        epoch = self.newest_epoch() + 1
        with _named(self._epochs):
            while not self._make_epoch(epoch):
                epoch += 1
            for older in self._known_epochs():
                if older < epoch:
                    (self._epochs / str(older)).unlink(missing_ok=True)
        self._epoch = epoch
        self._write_record(RunStatus.RUNNING)
        return epoch

    def newest_epoch(self) -> int:
        """The epoch of the newest run."""
        with _named(self._epochs):
            return max(self._known_epochs(), default=0)

    def end_run(self, status: RunStatus) -> None:
        """Records how this run went, unless a newer one has begun."""
        if self.newest_epoch() == self._epoch:
            self._write_record(status)

    def close(self) -> None:
        """Releases the lock; may be called twice."""
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def _take_lock(self) -> int:
        path = self.path / "lock"
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            owner = os.read(descriptor, 32).decode("ascii", "replace").strip() or "unknown"
            os.close(descriptor)
            raise ConfigurationError(
                f"job {self._job_name!r} is running already: process {owner} holds {self.path};"
                " stop it first, or give this job another name or --checkpoint-dir"
            ) from error
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, f"{os.getpid()}\n".encode("ascii"), 0)
        return descriptor

    def _known_epochs(self) -> list[int]:
        return [int(name) for name in os.listdir(self._epochs) if name.isascii() and name.isdigit()]

    def _make_epoch(self, epoch: int) -> bool:
        """Makes the file of an epoch; false if another run was faster."""
        try:
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
            os.close(os.open(self._epochs / str(epoch), flags, 0o644))
        except FileExistsError:
            return False
        _sync(self._epochs)
        return True

    def _write_record(self, status: RunStatus) -> None:
        fields = {
            "job": self._job_name,
            "epoch": self._epoch,
            "pid": os.getpid(),
            "status": status.value,
        }
        temporary = self.path / ".run.json.part"
        with _named(self._record):
            with temporary.open("wb") as file:
                file.write(json.dumps(fields, indent=1).encode("ascii"))
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(self._record)
            _sync(self.path)


def folder_name(job_name: str) -> str:
    """The name of a job's folder: percent-encoded, so that different names never meet.

    Raises `ConfigurationError` for a name that no folder can have.
    """
    name = quote(job_name, safe="")
    if name.startswith("."):
        name = "%2E" + name[1:]
    if not name or len(name) > 255:
        shown = job_name if len(job_name) <= 40 else f"{job_name[:40]}..."
        raise ConfigurationError(
            f"the job name {shown!r} cannot name its checkpoint folder: it has"
            f" {len(name)} characters percent-encoded, 1 to 255 are possible; give a shorter one"
        )
    return name


@contextlib.contextmanager
def _named(path: Path) -> Iterator[None]:
    """Turns errors of the operating system into one that names the path and the cause."""
    try:
        yield
    except OSError as error:
        raise CheckpointStorageError(
            f"{path}: cannot be used: {error.strerror or error}"
        ) from error


def _sync(path: Path) -> None:
    """Makes the names in a directory durable."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
