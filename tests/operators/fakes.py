"""A context and a driver for operators under test: no task, no event loop."""

from __future__ import annotations

import io
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any

from operators.elements import RecordBatch, SideBatch, Watermark, WatermarkStatus
from operators.metrics import MetricGroup
from operators.stream_operator import StreamOperator, Work
from statebackends.backend import KeyedStateBackend
from statebackends.heap import HeapKeyedStateBackend
from statebackends.keygroups import KeyGroupRange
from statebackends.operator_state import OperatorStateBackend
from statebackends.snapshot import SnapshotFile, SnapshotFileWriter
from tests.operators.attempt import HandClock

MAX_PARALLELISM = 128


class FakeContext:
    """Fits `OperatorContext`; mail is kept until the driver calls for it."""

    def __init__(
        self,
        clock: HandClock | None = None,
        keyed_state: KeyedStateBackend | None = None,
        restored_checkpoint_id: int | None = None,
    ) -> None:
        self.job_name = "job"
        self.operator_name = "operator"
        self.uid = "operator"
        self.subtask_index = 0
        self.parallelism = 1
        self.max_parallelism = MAX_PARALLELISM
        self.attempt = 0
        self.restored_checkpoint_id = restored_checkpoint_id
        self.clock = clock or HandClock()
        self.metrics = MetricGroup(self.clock)
        self.operator_state = OperatorStateBackend()
        self.auto_watermark_interval_ms = 200
        self.keyed_state = keyed_state or HeapKeyedStateBackend(
            KeyGroupRange(0, MAX_PARALLELISM - 1), MAX_PARALLELISM
        )
        self.mail: list[Callable[[], Work]] = []
        self.failures: list[BaseException] = []

    def send_mail(self, action: Callable[[], Work]) -> None:
        self.mail.append(action)

    def output_freed(self) -> None:
        return None

    def fail(self, error: BaseException) -> None:
        self.failures.append(error)


class Driver:
    """Opens an operator and gives what it puts out as plain lists.

    A record is (value, timestamp), one of a side output (tag, value, timestamp); watermarks and
    statuses are themselves. Empty batches, the offers to pause, are counted and left out.
    """

    def __init__(self, operator: StreamOperator, context: FakeContext | None = None) -> None:
        self.operator = operator
        self.context = context or FakeContext()
        self.pauses = 0
        self.batch_sizes: list[int] = []
        operator.setup(self.context)  # type: ignore[arg-type]  # has all that is used
        operator.initialize_state()
        operator.open()

    def records(
        self,
        values: Sequence[object],
        timestamps: Sequence[int | None] | None = None,
        keys: Sequence[Hashable] | None = None,
    ) -> list[Any]:
        """Processes one batch; without keys each value's first field is its key."""
        if keys is None:
            keys = [value[0] for value in values]  # type: ignore[index]  # as documented
        times = None if timestamps is None else list(timestamps)
        return self.collect(self.operator.process_batch(RecordBatch([*values], times, [*keys])))

    def watermark(self, timestamp: int) -> list[Any]:
        """Advances event time; the watermark itself must come out last and is left out."""
        *outputs, last = self.collect(self.operator.process_watermark(Watermark(timestamp)))
        assert last == Watermark(timestamp)
        return outputs

    def processing_time(self, now_ms: int) -> list[Any]:
        """Sets the clock and serves the mail that comes of it."""
        self.context.clock.set(now_ms)
        outputs: list[Any] = []
        while self.context.mail:
            outputs += self.collect(self.context.mail.pop(0)())
        return outputs

    def collect(self, work: Iterable[object]) -> list[Any]:
        """What the operator puts out, flat."""
        outputs: list[Any] = []
        for element in work:
            if isinstance(element, RecordBatch):
                self.pauses += not element.values
                self.batch_sizes.append(len(element.values))
                times = element.timestamps or [None] * len(element.values)
                outputs += zip(element.values, times, strict=True)
            elif isinstance(element, SideBatch):
                batch = element.batch
                times = batch.timestamps or [None] * len(batch.values)
                tags = [element.tag] * len(batch.values)
                outputs += zip(tags, batch.values, times, strict=True)
            else:
                assert isinstance(element, Watermark | WatermarkStatus)
                outputs.append(element)
        return outputs

    def restarted(self, operator: StreamOperator) -> Driver:
        """A driver of `operator` with the keyed state of this one, through a snapshot file."""
        sink = io.BytesIO()
        writer = SnapshotFileWriter(sink)
        writer.add_keyed("operator", self.context.keyed_state.snapshot(), lambda: True)
        writer.finish()
        restored = SnapshotFile.open(sink.getvalue()).keyed("operator")
        context = FakeContext(self.context.clock, restored_checkpoint_id=1)
        if restored is not None:
            context.keyed_state.restore([restored])
        self.operator.close()
        return Driver(operator, context)
