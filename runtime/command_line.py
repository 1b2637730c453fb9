"""What a command line asks for: options to settings, and errors that say what was meant."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NoReturn

from runtime.config import OPTIONS, find_option, job_config
from runtime.config_options import nearest
from runtime.errors import ConfigurationError
from runtime.job_log import LEVELS

DESCRIPTION = "Runs a job: a Python file that builds streams and calls env.execute()."
EPILOG = (
    "Exit codes: 0 finished, 1 failed, 2 bad usage or configuration, 130 and 143 after a clean "
    "stop by SIGINT and SIGTERM (the first signal stops cleanly, a second leaves at once)."
)

FLAG_KEYS = {
    "parallelism": "parallelism.default",
    "max_parallelism": "pipeline.max-parallelism",
    "state_backend": "state.backend.type",
    "timers": "riverrun.timers.type",
    "checkpoint_interval": "execution.checkpointing.interval",
    "checkpoint_dir": "execution.checkpointing.dir",
    "from_": "execution.state-recovery.path",
    "fresh": "riverrun.recovery.fresh",
    "allow_non_restored_state": "execution.state-recovery.ignore-unclaimed-state",
}
"""The configuration key behind each flag."""


_OPTION = re.compile(r"--?[a-z][a-z-]*")
_NEGATIVE = re.compile(r"-[0-9.]")


class UsageError(Exception):
    """A command line that cannot be understood; the message says what was meant."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandLine:
    """A command line, understood."""

    job_file: str
    job_arguments: Sequence[str] = ()
    overrides: dict[str, object] = field(default_factory=dict)
    """Settings by configuration key; they outrank those of the job."""
    plan: bool = False
    log_level: str = "info"
    quiet: bool = False
    json_logs: bool = False


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise UsageError(_plain(message))


class _VersionAction(argparse.Action):
    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> NoReturn:
        # Imported here: it takes longer than all of the command line.
        from importlib.metadata import PackageNotFoundError, version

        try:
            number = version(parser.prog)
        except PackageNotFoundError:
            number = "(not installed)"
        sys.stdout.write(f"{parser.prog} {number}\n")
        parser.exit()


def parser() -> argparse.ArgumentParser:
    """The options of `python -m runtime`."""
    made = _Parser(
        prog="riverrun",
        usage="riverrun job.py [options] [-- arguments of the job]",
        description=DESCRIPTION,
        epilog=EPILOG,
        allow_abbrev=False,
    )
    made.add_argument("job_file", metavar="job.py", nargs="?", help="the file of the job")
    add = made.add_argument
    add("-p", "--parallelism", metavar="N", help="subtasks of operators that do not say themselves")
    add("--max-parallelism", metavar="N", help="number of key groups, fixed at the first run")
    add("--state-backend", metavar="heap", help="where keyed state lives")
    add("--timers", metavar="heap", help="where timers live")
    add("--checkpoint-interval", metavar="10s", help="takes checkpoints this often")
    add("--checkpoint-dir", metavar="DIR", help="where checkpoints are kept (./checkpoints)")
    add("--from", dest="from_", metavar="PATH|latest", help="the checkpoint to start from")
    add("--fresh", action="store_true", default=None, help="starts without state in any case")
    add(
        "--allow-non-restored-state",
        action="store_true",
        default=None,
        help="starts also if the checkpoint holds state that no operator claims",
    )
    add(
        "--set",
        dest="settings",
        metavar="KEY=VALUE",
        action="append",
        default=[],
        help="any key of docs/configuration.md; may be given several times",
    )
    add("--plan", action="store_true", help="prints the plan of the job instead of running it")
    add("--log-level", metavar="|".join(LEVELS), default="info", help="least level that is logged")
    add("--quiet", action="store_true", help="no live line, and only warnings are logged")
    add("--json-logs", action="store_true", help="logs as one JSON object a line")
    add("--version", action=_VersionAction, nargs=0, help="prints the version and ends")
    return made


def parse(arguments: Sequence[str]) -> CommandLine:
    """Understands a command line without the program's name.

    Raises UsageError for what is no option or no file, ConfigurationError for values and keys.
    """
    own, job_arguments = _split(arguments)
    options = parser()
    values, unknown = options.parse_known_args(own)
    if unknown:
        raise UsageError(_unknown(unknown[0], options))
    if values.job_file is None:
        raise UsageError("no job file is given")
    if values.log_level not in LEVELS:
        raise UsageError(f"--log-level: {values.log_level!r} must be one of {', '.join(LEVELS)}")
    overrides = _settings(values.settings)
    for attribute, key in FLAG_KEYS.items():
        value = getattr(values, attribute)
        if value is not None:
            flag = "--" + attribute.strip("_").replace("_", "-")
            overrides[key] = OPTIONS[key].read(value, flag)
    job_config(overrides)
    return CommandLine(
        job_file=values.job_file,
        job_arguments=job_arguments,
        overrides=overrides,
        plan=values.plan,
        log_level="warning" if values.quiet and values.log_level == "info" else values.log_level,
        quiet=values.quiet,
        json_logs=values.json_logs,
    )


def _split(arguments: Sequence[str]) -> tuple[list[str], list[str]]:
    """Ours, and those of the job after the first `--`."""
    own = list(arguments)
    at = own.index("--") if "--" in own else len(own)
    return _joined(own[:at]), own[at + 1 :]


def _joined(arguments: Sequence[str]) -> list[str]:
    """Negative values tied to their options (`-p -1`): argparse takes them for options."""
    joined: list[str] = []
    for argument in arguments:
        if joined and _OPTION.fullmatch(joined[-1]) and _NEGATIVE.match(argument):
            before = joined.pop()
            argument = f"{before}={argument}" if before.startswith("--") else before + argument
        joined.append(argument)
    return joined


def _plain(message: str) -> str:
    """What argparse says in its own terms (`argument -p/--parallelism: expected one argument`)."""
    names, colon, problem = message.removeprefix("argument ").partition(": ")
    if not colon or not message.startswith("argument "):
        return message
    name = names.rpartition("/")[2]
    if problem == "expected one argument":
        return f"{name} needs a value after it"
    if problem.startswith("ignored explicit argument"):
        return f"{name} takes no value"
    return f"{name}: {problem}"


def _settings(pairs: Sequence[str]) -> dict[str, object]:
    overrides: dict[str, object] = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals:
            raise ConfigurationError(f"--set {pair}: it must be KEY=VALUE")
        overrides[key.strip()] = find_option(key.strip()).read(value.strip(), f"--set {key}")
    return overrides


def _unknown(argument: str, options: argparse.ArgumentParser) -> str:
    if not argument.startswith("-"):
        return f"unexpected argument {argument!r}; arguments of the job stand after --"
    name = argument.partition("=")[0]
    known = [one for action in options._actions for one in action.option_strings]
    # An option of the job is nothing like ours; a hint that is taken could throw away its state.
    hint = nearest(name, known, cutoff=0.75)
    return f"unknown option {name!r}{hint} (for the job itself: after --; --help lists ours)"
