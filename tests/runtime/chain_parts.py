"""Operators, nodes and channels for tests of the runtime core, written by hand."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from typing import Any

from operators.elements import CheckpointBarrier, EndOfInput, RecordBatch, Watermark
from operators.metrics import MetricGroup
from operators.stream_operator import StreamOperator, Work
from runtime.chain import ChainNode
from runtime.channel import Channel, OutputRoom
from runtime.clock import SimulatedClock
from runtime.context import SubtaskContext
from statebackends.backend import KeyedStateBackend
from statebackends.operator_state import OperatorStateBackend


class Relay(StreamOperator):
    """Hands everything on and remembers what it was called with."""

    def __init__(self, log: list[Any] | None = None, name: str = "") -> None:
        self.log: list[Any] = [] if log is None else log
        self._name = name

    def _saw(self, what: object) -> None:
        self.log.append((self._name, what) if self._name else what)

    def process_batch(self, batch: RecordBatch) -> Work:
        self._saw(list(batch.values))
        return (batch,)

    def process_watermark(self, watermark: Watermark) -> Work:
        self._saw(watermark)
        return (watermark,)

    def end_input(self) -> Work:
        self._saw("end")
        return ()


class Custom(Relay):
    """A relay whose batches go through a function of the test's."""

    def __init__(
        self,
        process: Callable[[RecordBatch], Work],
        *,
        on_watermark: Callable[[Watermark], Work] | None = None,
        on_end: Callable[[], Work] | None = None,
        at: int | None = None,
    ) -> None:
        super().__init__()
        self._process = process
        self._on_watermark = on_watermark
        self._on_end = on_end
        self._at = at

    def process_batch(self, batch: RecordBatch) -> Work:
        self._saw(list(batch.values))
        return self._process(batch)

    def process_watermark(self, watermark: Watermark) -> Work:
        self._saw(watermark)
        return (watermark,) if self._on_watermark is None else self._on_watermark(watermark)

    def end_input(self) -> Work:
        self._saw("end")
        return () if self._on_end is None else self._on_end()

    def position(self) -> int | None:
        return self._at


class PerRecord(Relay):
    """Puts out each record in a batch of its own, by a generator."""

    def process_batch(self, batch: RecordBatch) -> Work:
        for value in batch.values:
            self._saw(value)
            yield RecordBatch([value])


def context(
    name: str = "operator",
    *,
    uid: str = "",
    subtask_index: int = 0,
    parallelism: int = 1,
    mail: Callable[[Callable[[], Work]], None] | None = None,
    keyed: KeyedStateBackend | None = None,
) -> SubtaskContext:
    clock = SimulatedClock()
    return SubtaskContext(
        job_name="job",
        operator_name=name,
        uid=uid or name,
        subtask_index=subtask_index,
        parallelism=parallelism,
        max_parallelism=8,
        attempt=1,
        restored_checkpoint_id=None,
        clock=clock,
        metrics=MetricGroup(clock),
        operator_state=OperatorStateBackend(),
        auto_watermark_interval_ms=200,
        keyed=keyed,
        mail=mail or (lambda action: None),
        wake=lambda: None,
        failed=lambda error: None,
    )


def node(operator: StreamOperator, name: str = "operator", **options: Any) -> ChainNode:
    """A node whose operator is set up."""
    made = ChainNode(operator, context(name, **options), keyed=options.get("keyed") is not None)
    operator.setup(made.context)
    return made


def chain(*nodes: ChainNode) -> ChainNode:
    """Each node the only child of the one before; returns the first."""
    for upper, lower in pairwise(nodes):
        upper.main.children.append(lower)
    return nodes[0]


def channel(capacity: int = 4096, room: OutputRoom | None = None) -> Channel:
    """A channel that nobody reads but the test."""
    made = Channel(capacity=capacity)
    made.connect_reader(deque(), lambda: None)
    made.connect_writer(room or OutputRoom(), lambda: None)
    return made


def taken(channel: Channel) -> list[Any]:
    """Takes everything out: records one by one, control elements as they are."""
    elements: list[Any] = []
    while channel.queue:
        element = channel.take(10**9)
        elements += element.values if isinstance(element, RecordBatch) else [element]
    return elements


def run(work: Iterable[None] | None) -> int:
    """Does all of it; returns the number of pauses."""
    return sum(1 for _ in work or ())


def batch(*values: object, **columns: Any) -> RecordBatch:
    return RecordBatch(list(values), **columns)


def barrier(checkpoint_id: int, *, final: bool = False) -> CheckpointBarrier:
    return CheckpointBarrier(checkpoint_id, 0, final)


DRAINED = EndOfInput(drained=True)
STOPPED = EndOfInput(drained=False)


def put_all(channel: Channel, elements: Sequence[Any]) -> None:
    for element in elements:
        channel.put(element)
