"""A missing attribute says what was perhaps meant."""

from __future__ import annotations

import copy
from datetime import timedelta
from typing import Any

import pytest

from operators.advice import Advising
from operators.datastream import DataStream
from operators.keyed_stream import KeyedStream
from operators.windowed_stream import WindowedStream
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


@pytest.mark.parametrize("name", ["connect", "count_window", "window_all"])
def test_what_is_not_built_says_so(numbers: Any, name: str) -> None:
    """A name of PyFlink is no misspelling of another one."""
    for stream in (numbers, numbers.key_by(0)):
        with pytest.raises(AttributeError, match=rf"no attribute '{name}': is not there yet"):
            getattr(stream, name)


def test_the_sinks_of_former_days_lead_to_those_of_today(numbers: Any) -> None:
    """PyFlink's `add_sink` takes what is no sink here."""
    with pytest.raises(AttributeError, match=r"no attribute 'add_sink': use sink_to\("):
        numbers.add_sink(print)


@pytest.mark.parametrize("stream", [DataStream, KeyedStream, WindowedStream])
def test_no_advice_is_about_what_is_there(stream: type[Advising]) -> None:
    """It would never be seen: who builds what is not there yet takes it off the list."""
    assert [name for name in stream._advice if hasattr(stream, name)] == []


def test_a_name_of_java_is_understood(numbers: Any) -> None:
    """By the nearest name that there is."""
    with pytest.raises(AttributeError, match="did you mean 'key_by'"):
        numbers.keyBy(0)
    with pytest.raises(AttributeError, match="did you mean 'set_parallelism'"):
        StreamExecutionEnvironment.get_execution_environment().setParallelism(2)  # type: ignore[attr-defined]  # the mistake
    assert not hasattr(numbers, "nothing_of_the_kind")
    assert copy.copy(numbers) is not numbers
