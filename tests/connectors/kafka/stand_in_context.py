"""Contexts of readers, enumerators and writers, on a real clock, without a runtime."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from connectors.kafka.offsets import KafkaOffsetsInitializer
from connectors.kafka.sink import KafkaSink
from connectors.kafka.source import KafkaSource
from connectors.kafka.writer import KafkaWriter
from operators.metrics import MetricGroup
from operators.source import InputStatus, SourceReader, SplitBatch, SplitEnumerator
from runtime.clock import SystemClock
from statebackends.clock import Clock
from statebackends.operator_state import OperatorStateBackend
from statebackends.operator_state_format import RestoredOperatorState

POLL_RECORDS = 500


class ReaderContext:
    """What a reader sees; `woken` is set by `available`, failures are kept."""

    def __init__(
        self,
        subtask_index: int = 0,
        parallelism: int = 1,
        restored: bool = False,
        clock: Clock | None = None,
    ) -> None:
        self.subtask_index = subtask_index
        self.parallelism = parallelism
        self.clock = clock or SystemClock()
        self.metrics = MetricGroup(self.clock)
        self.operator_state = OperatorStateBackend()
        self.operator_name = "source"
        self.restored = restored
        self.opened: list[str] = []
        self.closed: list[str] = []
        self.failures: list[BaseException] = []
        self.woken = asyncio.Event()

    def available(self) -> None:
        self.woken.set()

    def split_opened(self, split: str) -> None:
        self.opened.append(split)

    def split_closed(self, split: str) -> None:
        self.closed.append(split)

    def fail(self, error: BaseException) -> None:
        self.failures.append(error)
        self.woken.set()


class EnumeratorContext:
    """What an enumerator sees; assignments go to the readers it is given, or are kept."""

    def __init__(
        self, parallelism: int = 1, restored: bool = False, clock: Clock | None = None
    ) -> None:
        self.parallelism = parallelism
        self.clock = clock or SystemClock()
        self.restored = restored
        self.assigned: dict[int, list[object]] = {index: [] for index in range(parallelism)}
        self.readers: list[SourceReader[object]] = []
        self.no_more = False
        self.failures: list[BaseException] = []

    def assign_splits(self, subtask_index: int, splits: Sequence[object]) -> None:
        self.assigned[subtask_index] += splits
        if self.readers:
            self.readers[subtask_index].add_splits(splits)

    def signal_no_more_splits(self) -> None:
        self.no_more = True
        for reader in self.readers:
            reader.no_more_splits()

    def fail(self, error: BaseException) -> None:
        self.failures.append(error)


class RunningSource:
    """A source with all its readers and its enumerator, driven by hand."""

    def __init__(
        self,
        contexts: list[ReaderContext],
        readers: list[SourceReader[object]],
        enumerator: SplitEnumerator,
        enumerator_context: EnumeratorContext,
    ) -> None:
        self.contexts = contexts
        self.readers = readers
        self.enumerator = enumerator
        self.enumerator_context = enumerator_context
        self.run = asyncio.get_running_loop().create_task(enumerator.run())
        self.ended: set[int] = set()

    async def next_batch(self, subtask: int = 0, seconds: float = 20) -> SplitBatch | InputStatus:
        """The next batch of one reader, or that it ended; raises what it failed with."""
        context, reader = self.contexts[subtask], self.readers[subtask]
        async with asyncio.timeout(seconds):
            while True:
                context.woken.clear()
                polled = reader.poll(POLL_RECORDS)
                if polled is not InputStatus.NOTHING_AVAILABLE:
                    return polled
                waiting = [asyncio.ensure_future(context.woken.wait()), self.run]
                await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
                waiting[0].cancel()
                if context.failures:
                    raise context.failures[0]
                if self.run.done() and self.run.exception() is not None:
                    self.run.result()
                if self.run.done():
                    await context.woken.wait()

    async def read(self, count: int, subtask: int = 0) -> list[object]:
        """At least `count` values of one reader."""
        values: list[object] = []
        while len(values) < count:
            batch = await self.next_batch(subtask)
            if not isinstance(batch, SplitBatch):
                break
            values += batch.values
        return values

    async def read_all(self, seconds: float = 30) -> list[object]:
        """The values of all readers of a bounded source, up to its end."""
        values: list[object] = []
        for subtask in range(len(self.readers)):
            while isinstance(batch := await self.next_batch(subtask, seconds), SplitBatch):
                values += batch.values
        return values

    def checkpoint(self, checkpoint_id: int) -> tuple[bytes, list[OperatorStateBackend]]:
        """The state of the enumerator and of all readers."""
        state = self.enumerator.snapshot_state()
        for reader in self.readers:
            reader.snapshot_state(checkpoint_id)
        return state, [context.operator_state for context in self.contexts]


def bounded(kafka: str, topic: str, **arguments: object) -> KafkaSource[object]:
    """A source that reads what is there and ends."""
    arguments.setdefault("bounded", KafkaOffsetsInitializer.latest())
    if "deserializer" not in arguments:
        arguments.setdefault("value_deserializer", json.loads)
    return KafkaSource(bootstrap_servers=kafka, topics=topic, **arguments)


Checkpoint = tuple[bytes, list[OperatorStateBackend]]


@asynccontextmanager
async def running(
    source: KafkaSource[object], parallelism: int = 1, restored: Checkpoint | None = None
) -> AsyncIterator[RunningSource]:
    """Starts a source, from a checkpoint if there is one, and closes it."""
    contexts = [
        ReaderContext(index, parallelism, restored is not None) for index in range(parallelism)
    ]
    enumerator_context = EnumeratorContext(parallelism, restored is not None)
    if restored is not None:
        for context in contexts:
            restore(context, restored[1])
    readers = [source.create_reader(context) for context in contexts]
    enumerator = source.create_enumerator(enumerator_context)
    enumerator_context.readers = readers
    if restored is not None:
        enumerator.restore_state(restored[0])
    run: asyncio.Task[None] | None = None
    try:
        for reader in readers:
            reader.initialize_state()
            await reader.start()
        await enumerator.start()
        job = RunningSource(contexts, readers, enumerator, enumerator_context)
        run = job.run
        yield job
    finally:
        if run is not None:
            run.cancel()
            await asyncio.wait([run])
        for reader in readers:
            await reader.close()
        await enumerator.close()


def restore(context: ReaderContext, former: list[OperatorStateBackend]) -> None:
    """Hands a reader's context the operator state of all former readers."""
    snapshots: list[RestoredOperatorState | None] = [
        RestoredOperatorState.parse(bytes(backend.snapshot()), "state") for backend in former
    ]
    context.operator_state.restore(
        snapshots, len(former), context.parallelism, context.subtask_index
    )


class WriterContext:
    """What a writer sees."""

    def __init__(self, subtask_index: int = 0, parallelism: int = 1) -> None:
        self.subtask_index = subtask_index
        self.parallelism = parallelism
        self.clock = SystemClock()
        self.metrics = MetricGroup(self.clock)
        self.operator_name = "sink"
        self.restored_checkpoint_id: int | None = None
        self.failures: list[BaseException] = []
        self.room = asyncio.Event()

    def room_freed(self) -> None:
        self.room.set()

    def fail(self, error: BaseException) -> None:
        self.failures.append(error)


@asynccontextmanager
async def writing(
    sink: KafkaSink[object],
) -> AsyncIterator[tuple[KafkaWriter[object], WriterContext]]:
    """Starts a writer and closes it."""
    context = WriterContext()
    writer = sink.create_writer(context)
    assert isinstance(writer, KafkaWriter)
    try:
        await writer.start()
        yield writer, context
    finally:
        await writer.close()
