"""A field that is not there, or cannot be summed, comes out as one sentence."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from operators.datastream import DataStream
from runtime import JobExecutionError, StreamExecutionEnvironment
from runtime.failure_report import format_failure

Build = Callable[[DataStream[Any]], DataStream[Any]]


def report(record: object, build: Build) -> str:
    """The report of a job over the record, twice, that fails."""
    env = StreamExecutionEnvironment.get_execution_environment()
    build(env.from_collection([record, record])).print()
    with pytest.raises(JobExecutionError) as raised:
        env.execute("broken")
    return format_failure(raised.value)


@pytest.mark.parametrize(
    ("record", "index", "message"),
    [
        ((1, 2, 3), 7, "a tuple of 3 has no field 7"),
        ([1], -2, "a list of 1 has no field -2"),
    ],
)
def test_a_key_by_an_index_that_is_not_there_says_how_many_there_are(
    record: object, index: int, message: str
) -> None:
    """Python names neither the index nor the length."""
    said = report(record, lambda stream: stream.key_by(index).reduce(max))
    assert said.endswith(f"record {record}: IndexError({message})")


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda s: s.key_by("user").sum("amount"), "TypeError(unsupported operand type(s) for +"),
        (lambda s: s.key_by("user").max("amount"), "TypeError('>' not supported between"),
        (lambda s: s.key_by("amounts").sum("user"), "a key of type list has no stable form"),
    ],
)
def test_what_cannot_be_reduced_by_a_field_blames_no_function(build: Build, message: str) -> None:
    """The user gave none: no file of the runtime is named."""
    said = report({"user": "ann", "amount": {}, "amounts": []}, build)
    assert message in said.partition("\n")[0]
    assert "function " not in said
    assert ".py" not in said
