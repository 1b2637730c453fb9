"""A job whose source finds its splits little by little, as topics grow partitions."""

from __future__ import annotations

import json
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from random import Random

from operators.process_functions import KeyedProcessFunction
from operators.runtime_context import RuntimeContext
from operators.source import (
    Boundedness,
    InputStatus,
    Source,
    SourceReader,
    SourceReaderContext,
    SplitBatch,
    SplitEnumerator,
    SplitEnumeratorContext,
)
from operators.watermarks import WatermarkStrategy
from runtime.environment import StreamExecutionEnvironment
from runtime.simulation import Simulation
from statebackends.descriptors import ListStateDescriptor, ValueStateDescriptor
from tests.simulation.outside import Outside, Row, TransactionalSink

SPLITS = 7
RECORDS = 25
"""Records of each split: (split, number)."""

Position = tuple[int, int]
"""A split and its next record."""


class DiscoveredSource(Source[tuple[int, int]]):
    """Splits 0 to `SPLITS` - 1, of which each becomes known at some time."""

    def __init__(self, simulation: Simulation) -> None:
        self._simulation = simulation

    @property
    def boundedness(self) -> Boundedness:
        return Boundedness.BOUNDED

    def create_reader(self, context: SourceReaderContext) -> SourceReader[tuple[int, int]]:
        return _Reader(context, self._simulation)

    def create_enumerator(self, context: SplitEnumeratorContext) -> SplitEnumerator:
        return _Enumerator(context, self._simulation)


class _Enumerator(SplitEnumerator):
    """Assigns a split once and for all: whoever lost or doubled it would be found out."""

    def __init__(self, context: SplitEnumeratorContext, simulation: Simulation) -> None:
        super().__init__(context)
        self._simulation = simulation
        self._known = 0

    async def start(self) -> None:
        if not self.context.restored:
            self._find()

    async def run(self) -> None:
        while self._known < SPLITS:
            await self._simulation.pause(8)
            self._simulation.pass_point("discovery")
            self._find()
        self.context.signal_no_more_splits()

    def _find(self) -> None:
        found, self._known = self._known, self._known + 1
        self.context.assign_splits(found % self.context.parallelism, [found])

    def snapshot_state(self) -> bytes:
        return json.dumps(self._known).encode()

    def restore_state(self, state: bytes) -> None:
        self._known = json.loads(state)


class _Reader(SourceReader[tuple[int, int]]):
    """Keeps the positions as union state: each subtask finds those of the splits it owns."""

    def __init__(self, context: SourceReaderContext, simulation: Simulation) -> None:
        super().__init__(context)
        self._simulation = simulation
        self._positions: deque[Position] = deque()
        self._done: list[Position] = []
        self._no_more = False

    def initialize_state(self) -> None:
        descriptor: ListStateDescriptor[Position] = ListStateDescriptor("positions")
        self._state = self.context.operator_state.get_union_list_state(descriptor)
        for split, number in self._state.get():
            if split % self.context.parallelism == self.context.subtask_index:
                self._positions.append((split, number))

    def add_splits(self, splits: Sequence[object]) -> None:
        for split in splits:
            assert isinstance(split, int)
            self._positions.append((split, 0))

    def no_more_splits(self) -> None:
        self._no_more = True

    def poll(self, records_max: int) -> SplitBatch | InputStatus:
        self._simulation.pass_point("poll")
        while self._positions:
            split, number = self._positions.popleft()
            end = min(RECORDS, number + records_max)
            if number == end:
                self._done.append((split, number))
                continue
            self._positions.append((split, end))
            return SplitBatch([(split, each) for each in range(number, end)])
        return InputStatus.END_OF_INPUT if self._no_more else InputStatus.NOTHING_AVAILABLE

    def snapshot_state(self, checkpoint_id: int) -> None:
        self._simulation.pass_point("cut")
        self._state.update([*self._positions, *self._done])


class _Count(KeyedProcessFunction[int, "tuple[int, int]", Row]):
    def __init__(self, simulation: Simulation) -> None:
        self._simulation = simulation

    def open(self, runtime_context: RuntimeContext) -> None:
        count: ValueStateDescriptor[int] = ValueStateDescriptor("count")
        self._count = runtime_context.get_state(count)

    def process_element(
        self, value: tuple[int, int], ctx: KeyedProcessFunction.Context
    ) -> Iterator[Row]:
        self._simulation.pass_point("count")
        count = (self._count.value() or 0) + 1
        self._count.update(count)
        yield (value[0], value[1], count)


class DiscoveringJob:
    """Counts the records of each split; within a split they come in order."""

    def __init__(self, *, seed: int) -> None:
        self._random = Random(seed)
        self.outside = Outside()

    def __call__(self, env: StreamExecutionEnvironment, simulation: Simulation) -> None:
        env.set_max_parallelism(8)
        env.enable_checkpointing(10)
        checkpoints = env.get_checkpoint_config()
        checkpoints.set_tolerable_checkpoint_failure_number(self._random.choice((0, 5)))
        checkpoints.set_max_concurrent_checkpoints(self._random.choice((1, 2)))
        watermarks = WatermarkStrategy.no_watermarks()
        stream = env.from_source(DiscoveredSource(simulation), watermarks, "splits").uid("splits")
        counts = stream.key_by(lambda record: record[0]).process(_Count(simulation)).uid("count")
        counts.sink_to(TransactionalSink(self.outside, simulation)).uid("out")

    def violations(self) -> list[str]:
        """What is wrong with the output: every record of every split once, in order."""
        expected: Counter[Row] = Counter(
            (split, number, number + 1) for split in range(SPLITS) for number in range(RECORDS)
        )
        visible = Counter(self.outside.visible())
        found = [f"missing: {row}" for row in expected - visible]
        return found + [f"too many: {row}" for row in visible - expected]
