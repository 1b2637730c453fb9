"""Maps and filters that share a generated loop behave as one by one."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from operators.builtin import CollectSink
from runtime import Configuration, JobExecutionError, StreamExecutionEnvironment, WatermarkStrategy
from runtime.failure_report import format_failure


def _small_enough(value: int) -> bool:
    most = 90
    return value < most


def _plus(stream: Any, amount: int) -> Any:
    return stream.map(lambda value: value + amount)


def _kept(value: int) -> bool:
    return value != 17


STEPS: dict[str, Callable[[Any], Any]] = {
    "add": lambda stream: stream.map(lambda value: value + 3),
    "double": lambda stream: stream.map(lambda value: value * 2),
    "odd": lambda stream: stream.filter(lambda value: value % 2),
    "small": lambda stream: stream.filter(lambda value: value < 50),
    "of two statements": lambda stream: stream.filter(_small_enough),
    "of one return": lambda stream: stream.filter(_kept),
    "not Python": lambda stream: stream.map(abs),
    "captured": lambda stream: _plus(stream, 4),
}


def _run(values: list[int], steps: list[str], *, chaining: bool) -> list[int]:
    env = StreamExecutionEnvironment(Configuration())
    if not chaining:
        env.disable_operator_chaining()
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(
        lambda value, _: value
    )
    stream: Any = env.from_collection(values).assign_timestamps_and_watermarks(strategy)
    for step in steps:
        stream = STEPS[step](stream)
    sink: CollectSink[int] = CollectSink()
    stream.sink_to(sink)
    env.execute("fusion")
    return sink.results


@settings(deadline=None, max_examples=40)
@given(
    st.lists(st.integers(0, 100), max_size=20),
    st.lists(st.sampled_from(sorted(STEPS)), min_size=1, max_size=5),
)
def test_a_chain_gives_the_same_fused_and_unfused(values: list[int], steps: list[str]) -> None:
    """Whatever the run of maps and filters, sharing a loop changes no result."""
    assert _run(values, steps, chaining=True) == _run(values, steps, chaining=False)


@pytest.mark.parametrize("failing", [0, 1, 2])
def test_a_failure_names_the_stage_and_the_record(failing: int) -> None:
    """The operator whose function raised, the record that it was given and where that is from."""
    env = StreamExecutionEnvironment(Configuration())

    def step(number: int) -> Callable[[int], int]:
        def run(value: int) -> int:
            if number == failing and value == 7 + number:
                raise KeyError("broken")
            return value + 1

        return run

    stream = env.from_collection(list(range(20)))
    for number in range(3):
        stream = stream.map(step(number)).name(f"step {number}")
    stream.sink_to(CollectSink())

    with pytest.raises(
        JobExecutionError, match=f"'step {failing}'.*\\[7\\].*record {7 + failing}:.*broken"
    ):
        env.execute("fusion")


@pytest.mark.parametrize("bad", [7, 2_500])
def test_a_failure_says_what_it_says_without_chaining(bad: int) -> None:
    """The operator's own record, be its function called or not."""
    texts = []
    for chaining in (True, False):
        env = StreamExecutionEnvironment(Configuration())
        if not chaining:
            env.disable_operator_chaining()
        stream = env.from_collection(list(range(3_000))).map(lambda value: ("number", value))
        stream = stream.filter(lambda pair: pair[1] >= 0).map(lambda kept: (*kept, bad))
        stream.map(lambda found: 1 // (found[1] - bad)).name("last").sink_to(CollectSink())
        with pytest.raises(JobExecutionError) as failed:
            env.execute("fusion")
        texts.append(re.sub(r"uid \w+", "uid", format_failure(failed.value)))
    assert f"record ('number', {bad}, {bad})" in texts[0]
    assert texts[0] == texts[1]


@pytest.mark.parametrize("bad", [7, 2_500])
def test_a_failure_shows_the_line_of_the_job(bad: int) -> None:
    """In the first batch, where functions are called, and in later ones, where they are not."""
    env = StreamExecutionEnvironment(Configuration())
    stream = env.from_collection(list(range(3_000))).map(lambda value: value - bad).name("shift")
    stream.map(lambda value: 1 // value).name("divide").sink_to(CollectSink())

    with pytest.raises(JobExecutionError, match=rf"'divide'.*\[{bad}\], record 0:") as failed:
        env.execute("fusion")
    text = format_failure(failed.value)
    frames = [line for line in text.splitlines() if line.startswith("  File ")]
    assert len(frames) == 1
    assert __file__ in frames[0]
    assert "in <lambda>" in frames[0]
    assert "1 // value" in text


def test_a_single_map_keeps_the_place_of_its_records() -> None:
    """An expression in place of the call changes nothing of what a failure says."""
    env = StreamExecutionEnvironment(Configuration())
    numbers = env.from_collection(list(range(3_000))).name("numbers")
    numbers.map(lambda value: 1 // (value - 2_500)).sink_to(CollectSink())

    with pytest.raises(JobExecutionError, match=r"numbers\[2500\]"):
        env.execute("fusion")


def test_behind_a_filter_the_place_is_told_as_far_as_it_is_known() -> None:
    """Which records a shared loop has dropped is not noted, how many are is known."""
    env = StreamExecutionEnvironment(Configuration())
    numbers = env.from_collection(list(range(100))).name("numbers")
    kept = numbers.filter(lambda value: value % 10 != 5).map(lambda value: value - 50)
    kept.key_by(lambda value: 1 // value).reduce(lambda a, b: a + b).sink_to(CollectSink())

    with pytest.raises(
        JobExecutionError, match=r"numbers\[(\d+)\] or .* to numbers\[(\d+)\]"
    ) as bad:
        env.execute("fusion")
    found = re.search(r"numbers\[(\d+)\] or .* to numbers\[(\d+)\]", str(bad.value))
    assert found is not None
    assert int(found[1]) <= 50 <= int(found[2])
    assert int(found[2]) - int(found[1]) <= 10


def test_a_debugger_sees_each_call() -> None:
    """A breakpoint in a function stops there with the function's own variables."""
    calls = 0

    def trace(frame: FrameType, event: str, _: object) -> None:
        nonlocal calls
        if frame.f_code is double.__code__:
            assert set(frame.f_locals) <= {"value"}
            calls += event == "call"

    double = lambda value: value * 2  # noqa: E731 - that lambdas are called is what matters
    env = StreamExecutionEnvironment(Configuration())
    env.from_collection(list(range(3_000))).map(double).map(lambda value: value).sink_to(
        CollectSink()
    )
    before = sys.gettrace()
    sys.settrace(trace)
    try:
        env.execute("fusion")
    finally:
        sys.settrace(before)
    assert calls == 3_000
