"""One attempt of one subtask as a source or sink sees it, with a clock that is set by hand."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from operators.elements import RecordBatch
from operators.metrics import MetricGroup
from operators.sink_operator import SinkOperator
from operators.source import InputStatus, Source, SourceReader, SplitBatch
from statebackends.operator_state import OperatorStateBackend, RestoredOperatorState


class HandClock:
    """A clock that stands still until it is set."""

    def __init__(self, now_ms: int = 0) -> None:
        self._now_ms = now_ms
        self._calls: list[tuple[int, Callable[[], None]]] = []

    def now_ms(self) -> int:
        return self._now_ms

    def monotonic(self) -> float:
        return self._now_ms / 1000

    def call_at(self, timestamp_ms: int, callback: Callable[[], None]) -> Scheduled:
        call = (timestamp_ms, callback)
        self._calls.append(call)
        return Scheduled(self._calls, call)

    async def sleep(self, seconds: float) -> None:
        raise AssertionError("nobody here sleeps")

    def scheduled(self) -> list[int]:
        return sorted(timestamp_ms for timestamp_ms, _ in self._calls)

    def set(self, now_ms: int) -> None:
        self._now_ms = now_ms
        due = [call for call in self._calls if call[0] <= now_ms]
        for call in due:
            self._calls.remove(call)
            call[1]()


class Scheduled:
    def __init__(self, calls: list[Any], call: tuple[int, Callable[[], None]]) -> None:
        self._calls = calls
        self._call = call

    def cancel(self) -> None:
        if self._call in self._calls:
            self._calls.remove(self._call)


@dataclass
class Attempt:
    """Fits `SourceReaderContext`, `SinkWriterContext` and what `SinkOperator` needs."""

    subtask_index: int = 0
    parallelism: int = 1
    clock: HandClock = field(default_factory=HandClock)
    operator_name: str = "Source: clicks"
    operator_state: OperatorStateBackend = field(default_factory=OperatorStateBackend)
    restored: bool = False
    restored_checkpoint_id: int | None = None
    events: list[str] = field(default_factory=list)
    failures: list[BaseException] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.metrics = MetricGroup(self.clock)

    def available(self) -> None:
        self.events.append("available")

    def room_freed(self) -> None:
        self.events.append("room freed")

    output_freed = room_freed

    def split_opened(self, split: str) -> None:
        self.events.append(f"open {split}")

    def split_closed(self, split: str) -> None:
        self.events.append(f"close {split}")

    def fail(self, error: BaseException) -> None:
        self.failures.append(error)


def restored_attempts(snapshots: Sequence[OperatorStateBackend], parallelism: int) -> list[Attempt]:
    """The subtasks of an attempt restored from the operator states of former subtasks."""
    attempts = []
    for index in range(parallelism):
        attempt = Attempt(index, parallelism, restored=True, restored_checkpoint_id=1)
        former = [RestoredOperatorState.parse(bytes(one.snapshot()), "state") for one in snapshots]
        attempt.operator_state.restore(former, len(former), parallelism, index)
        attempts.append(attempt)
    return attempts


async def started_reader(source: Source[Any], attempt: Attempt) -> SourceReader[Any]:
    """A reader ready to be polled."""
    reader = source.create_reader(attempt)
    reader.initialize_state()
    await reader.start()
    return reader


def drain(reader: SourceReader[Any], records_max: int = 1024) -> list[Any]:
    """Every record until the reader has nothing more, now or ever."""
    records: list[Any] = []
    while isinstance(batch := reader.poll(records_max), SplitBatch):
        assert 0 < len(batch.values) <= records_max
        records += batch.values
    return records


def at_end(reader: SourceReader[Any]) -> bool:
    return reader.poll(1024) is InputStatus.END_OF_INPUT


async def started_sink(operator: SinkOperator, attempt: Attempt) -> SinkOperator:
    """A sink operator ready for records."""
    operator.setup(attempt)  # type: ignore[arg-type]  # only what a sink uses is there
    operator.initialize_state()
    operator.open()
    await operator.start()
    return operator


def batch(*values: object) -> RecordBatch:
    return RecordBatch(list(values))
