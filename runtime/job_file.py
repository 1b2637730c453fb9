"""Runs the file of a job as the main program."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType

from runtime.command_line import UsageError

PACKAGES = ("runtime", "operators", "connectors", "statebackends")
_HOME = Path(__file__).resolve().parent.parent


def check_job_file(job_file: str) -> Path:
    """The path of the file; raises UsageError if it cannot be a job of ours."""
    path = Path(job_file)
    if path.is_dir():
        raise UsageError(f"{job_file!r} is a folder, not the file of a job")
    if not path.exists():
        raise UsageError(f"there is no job file {job_file!r} (in {Path.cwd()})")
    folder = path.resolve().parent
    for package in PACKAGES if folder != _HOME else ():
        for hiding in (folder / f"{package}.py", folder / package / "__init__.py"):
            if hiding.exists():
                raise UsageError(
                    f"{hiding} beside the job file has the name of a package of riverrun, so "
                    f"'import {package}' means something else in the two; rename it"
                )
    return path


def run_job_file(path: Path, arguments: Sequence[str]) -> None:
    """Runs the file as `python path arguments` would, in this process.

    Its module stays `__main__` for good: classes defined there are found again by name when
    state is restored, also while a job still runs beside the main thread. Raises what the file
    raises.
    """
    sys.argv = [str(path), *arguments]
    sys.path.insert(0, str(path.resolve().parent))
    module = ModuleType("__main__")
    module.__file__ = str(path)
    sys.modules["__main__"] = module
    code = compile(path.read_bytes(), str(path), "exec", dont_inherit=True)
    exec(code, module.__dict__)
