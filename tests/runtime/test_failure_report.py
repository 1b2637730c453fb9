"""A failure as text: the message, its notes, and only the user's own traceback."""

from collections.abc import Callable
from pathlib import Path

import pytest

from runtime.environment import StreamExecutionEnvironment
from runtime.errors import ConfigurationError, JobExecutionError, OperatorFailure
from runtime.failure_report import format_failure, is_refusal, user_location


def caught(action: Callable[[], object]) -> BaseException:
    """What an action raises."""
    with pytest.raises(BaseException) as raised:  # noqa: PT011 - each test says which
        action()
    return raised.value


def parse(record: str) -> int:
    """User code that fails on what is no number."""
    return int(record)


def failed_job() -> JobExecutionError:
    """The error of a real job whose map function fails, in a helper that it calls."""
    env = StreamExecutionEnvironment.get_execution_environment()
    env.from_collection(["1", "x"]).map(lambda record: [parse(record)]).print()
    error = caught(lambda: env.execute("numbers"))
    assert isinstance(error, JobExecutionError)
    return error


def test_the_message_comes_first_and_the_users_traceback_below() -> None:
    """In the order in which a reader needs them."""
    text = format_failure(failed_job())
    assert text.startswith("JobExecutionError: job 'numbers' failed in operator 'Map'")
    assert text.endswith("ValueError: invalid literal for int() with base 10: 'x'")
    assert text.index("Traceback (most recent call last)") > text.index("JobExecutionError")


def test_the_traceback_begins_in_the_users_code() -> None:
    """No frame of the runtime is shown, all frames that user code called are."""
    text = format_failure(failed_job())
    functions = [line.rsplit(" ", 1)[1] for line in text.splitlines() if line.startswith("  File")]
    assert functions == ["<lambda>", "parse"]


def test_later_failures_are_shown_as_notes() -> None:
    """Below the message that they came after."""
    error = JobExecutionError("job 'j' failed")
    error.add_note("then also: OSError: closed")
    assert (
        format_failure(error) == "JobExecutionError: job 'j' failed\n  (then also: OSError: closed)"
    )


def test_coordinates_do_not_hide_the_users_exception() -> None:
    """The error of the operator stands between the two and is not shown again."""
    inner = OperatorFailure(operator="o", uid="u", subtask_index=0, parallelism=1)
    inner.__cause__ = KeyError("ts")
    outer = JobExecutionError("job 'j' failed")
    outer.__cause__ = inner
    assert format_failure(outer).splitlines()[-1] == "KeyError: 'ts'"


def test_a_configuration_error_has_no_traceback() -> None:
    """Its message says everything."""
    error = caught(lambda: StreamExecutionEnvironment().set_parallelism(0))
    assert isinstance(error, ConfigurationError)
    assert "\n" not in format_failure(error)


def test_the_location_of_an_error_is_the_users_call() -> None:
    """Not a line of the runtime, and not one of a library that the runtime went through."""
    error = caught(lambda: StreamExecutionEnvironment().set_parallelism(0))
    path, line = user_location(error).rsplit(":", 1)
    assert path == __file__
    assert "set_parallelism(0)" in Path(path).read_text().splitlines()[int(line) - 1]


def test_what_the_runtime_refuses_ends_at_the_users_line() -> None:
    """How it found out is nobody's affair."""
    env = StreamExecutionEnvironment.get_execution_environment()
    error = caught(lambda: env.from_sequence(3, 0))
    assert is_refusal(error)
    text = format_failure(error)
    assert "from_sequence(3, 0)" in text.splitlines()[-2] or "^" in text.splitlines()[-2]
    assert "/operators/" not in text


def test_the_users_own_mistakes_are_no_refusals() -> None:
    """A ValueError of user code keeps its traceback."""
    error = caught(lambda: parse("x"))
    assert not is_refusal(error)
    assert "in parse" in format_failure(error)


def test_a_sentence_that_says_all_has_no_traceback_below_it() -> None:
    """The runtime knew what it refused; none of the user's lines were running."""
    env = StreamExecutionEnvironment.get_execution_environment()
    env.from_collection([1]).flat_map(lambda _: "text").print()
    assert "\n" not in format_failure(caught(env.execute))
