"""The world outside of a simulated job, which no crash takes back, and sinks that reach it."""

from __future__ import annotations

import json
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, field

from operators.sink import Committer, Sink, SinkWriter, SinkWriterContext
from runtime.simulation import Simulation

Row = tuple[Hashable, ...]
Timestamps = Sequence[int | None] | None


@dataclass
class Outside:
    """What readers of the job's output see."""

    committed: dict[str, list[Row]] = field(default_factory=dict)
    """The rows of each transaction by its name: one that comes again has no effect."""
    written: list[Row] = field(default_factory=list)

    def visible(self) -> Iterator[Row]:
        """The rows of all transactions."""
        for rows in self.committed.values():
            yield from rows


class TransactionalSink(Sink[Row]):
    """Makes rows visible when their transaction is committed."""

    def __init__(self, outside: Outside, simulation: Simulation) -> None:
        self._outside = outside
        self._simulation = simulation

    def create_writer(self, context: SinkWriterContext) -> SinkWriter[Row]:
        return _TransactionWriter(context, self._simulation)

    def create_committer(self) -> Committer:
        return _TransactionCommitter(self._outside, self._simulation)


class _TransactionWriter(SinkWriter[Row]):
    def __init__(self, context: SinkWriterContext, simulation: Simulation) -> None:
        self._simulation = simulation
        self._prefix = f"{context.operator_name}-{simulation.random.getrandbits(64)}"
        self._number = 0
        self._open: list[Row] = []

    def write(self, values: Sequence[Row], timestamps: Timestamps) -> None:
        self._simulation.pass_point("sink write")
        self._open += values

    def prepare_commit(self, checkpoint_id: int) -> list[bytes]:
        self._simulation.pass_point("prepare commit")
        if not self._open:
            return []
        self._number += 1
        transaction = [f"{self._prefix}-{self._number}", self._open]
        self._open = []
        return [json.dumps(transaction).encode()]


class _TransactionCommitter(Committer):
    def __init__(self, outside: Outside, simulation: Simulation) -> None:
        self._outside = outside
        self._simulation = simulation

    async def commit(self, committables: Sequence[bytes]) -> None:
        for committable in committables:
            await self._simulation.pause(5)
            self._simulation.pass_point("commit")
            name, rows = json.loads(committable)
            self._outside.committed[name] = [tuple(row) for row in rows]
            self._simulation.pass_point("committed")


class AtLeastOnceSink(Sink[Row]):
    """Makes rows visible when they are flushed."""

    def __init__(self, outside: Outside, simulation: Simulation) -> None:
        self._outside = outside
        self._simulation = simulation

    def create_writer(self, context: SinkWriterContext) -> SinkWriter[Row]:
        return _BufferedWriter(context, self._outside, self._simulation)


class _BufferedWriter(SinkWriter[Row]):
    """Holds back its task while more rows wait than it has room for."""

    def __init__(
        self, context: SinkWriterContext, outside: Outside, simulation: Simulation
    ) -> None:
        self._context = context
        self._outside = outside
        self._simulation = simulation
        self._buffer: list[Row] = []

    @property
    def has_room(self) -> bool:
        return len(self._buffer) < 5

    def write(self, values: Sequence[Row], timestamps: Timestamps) -> None:
        self._buffer += values
        if not self.has_room:
            self._context.clock.call_at(self._context.clock.now_ms() + 1, self._send)

    async def flush(self, end_of_input: bool) -> None:
        await self._simulation.pause(3)
        self._simulation.pass_point("flush")
        self._send()

    def _send(self) -> None:
        sent, self._buffer = self._buffer, []
        self._outside.written += sent
        self._context.room_freed()
