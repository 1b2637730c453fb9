"""The job that is killed, stopped and starved: counts by key in state, windows on stdout."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from statebackends.descriptors import ValueStateDescriptor
from tests.job_process import JobFolder
from tests.saved_values import saved_values

JOB = """
import sys
from connectors.datagen import DataGeneratorSource
from runtime import (
    KeyedProcessFunction, StreamExecutionEnvironment, TumblingEventTimeWindows,
    ValueStateDescriptor, WatermarkStrategy,
)

COUNT, KEYS, RATE = {count}, {keys}, {rate}
MARKS = {{COUNT * percent // 100: percent for percent in (20, 50, 80)}}


def record(number):
    if number in MARKS:
        print("reached", MARKS[number], "%", file=sys.stderr)
    return number


class Count(KeyedProcessFunction):
    def open(self, runtime_context):
        self.count = runtime_context.get_state(ValueStateDescriptor("count"))

    def process_element(self, value, ctx):
        self.count.update((self.count.value() or 0) + 1)
        return ()


env = StreamExecutionEnvironment.get_execution_environment()
env.enable_checkpointing(50)
{more}
watermarks = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(
    lambda number, _: number
)
numbers = env.from_source(
    DataGeneratorSource(record, count=COUNT, rate_limiter=RATE), watermarks, "numbers"
).uid("numbers")
keyed = numbers.key_by(lambda number: number % KEYS)
keyed.process(Count()).uid("counts").print().uid("nothing")
windows = numbers.key_by(lambda number: number % 5).window(TumblingEventTimeWindows.of(1000))
lines = windows.count().uid("windows").map(lambda w: f"{{w.key}} {{w.start}} {{w.count}}")
lines.uid("lines").print().uid("out")
env.execute("counts")
"""

WINDOW_KEYS = 5
WINDOW_MS = 1_000


class CountingJob:
    """The job in a folder, with what it must have counted once it has finished."""

    def __init__(
        self,
        path: Path,
        *,
        count: int = 40_000,
        keys: int = 100,
        rate: int | None = 20_000,
        more: str = "",
    ) -> None:
        self.folder = JobFolder(path)
        self.folder.write(JOB.format(count=count, keys=keys, rate=rate, more=more))
        self._count = count
        self._keys = keys

    @property
    def checkpoints(self) -> Path:
        """The folder of the job's checkpoints."""
        return self.folder.path / "checkpoints" / "counts"

    async def saved_counts(self) -> dict[object, int]:
        """The counts in the newest checkpoint."""
        descriptor: ValueStateDescriptor[int] = ValueStateDescriptor("count")
        return dict(await saved_values(self.checkpoints, "counts", descriptor))

    async def assert_exact(self, output: str) -> None:
        """Each record counts once in state; each window is there, whenever it is there right."""
        expected = Counter(number % self._keys for number in range(self._count))
        assert await self.saved_counts() == expected
        # With several subtasks a printed line begins with the number of its subtask.
        assert {line.split("> ")[-1] for line in output.splitlines()} == self.windows()

    def windows(self) -> set[str]:
        """The lines of all windows."""
        counts = Counter(
            (number % WINDOW_KEYS, number // WINDOW_MS * WINDOW_MS) for number in range(self._count)
        )
        return {f"{key} {start} {count}" for (key, start), count in counts.items()}
