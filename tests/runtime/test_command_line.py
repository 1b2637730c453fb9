"""A command line is understood or refused with what was meant."""

from importlib.metadata import version

import pytest

from runtime.command_line import UsageError, parse
from runtime.errors import ConfigurationError


def test_flags_become_settings() -> None:
    """Each flag stands for a configuration key, its text read as that key's value."""
    command = parse(
        [
            *("job.py", "-p", "2", "--max-parallelism", "128", "--checkpoint-interval", "10s"),
            *("--checkpoint-dir", "/tmp/state", "--from", "latest", "--allow-non-restored-state"),
            *("--state-backend", "heap", "--timers", "heap"),
        ]
    )
    assert command.job_file == "job.py"
    assert command.overrides == {
        "parallelism.default": 2,
        "pipeline.max-parallelism": 128,
        "execution.checkpointing.interval": 10_000,
        "execution.checkpointing.dir": "/tmp/state",
        "execution.state-recovery.path": "latest",
        "execution.state-recovery.ignore-unclaimed-state": True,
        "state.backend.type": "heap",
        "riverrun.timers.type": "heap",
    }


def test_what_is_not_given_overrides_nothing() -> None:
    """The job's own settings stay."""
    assert parse(["job.py"]).overrides == {}


def test_arguments_after_two_dashes_are_the_jobs() -> None:
    """Even if they look like ours, and a second `--` is theirs."""
    command = parse(["job.py", "-p", "2", "--", "-p", "9", "--", "x"])
    assert command.overrides == {"parallelism.default": 2}
    assert command.job_arguments == ["-p", "9", "--", "x"]


def test_a_flag_outranks_set() -> None:
    """In whatever order they stand."""
    command = parse(["job.py", "-p", "2", "--set", "parallelism.default=5"])
    assert command.overrides["parallelism.default"] == 2


def test_set_takes_values_with_equals_signs() -> None:
    """Only the first one separates."""
    command = parse(["job.py", "--set", "execution.checkpointing.dir=/a=b"])
    assert command.overrides == {"execution.checkpointing.dir": "/a=b"}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["job.py", "--paralelism", "2"], "unknown option '--paralelism'; did you mean"),
        (["job.py", "--paralelism=2"], "unknown option '--paralelism'; did you mean"),
        (["job.py", "--parallel", "2"], "unknown option '--parallel'"),
        (["job.py", "--colour"], "unknown option '--colour' (for the job itself: after --; "),
        (["job.py", "--rate", "5"], "unknown option '--rate' (for the job itself: after --; "),
        (["job.py", "--frsh"], "unknown option '--frsh'; did you mean '--fresh'?"),
        (["job.py", "--checkpoint-intervall=1"], "did you mean '--checkpoint-interval'?"),
        (["job.py", "input.txt"], "unexpected argument 'input.txt'; arguments of the job stand"),
        ([], "no job file is given"),
        (["job.py", "-p"], "--parallelism needs a value after it"),
        (["job.py", "--from", "--fresh"], "--from needs a value after it"),
        (["job.py", "--fresh=yes"], "--fresh takes no value"),
        (["job.py", "--log-level", "loud"], "'loud' must be one of debug, info"),
    ],
)
def test_a_command_line_that_makes_no_sense_is_refused(arguments: list[str], message: str) -> None:
    """Options are never abbreviated: a new one must not change what an old line means."""
    with pytest.raises(UsageError) as refused:
        parse(arguments)
    assert message in str(refused.value)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["-p", "zero"], "--parallelism (parallelism.default): 'zero'"),
        (["-p", "0"], "an integer from 1 to 32768"),
        (["-p", "-1"], "--parallelism (parallelism.default): '-1'"),
        (["--checkpoint-interval", "-5s"], "'-5s' cannot be used; it must be a duration"),
        (["--checkpoint-interval", "5ms"], "of at least 10 ms"),
        (["--checkpoint-interval", "soon"], "--checkpoint-interval (execution.checkpointing.int"),
        (["--state-backend", "rocks"], "it must be 'heap'"),
        (["--set", "parallelism.default"], "--set parallelism.default: it must be KEY=VALUE"),
        (["--set", "paralelism.default=2"], "did you mean 'parallelism.default'?"),
        (["--set", "parallelism.default=x"], "--set parallelism.default: 'x' cannot be used"),
        (["--from", "latest", "--fresh"], "give one of the two"),
        (["-p", "5", "--max-parallelism", "4"], "parallelism.default is 5, above"),
    ],
)
def test_an_impossible_setting_is_refused_before_the_job_file_runs(
    arguments: list[str], message: str
) -> None:
    """The message names the flag, the value and what is allowed."""
    with pytest.raises(ConfigurationError) as refused:
        parse(["job.py", *arguments])
    assert message in str(refused.value)


def test_quiet_logs_only_warnings() -> None:
    """Unless a level is asked for by name."""
    assert parse(["job.py", "--quiet"]).log_level == "warning"
    assert parse(["job.py", "--quiet", "--log-level", "debug"]).log_level == "debug"


def test_the_version_is_that_of_the_installed_package(capsys: pytest.CaptureFixture[str]) -> None:
    """It needs no job file, and all is well."""
    with pytest.raises(SystemExit) as ended:
        parse(["--version"])
    assert ended.value.code == 0
    assert capsys.readouterr().out == f"riverrun {version('riverrun')}\n"
