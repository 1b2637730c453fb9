"""The sentences of failures."""

from runtime.errors import ERROR_TEXT_MAX, OperatorFailure, error_text


def failure(**known: str) -> OperatorFailure:
    return OperatorFailure(operator="Count", uid="count-1", subtask_index=1, parallelism=4, **known)


def test_only_what_is_known_is_said() -> None:
    """Subtasks count from 1 for people."""
    assert str(failure()) == "operator 'Count' (uid count-1, subtask 2/4)"


def test_everything_known_is_said_in_one_order() -> None:
    """What it was doing, key, place, record."""
    known = failure(doing="in a timer", key="'k'", record="'r'", origin="clicks[3]@7")
    assert str(known) == (
        "operator 'Count' (uid count-1, subtask 2/4), in a timer, on key 'k',"
        " record from clicks[3]@7, record 'r'"
    )


def test_the_cause_ends_the_sentence() -> None:
    """Its type and its message."""
    error = failure()
    error.__cause__ = KeyError("user")
    assert error.describe().endswith(": KeyError('user')")
    assert failure().describe() == str(failure())


class Mute(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no text")


def test_a_message_that_raises_does_not_hide_the_failure() -> None:
    """The type of the exception is still there."""
    error = failure()
    error.__cause__ = Mute()
    assert "Mute(" in error.describe()
    assert "RuntimeError" in error.describe()


def test_a_long_message_is_cut() -> None:
    """A sentence is no place for a megabyte."""
    assert len(error_text(ValueError("x" * 1_000_000))) <= ERROR_TEXT_MAX + 3
