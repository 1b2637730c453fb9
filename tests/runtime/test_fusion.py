"""Maps and filters that share a generated loop behave as one by one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from operators.builtin import CollectSink
from runtime import Configuration, JobExecutionError, StreamExecutionEnvironment, WatermarkStrategy

STEPS: dict[str, Callable[[Any], Any]] = {
    "add": lambda stream: stream.map(lambda value: value + 3),
    "double": lambda stream: stream.map(lambda value: value * 2),
    "odd": lambda stream: stream.filter(lambda value: value % 2),
    "small": lambda stream: stream.filter(lambda value: value < 50),
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
    """The operator whose function raised and the record it began with are in the message."""
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

    with pytest.raises(JobExecutionError, match=f"'step {failing}'.*record 7.*broken"):
        env.execute("fusion")
