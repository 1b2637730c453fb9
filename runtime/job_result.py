"""What can be known about a job from outside: its status, its figures, its result."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from enum import Enum

JOB_ID_HEX_DIGITS = 32
"""Length of a job id (Flink's are 128 bits too)."""


class JobStatus(Enum):
    """The state of a job (Flink: `JobStatus`)."""

    CREATED = "created"
    RUNNING = "running"
    FAILING = "failing"
    FAILED = "failed"
    CANCELLING = "cancelling"
    CANCELED = "canceled"
    FINISHED = "finished"
    RESTARTING = "restarting"

    def is_terminal_state(self) -> bool:
        """Whether the job is over."""
        return self in {JobStatus.FAILED, JobStatus.CANCELED, JobStatus.FINISHED}

    def is_globally_terminal_state(self) -> bool:
        """Whether the job is over for good; here the same as `is_terminal_state`."""
        return self.is_terminal_state()


@dataclass(frozen=True, slots=True, kw_only=True)
class JobStatistics:
    """Figures of a job at one moment; counts are totals of all attempts since its start."""

    status: JobStatus = JobStatus.CREATED
    records_in: int = 0
    """Records that sources have emitted."""
    records_out: int = 0
    """Records that sinks have taken."""
    watermark_ms: int | None = None
    """The lowest watermark that sinks have; None before all have one."""
    last_checkpoint_id: int | None = None
    last_checkpoint_ms: int | None = None
    """When the newest complete checkpoint completed, in processing time."""
    restarts: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class JobExecutionResult:
    """How a job ended that did not fail (PyFlink: `JobExecutionResult`)."""

    job_id: str
    job_name: str
    status: JobStatus
    net_runtime_ms: int
    statistics: JobStatistics

    def get_job_id(self) -> str:
        """The id of the job."""
        return self.job_id

    def get_net_runtime(self) -> int:
        """How long the job ran, in milliseconds, restarts included."""
        return self.net_runtime_ms


def new_job_id(name: str, now_ms: int) -> str:
    """An id for a run of a job: told apart by name, start and process."""
    text = f"{name}\0{now_ms}\0{os.getpid()}"
    return hashlib.sha256(text.encode()).hexdigest()[:JOB_ID_HEX_DIGITS]
