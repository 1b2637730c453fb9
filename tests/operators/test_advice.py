"""A missing attribute says what was perhaps meant."""

from __future__ import annotations

import copy
from datetime import timedelta
from typing import Any

import pytest

from runtime import StreamExecutionEnvironment, TumblingEventTimeWindows


@pytest.fixture
def numbers() -> Any:
    return StreamExecutionEnvironment.get_execution_environment().from_collection([(1, 2)])


@pytest.mark.parametrize("name", ["window", "reduce", "sum", "min_by"])
def test_what_needs_a_key_says_so(numbers: Any, name: str) -> None:
    """The remedy is in the message."""
    with pytest.raises(AttributeError, match=rf"no attribute '{name}': call key_by\(\.\.\.\)"):
        getattr(numbers, name)


@pytest.mark.parametrize("name", ["map", "print", "sink_to", "uid"])
def test_a_stream_of_windows_says_what_comes_first(numbers: Any, name: str) -> None:
    """Windows are computed before they are a stream again."""
    windows = numbers.key_by(0).window(TumblingEventTimeWindows.of(timedelta(seconds=1)))
    with pytest.raises(AttributeError, match="reduce, aggregate, process, apply, count"):
        getattr(windows, name)


def test_a_name_of_java_is_understood(numbers: Any) -> None:
    """By the nearest name that there is."""
    with pytest.raises(AttributeError, match="did you mean 'key_by'"):
        numbers.keyBy(0)
    with pytest.raises(AttributeError, match="did you mean 'set_parallelism'"):
        StreamExecutionEnvironment.get_execution_environment().setParallelism(2)  # type: ignore[attr-defined]  # the mistake
    assert not hasattr(numbers, "nothing_of_the_kind")
    assert copy.copy(numbers) is not numbers
