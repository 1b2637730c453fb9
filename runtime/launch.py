"""How this process was started: what the command line asked for, as the environment finds it."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(slots=True)
class Launch:
    """The start of a process that runs jobs."""

    overrides: Mapping[str, object] = field(default_factory=dict)
    """Settings of the command line, by configuration key; they outrank the job's."""
    plan_only: bool = False
    """Print the job's plan instead of running it."""
    live_line: bool = True
    """Show figures on the terminal while a job runs."""
    from_command_line: bool = False
    executions: int = 0
    """How often the job file has asked for an execution."""


_current = Launch()


def current_launch() -> Launch:
    """The start of this process; by default as `python job.py` is."""
    return _current


def set_launch(launch: Launch) -> None:
    """Makes `launch` the current one; the command line does so before it runs the job file."""
    global _current  # noqa: PLW0603 - there is one start of a process
    _current = launch


def default_job_name() -> str:
    """The name of the job's file without its suffix."""
    script = Path(sys.argv[0]) if sys.argv else Path()
    return script.stem if script.suffix == ".py" and script.stem else "riverrun job"
