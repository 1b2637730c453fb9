"""What a user function is told of where it runs."""

from __future__ import annotations

from operators.builtin import CollectSink
from operators.functions import MapFunction
from operators.runtime_context import RuntimeContext
from runtime import RestartStrategies, StreamExecutionEnvironment


class FailsOnFirstAttempts(MapFunction[int, tuple[int, str]]):
    """Gives out the attempt that it runs in, once that is the third."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self.attempt = runtime_context.get_attempt_number()
        self.place = runtime_context.get_task_name_with_subtasks()

    def map(self, value: int) -> tuple[int, str]:
        if self.attempt < 2:
            raise RuntimeError(f"attempt {self.attempt}")
        return self.attempt, self.place


def test_attempts_are_counted_from_zero() -> None:
    """A job that is started again twice gets to attempt 2, under the same name."""
    env = StreamExecutionEnvironment()
    env.set_restart_strategy(RestartStrategies.fixed_delay_restart(5, 1))
    seen: list[tuple[int, str]] = []
    stream = env.from_collection([1]).map(FailsOnFirstAttempts()).name("tells")
    stream.sink_to(CollectSink(seen))
    result = env.execute("attempts")
    assert seen == [(2, "tells (1/1)")]
    assert result.statistics.restarts == 2
