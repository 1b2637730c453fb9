"""`python -m runtime job.py [options] [-- arguments of the job]`."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from runtime.command_line import CommandLine, UsageError, parse
from runtime.errors import ConfigurationError
from runtime.failure_report import format_failure, is_refusal, user_location
from runtime.job_file import check_job_file, run_job_file
from runtime.job_log import configure_logging
from runtime.launch import Launch, set_launch
from runtime.standard_streams import open_standard_streams

FINISHED = 0
FAILED = 1
BAD_USAGE = 2
INTERRUPTED = 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs a command line (by default the process's) and returns the exit code."""
    open_standard_streams()
    try:
        command = parse(sys.argv[1:] if arguments is None else arguments)
        path = check_job_file(command.job_file)
    except (UsageError, ConfigurationError) as error:
        print(f"riverrun: error: {error}", file=sys.stderr)
        return BAD_USAGE
    configure_logging(command.log_level, as_json=command.json_logs)
    launch = Launch(
        overrides=command.overrides,
        plan_only=command.plan,
        live_line=not command.quiet,
    )
    set_launch(launch)
    try:
        run_job_file(path, command.job_arguments)
    except KeyboardInterrupt:
        return INTERRUPTED
    except Exception as error:
        if isinstance(error, ConfigurationError) or is_refusal(error):
            where = user_location(error)
            print(f"riverrun: error: {error}{f' ({where})' if where else ''}", file=sys.stderr)
            return BAD_USAGE
        print(format_failure(error), file=sys.stderr)
        return FAILED
    return _after_the_file(command, launch)


def _after_the_file(command: CommandLine, launch: Launch) -> int:
    if not launch.executions:
        print(
            f"riverrun: error: {command.job_file} ended without running a job; "
            "it must call env.execute(), env.execute_async() or stream.execute_and_collect()",
            file=sys.stderr,
        )
        return BAD_USAGE
    # Loaded by now: a job has been run.
    from runtime.execution import wait_for_jobs
    from runtime.stop_signals import exit_code, stop_signals

    all_well = wait_for_jobs()
    if not all_well:
        return FAILED
    if stop_signals.received is not None:
        return exit_code(stop_signals.received)
    return FINISHED


if __name__ == "__main__":
    sys.exit(main())
