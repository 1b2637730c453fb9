"""What an operator finds in its context."""

import pytest

from operators.errors import WrongResultError
from operators.stream_operator import Work
from statebackends.errors import StateError
from statebackends.heap import HeapKeyedStateBackend
from statebackends.keygroups import KeyGroupRange
from tests.runtime.chain_parts import context


def test_keyed_state_where_there_is_none_says_what_to_do() -> None:
    """The error names the operator and `key_by`."""
    with pytest.raises(StateError, match=r"'count'.*key_by"):
        _ = context("count").keyed_state


def test_keyed_state_is_that_of_the_subtask() -> None:
    """The same object each time."""
    keyed = HeapKeyedStateBackend(KeyGroupRange(0, 7), 8)
    assert context(keyed=keyed).keyed_state is keyed


def test_requests_reach_the_task() -> None:
    """Mail, room and failures, unchanged."""
    got: list[object] = []
    made = context(mail=got.append)
    made.wake = lambda: got.append("woken")
    made.failed = got.append
    error = OSError("gone")

    def action() -> Work:
        return ()

    made.send_mail(action)
    made.output_freed()
    made.fail(error)
    assert got == [action, "woken", error]


@pytest.mark.parametrize("wrong", [None, "broken", ValueError], ids=repr)
def test_a_failure_that_is_no_exception_fails_the_task_saying_so(wrong: object) -> None:
    """The call may come from a callback in which an error would be lost."""
    got: list[BaseException] = []
    made = context()
    made.failed = got.append
    made.fail(wrong)  # type: ignore[arg-type]  # wrong on purpose
    (error,) = got
    assert isinstance(error, WrongResultError)
    assert "takes an exception object, not" in str(error)
    assert repr(wrong) in str(error)
