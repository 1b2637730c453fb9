"""A job that fails in the middle puts out every record exactly once through a two-phase sink."""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from connectors.datagen import DataGeneratorSource
from operators.process_functions import KeyedProcessFunction
from operators.runtime_context import RuntimeContext
from operators.sink import Committer, Sink, SinkWriter, SinkWriterContext
from operators.watermarks import WatermarkStrategy
from runtime import Configuration, StreamExecutionEnvironment
from statebackends.descriptors import ValueStateDescriptor

COUNT = 3_000


class Log(Sink[tuple[int, int]]):
    """A two-phase sink into memory; committing a batch twice has the effect of once."""

    def __init__(self) -> None:
        self.committed: dict[bytes, list[tuple[int, int]]] = {}

    def create_writer(self, context: SinkWriterContext) -> SinkWriter[tuple[int, int]]:
        return LogWriter(context.subtask_index)

    def create_committer(self) -> Committer:
        return LogCommitter(self)

    def records(self) -> list[tuple[int, int]]:
        return sorted(record for batch in self.committed.values() for record in batch)


class LogWriter(SinkWriter[tuple[int, int]]):
    def __init__(self, subtask: int) -> None:
        self._subtask = subtask
        self._pending: list[tuple[int, int]] = []

    def write(
        self, values: Sequence[tuple[int, int]], timestamps: Sequence[int | None] | None
    ) -> None:
        self._pending += values

    def prepare_commit(self, checkpoint_id: int) -> Sequence[bytes]:
        batch, self._pending = self._pending, []
        return [pickle.dumps((self._subtask, checkpoint_id, batch))] if batch else []


class LogCommitter(Committer):
    def __init__(self, log: Log) -> None:
        self._log = log

    async def commit(self, committables: Sequence[bytes]) -> None:
        for one in committables:
            self._log.committed[one] = pickle.loads(one)[2]


class Fuse:
    """Blows at given records, each time once; shared by all subtasks and attempts."""

    def __init__(self, *records: int) -> None:
        self.records = set(records)

    def __deepcopy__(self, memo: dict[int, object]) -> Fuse:
        return self

    def check(self, record: int) -> None:
        if record in self.records:
            self.records.remove(record)
            raise RuntimeError(f"fuse blown at {record}")


class Numbered(KeyedProcessFunction[int, int, tuple[int, int]]):
    """Puts the running number of its key behind each record, and fails now and then."""

    def __init__(self, fuse: Fuse) -> None:
        self._fuse = fuse

    def open(self, runtime_context: RuntimeContext) -> None:
        self._count = runtime_context.get_state(ValueStateDescriptor("count", int))

    def process_element(
        self, value: int, ctx: KeyedProcessFunction.Context
    ) -> Iterator[tuple[int, int]]:
        self._fuse.check(value)
        count = (self._count.value() or 0) + 1
        self._count.update(count)
        yield value % 10, count


@pytest.mark.parametrize("parallelism", [1, 2])
def test_every_record_counts_and_comes_out_once(parallelism: int, tmp_path: Path) -> None:
    """Sources, keyed state and committables go back to the same checkpoint."""
    configuration = Configuration()
    for key, value in {
        "execution.checkpointing.interval": "50 ms",
        "execution.checkpointing.dir": str(tmp_path),
        "restart-strategy.type": "fixed-delay",
        "restart-strategy.fixed-delay.attempts": "5",
        "restart-strategy.fixed-delay.delay": "10 ms",
    }.items():
        configuration.set_string(key, value)
    env = StreamExecutionEnvironment.get_execution_environment(configuration)
    env.set_parallelism(parallelism)
    source = DataGeneratorSource(lambda number: number, COUNT, rate_limiter=3_000)
    fuse = Fuse(700, 1_900, COUNT - 1)
    log = Log()
    numbers = env.from_source(source, WatermarkStrategy.no_watermarks(), "numbers")
    numbers.key_by(lambda number: number % 10).process(Numbered(fuse)).sink_to(log)
    env.execute("fused")
    assert fuse.records == set()
    assert log.records() == [(key, count) for key in range(10) for count in range(1, 301)]
