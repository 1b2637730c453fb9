"""Whole jobs of one chain for tests of a run: a source by hand, checkpoints in memory."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from operators.builtin import CollectSink
from operators.datastream import source_stream
from operators.functions import MapFunction
from operators.sink import Sink
from operators.source import (
    Boundedness,
    InputStatus,
    Source,
    SourceReader,
    SourceReaderContext,
    SplitBatch,
)
from operators.watermarks import WatermarkStrategy
from runtime.clock import SystemClock
from runtime.config import JobConfig
from runtime.job import JobRun
from runtime.job_folder import InMemoryJobFolder
from runtime.job_result import JobStatus
from runtime.survival_settings import (
    CheckpointSettings,
    RecoverySettings,
    RestartSettings,
    StopSettings,
)
from statebackends.descriptors import ListStateDescriptor
from tests.operators.graph_owner import graph

SECONDS = 10
CHECKPOINTS = CheckpointSettings(interval_ms=10)
NO_CHECKPOINTS = CheckpointSettings()
NO_RESTART = RestartSettings(strategy="none")


def tries(count: int, delay_ms: int = 0) -> RestartSettings:
    return RestartSettings(
        strategy="fixed-delay", fixed_delay_attempts=count, fixed_delay_ms=delay_ms
    )


class Numbers(Source[int]):
    """0, 1, 2, ... up to what the test allows; never ends. The position is operator state."""

    def __init__(self, allowed: int = 5) -> None:
        self.allowed = allowed
        self.starts: list[int] = []
        """Where each attempt began."""
        self.on_start: Callable[[], None] | None = None

    @property
    def boundedness(self) -> Boundedness:
        return Boundedness.CONTINUOUS_UNBOUNDED

    def create_reader(self, context: SourceReaderContext) -> SourceReader[int]:
        return NumbersReader(context, self)


class NumbersReader(SourceReader[int]):
    def __init__(self, context: SourceReaderContext, source: Numbers) -> None:
        super().__init__(context)
        self._source = source

    def initialize_state(self) -> None:
        self._state = self.context.operator_state.get_list_state(ListStateDescriptor("next"))
        self._next = next(iter(self._state.get()), 0)
        self._source.starts.append(self._next)

    async def start(self) -> None:
        if self._source.on_start is not None:
            self._source.on_start()

    def poll(self, records_max: int) -> SplitBatch | InputStatus:
        numbers = [*range(self._next, self._source.allowed)][:records_max]
        self._next += len(numbers)
        return SplitBatch([*numbers]) if numbers else InputStatus.NOTHING_AVAILABLE

    def snapshot_state(self, checkpoint_id: int) -> None:
        self._state.update([self._next])


class Job:
    """A job of one chain: numbers -> the test's function -> a sink."""

    def __init__(
        self,
        function: Callable[[Any], object] | MapFunction[Any, Any] = lambda value: value,
        *,
        source: Source[Any] | None = None,
        sink: Sink[Any] | None = None,
        checkpoints: CheckpointSettings = NO_CHECKPOINTS,
        restart: RestartSettings = NO_RESTART,
        recovery: RecoverySettings | None = None,
        stop: StopSettings | None = None,
        folder: InMemoryJobFolder | None = None,
        parallelism: int = 1,
    ) -> None:
        self.source = source if source is not None else Numbers()
        self.sink = sink if sink is not None else CollectSink()
        self.folder = folder if folder is not None else InMemoryJobFolder()
        made = graph()
        stream = source_stream(made, self.source, WatermarkStrategy.no_watermarks(), "numbers")
        stream.map(function).name("function").uid("function").sink_to(self.sink).name("sink")
        config = JobConfig(
            name="counting",
            parallelism=parallelism,
            checkpoints=checkpoints,
            restart=restart,
            recovery=recovery or RecoverySettings(),
            stop=stop or StopSettings(),
        )
        self.run = JobRun(
            made, config, SystemClock, open_folder=lambda: self.folder, watched=False, seed=1
        )
        self.ended: asyncio.Task[None] | None = None

    def start(self) -> None:
        self.ended = asyncio.create_task(self.run.run())

    async def end(self) -> None:
        """Waits for the end; raises what the run raised."""
        if self.ended is None:
            self.start()
        assert self.ended is not None
        await asyncio.wait_for(self.ended, SECONDS)

    @property
    def results(self) -> list[Any]:
        return self.sink.results  # type: ignore[attr-defined]  # a collecting sink

    @property
    def status(self) -> JobStatus:
        return self.run.statistics().status

    def checkpoint(self) -> int:
        """The newest complete one; 0 before the first."""
        return self.run.statistics().last_checkpoint_id or 0


async def until(condition: Callable[[], object]) -> None:
    async with asyncio.timeout(SECONDS):
        while not condition():  # noqa: ASYNC110 - nothing tells of a condition of any kind
            await asyncio.sleep(0)
