"""A job of counts and windows over a replayable source, its sinks, and what it must put out."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field

from operators.builtin import CollectionSource
from operators.process_functions import KeyedProcessFunction
from operators.runtime_context import RuntimeContext
from operators.sink import Committer, Sink, SinkWriter, SinkWriterContext
from operators.watermarks import WatermarkStrategy
from operators.windows import TumblingEventTimeWindows
from runtime.environment import StreamExecutionEnvironment
from runtime.simulation import Simulation
from statebackends.descriptors import ValueStateDescriptor

Record = tuple[str, int]
"""A key and an event time in ms."""

WINDOW_MS = 100
KEYS = "abcdefg"


def records(count: int) -> list[Record]:
    """Records in the order of their times, of keys with unequal shares."""
    return [(KEYS[number * number % 31 % len(KEYS)], 3 * number) for number in range(count)]


@dataclass
class Outside:
    """The world outside of the job: it outlives every process."""

    committed: dict[str, list[tuple[Hashable, ...]]] = field(default_factory=dict)
    written: list[tuple[Hashable, ...]] = field(default_factory=list)


def expected(inputs: Sequence[Record]) -> tuple[Counter[tuple[Hashable, ...]], set[Hashable]]:
    """What a job that reads each record once puts out: running counts, and windows."""
    counts: Counter[tuple[Hashable, ...]] = Counter()
    windows: Counter[tuple[str, int]] = Counter()
    so_far: Counter[str] = Counter()
    for key, time in inputs:
        so_far[key] += 1
        counts[key, so_far[key]] += 1
        windows[key, time // WINDOW_MS * WINDOW_MS] += 1
    return counts, {(key, start, count) for (key, start), count in windows.items()}


def violations(inputs: Sequence[Record], outside: Outside) -> list[str]:
    """What is wrong with the output, nothing if it is exact."""
    counts, windows = expected(inputs)
    committed = Counter(value for values in outside.committed.values() for value in values)
    found = [f"missing {value}" for value in counts - committed]
    found += [f"too many {value}" for value in committed - counts]
    written = set(outside.written)
    found += [f"window missing {value}" for value in windows - written]
    found += [f"window wrong {value}" for value in written - windows]
    return found


class RunningCount(KeyedProcessFunction[str, Record, "tuple[Hashable, ...]"]):
    """Numbers the records of each key."""

    def __init__(self, simulation: Simulation) -> None:
        self._simulation = simulation

    def open(self, runtime_context: RuntimeContext) -> None:
        count: ValueStateDescriptor[int] = ValueStateDescriptor("count")
        self._count = runtime_context.get_state(count)

    def process_element(
        self, value: Record, ctx: KeyedProcessFunction.Context
    ) -> list[tuple[Hashable, ...]]:
        self._simulation.pass_point("count")
        number = (self._count.value() or 0) + 1
        self._count.update(number)
        return [(value[0], number)]


class TransactionalSink(Sink["tuple[Hashable, ...]"]):
    """Makes records visible when they are committed, each transaction once."""

    def __init__(self, outside: Outside, simulation: Simulation) -> None:
        self._outside = outside
        self._simulation = simulation

    def create_writer(self, context: SinkWriterContext) -> _TransactionWriter:
        return _TransactionWriter(context, self._simulation)

    def create_committer(self) -> _TransactionCommitter:
        return _TransactionCommitter(self._outside, self._simulation)


class _TransactionWriter(SinkWriter["tuple[Hashable, ...]"]):
    def __init__(self, context: SinkWriterContext, simulation: Simulation) -> None:
        self._simulation = simulation
        self._subtask = context.subtask_index
        self._begun = simulation.random.getrandbits(64)
        self._number = 0
        self._open: list[tuple[Hashable, ...]] = []

    def write(
        self,
        values: Sequence[tuple[Hashable, ...]],
        timestamps: Sequence[int | None] | None,
    ) -> None:
        self._simulation.pass_point("sink write")
        self._open += values

    def prepare_commit(self, checkpoint_id: int) -> list[bytes]:
        self._simulation.pass_point("prepare commit")
        if not self._open:
            return []
        self._number += 1
        name = f"{self._subtask}-{self._begun}-{self._number}"
        transaction, self._open = [name, self._open], []
        return [json.dumps(transaction).encode()]


class _TransactionCommitter(Committer):
    def __init__(self, outside: Outside, simulation: Simulation) -> None:
        self._outside = outside
        self._simulation = simulation

    async def commit(self, committables: Sequence[bytes]) -> None:
        for committable in committables:
            self._simulation.pass_point("commit")
            name, values = json.loads(committable)
            self._outside.committed[name] = [tuple(value) for value in values]
            self._simulation.pass_point("committed")


class AtLeastOnceSink(Sink["tuple[Hashable, ...]"]):
    """Records are visible when they are flushed."""

    def __init__(self, outside: Outside, simulation: Simulation) -> None:
        self._outside = outside
        self._simulation = simulation

    def create_writer(self, context: SinkWriterContext) -> _BufferedWriter:
        return _BufferedWriter(self._outside, self._simulation)


class _BufferedWriter(SinkWriter["tuple[Hashable, ...]"]):
    def __init__(self, outside: Outside, simulation: Simulation) -> None:
        self._outside = outside
        self._simulation = simulation
        self._buffer: list[tuple[Hashable, ...]] = []

    def write(
        self,
        values: Sequence[tuple[Hashable, ...]],
        timestamps: Sequence[int | None] | None,
    ) -> None:
        self._buffer += values

    async def flush(self, end_of_input: bool) -> None:
        self._simulation.pass_point("flush")
        sent, self._buffer = self._buffer, []
        self._outside.written += sent


class CountingJob:
    """Builds the job: records -> running counts -> transactions, and windows -> at least once."""

    def __init__(self, inputs: list[Record], *, interval_ms: int = 10) -> None:
        self.inputs = inputs
        self.outside = Outside()
        self._interval_ms = interval_ms

    def __call__(self, env: StreamExecutionEnvironment, simulation: Simulation) -> None:
        env.enable_checkpointing(self._interval_ms)
        env.get_checkpoint_config().set_tolerable_checkpoint_failure_number(3)
        env.set_max_parallelism(16)
        strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(
            lambda record, _: record[1]
        )
        stream = env.from_source(CollectionSource(self.inputs), strategy, "records").uid("records")
        keyed = stream.key_by(lambda record: record[0])
        counts = keyed.process(RunningCount(simulation)).name("count").uid("count")
        counts.sink_to(TransactionalSink(self.outside, simulation)).name("tx").uid("tx")
        windows = keyed.window(TumblingEventTimeWindows.of(WINDOW_MS)).count().uid("windows")
        rows = windows.map(lambda window: (window.key, window.start, window.count)).uid("rows")
        rows.sink_to(AtLeastOnceSink(self.outside, simulation)).name("alo").uid("alo")
