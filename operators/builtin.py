"""Sources and sinks that need nothing outside the process."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import Generic, TypeVar

from operators.errors import PermanentError
from operators.result_buffer import ResultBuffer
from operators.sequence_reader import SequenceReader
from operators.sink import Sink, SinkWriter, SinkWriterContext
from operators.source import (
    Boundedness,
    InputStatus,
    Source,
    SourceReader,
    SourceReaderContext,
    SplitBatch,
)

T = TypeVar("T")

ITERATOR_TURN_SECONDS = 0.001
"""How long one poll may pull from an iterator before it hands out what it has."""


class CollectionSource(Source[T]):
    """The items of a sequence, which must not change while the job runs.

    Replayable: the position is operator state. Subtask i of n reads the items i, i + n, ...
    """

    def __init__(self, values: Sequence[T]) -> None:
        # A slice of a list is a new list: a poll costs nothing else. Ranges stay as small.
        self._values = values if isinstance(values, list | range) else list(values)

    @property
    def boundedness(self) -> Boundedness:
        """Bounded."""
        return Boundedness.BOUNDED

    def create_reader(self, context: SourceReaderContext) -> SourceReader[T]:
        """A reader of the subtask's stride."""
        return _CollectionReader(context, self._values)


class NumberSequenceSource(CollectionSource[int]):
    """The integers from `start` to `end`, both included (PyFlink: `NumberSequenceSource`)."""

    def __init__(self, start: int, end: int) -> None:
        if start > end:
            raise ValueError(f"a number sequence cannot go from {start} down to {end}")
        super().__init__(range(start, end + 1))


class _CollectionReader(SequenceReader[T]):
    def __init__(self, context: SourceReaderContext, values: Sequence[T]) -> None:
        super().__init__(context, len(values))
        self._values = values

    def read(self, numbers: range) -> list[object]:
        values = self._values[numbers.start : numbers.stop : numbers.step]
        return values if type(values) is list else list(values)


class IteratorSource(Source[T]):
    """The items of any iterable, pulled lazily by one subtask; the others end at once.

    Not replayable: what was pulled cannot be pulled again, so a job that restarts from a
    checkpoint is refused. Pulling runs in the job's event loop; an iterator that blocks, blocks
    the job.
    """

    def __init__(self, values: Iterable[T]) -> None:
        self._values = values
        self._iterator: Iterator[T] | None = None

    @property
    def boundedness(self) -> Boundedness:
        """Bounded: an iterator is expected to end."""
        return Boundedness.BOUNDED

    @property
    def replayable(self) -> bool:
        """False."""
        return False

    def create_reader(self, context: SourceReaderContext) -> SourceReader[T]:
        """A reader that pulls if it is the first subtask's; RuntimeError once pulled before."""
        if context.subtask_index > 0:
            return _CollectionReader(context, ())
        if context.restored or (self._iterator is not None and iter(self._values) is self._values):
            raise RuntimeError(
                f"source {context.operator_name!r} reads from an iterator "
                f"({type(self._values).__name__}), whose records cannot be read again after a "
                "failure or from a checkpoint; give from_collection a list instead"
            )
        self._iterator = iter(self._values)
        return _IteratorReader(context, self._iterator)


class _IteratorReader(SourceReader[T]):
    def __init__(self, context: SourceReaderContext, iterator: Iterator[T]) -> None:
        super().__init__(context)
        self._iterator = iterator
        self._pulled_at_once = 1

    def poll(self, records_max: int) -> SplitBatch | InputStatus:
        """Pulls for about a millisecond: a slow iterator's items do not wait for a full batch."""
        clock = self.context.clock
        values: list[object] = []
        deadline = clock.monotonic() + ITERATOR_TURN_SECONDS
        while (room := records_max - len(values)) > 0:
            wanted = min(self._pulled_at_once, room)
            pulled = list(islice(self._iterator, wanted))
            values += pulled
            in_time = clock.monotonic() < deadline
            if not in_time:
                self._pulled_at_once = max(1, self._pulled_at_once // 2)
            elif wanted == self._pulled_at_once:
                self._pulled_at_once = min(2 * wanted, records_max)
            if len(pulled) < wanted or not in_time:
                break
        return SplitBatch(values) if values else InputStatus.END_OF_INPUT

    def snapshot_state(self, checkpoint_id: int) -> None:
        """Nothing: the position of an iterator cannot be kept."""


def collection_source(values: Iterable[T]) -> Source[T]:
    """The source for `from_collection`: replayable if `values` is a sequence."""
    if not isinstance(values, Iterable):
        raise TypeError(f"from_collection() takes an iterable, not {type(values).__name__}")
    return CollectionSource(values) if isinstance(values, Sequence) else IteratorSource(values)


class OutputClosedError(PermanentError):
    """Nobody reads any more what a sink prints (`| head`)."""


class PrintSink(Sink[object]):
    """Writes each record's `str` as a line to standard output (or standard error).

    The line begins with the identifier and, if there are several subtasks, the subtask's number
    from 1: ``clicks:2> value`` (as Flink's `PrintSink`).
    """

    def __init__(self, sink_identifier: str = "", std_err: bool = False) -> None:
        self._identifier = sink_identifier
        self._std_err = std_err

    def create_writer(self, context: SinkWriterContext) -> SinkWriter[object]:
        """A writer with the subtask's prefix."""
        subtask = str(context.subtask_index + 1) if context.parallelism > 1 else ""
        prefix = ":".join(part for part in (self._identifier, subtask) if part)
        return _PrintWriter(f"{prefix}> " if prefix else "", self._std_err)


class _PrintWriter(SinkWriter[object]):
    def __init__(self, prefix: str, std_err: bool) -> None:
        self._prefix = prefix
        self._std_err = std_err

    def write(self, values: Sequence[object], timestamps: Sequence[int | None] | None) -> None:
        """Prints a line per record, with one write for all of them."""
        prefix = self._prefix
        # Asked anew each time, since a notebook or a test may have replaced it.
        stream = sys.stderr if self._std_err else sys.stdout
        text = "".join([f"{prefix}{value}\n" for value in values])
        try:
            stream.write(text)
            stream.flush()
        except BrokenPipeError:
            raise OutputClosedError(f"{_name(self._std_err)} was closed by its reader") from None
        except OSError as error:
            reason = f"{_name(self._std_err)} cannot be written to: {error.strerror}"
            raise OSError(error.errno, reason) from None


def _name(std_err: bool) -> str:
    return "standard error" if std_err else "standard output"


class CollectSink(Sink[T], Generic[T]):
    """Hands the records to a list, a callable or a `ResultBuffer` of this process.

    `results` is the list. After a restart from a checkpoint the records since then come again.
    """

    def __init__(
        self, target: list[T] | Callable[[T], object] | ResultBuffer[T] | None = None
    ) -> None:
        self.results: list[T] = target if isinstance(target, list) else []
        self._target = self.results if target is None else target

    def create_writer(self, context: SinkWriterContext) -> SinkWriter[T]:
        """A writer; all subtasks' writers have the same target."""
        target = self._target
        if isinstance(target, ResultBuffer):
            return _BufferWriter(target, context)
        return _CollectWriter(target)


class _CollectWriter(SinkWriter[T]):
    def __init__(self, target: list[T] | Callable[[T], object]) -> None:
        self._target = target

    def write(self, values: Sequence[T], timestamps: Sequence[int | None] | None) -> None:
        if isinstance(self._target, list):
            self._target += values
        else:
            for value in values:
                self._target(value)


class _BufferWriter(SinkWriter[T]):
    def __init__(self, buffer: ResultBuffer[T], context: SinkWriterContext) -> None:
        self._buffer = buffer
        self._context = context

    async def start(self) -> None:
        """Has the task woken, from whatever thread the consumer is in."""
        loop = asyncio.get_running_loop()
        freed = self._context.room_freed

        def wake() -> None:
            # The job may be over, and its loop closed, before the last results are taken.
            if not loop.is_closed():
                loop.call_soon_threadsafe(freed)

        self._buffer.on_room(wake)

    @property
    def has_room(self) -> bool:
        return self._buffer.has_room

    def write(self, values: Sequence[T], timestamps: Sequence[int | None] | None) -> None:
        self._buffer.put(values)
