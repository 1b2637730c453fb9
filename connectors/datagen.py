"""A source of generated records, as fast as they are taken or at a fixed rate.

For examples, tests and load: record i is ``generator(i)``, so a run can be repeated and
continued from a checkpoint (Flink: `DataGeneratorSource` of flink-connector-datagen).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from operators.functions import copy_function
from operators.sequence_reader import UNBOUNDED_END, SequenceReader
from operators.source import Boundedness, InputStatus, Source, SourceReader, SourceReaderContext
from statebackends.clock import ScheduledCall

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class RateLimiter:
    """How many records per second all subtasks together put out at most.

    Record i of a run is due i / rate seconds after its start and never comes before. After a
    delay the records that became due meanwhile follow at once, a batch at a time.
    """

    records_per_second: float

    def __post_init__(self) -> None:
        rate = self.records_per_second
        if isinstance(rate, bool) or not isinstance(rate, int | float):
            raise TypeError(f"records_per_second must be a number, not {rate!r}")
        if not 0 < rate < float("inf"):
            raise ValueError(f"records_per_second must be above 0, not {rate}")

    @staticmethod
    def per_second(records_per_second: float) -> RateLimiter:
        """That many records per second (Flink: `RateLimiterStrategy.perSecond`)."""
        return RateLimiter(records_per_second)

    def due_ms(self, records: int) -> int:
        """The first whole ms after the start at which `records` records may lie behind."""
        # Rounded up: at this time `records_due` is above `records`, never a ms too early.
        due = max(0, int(records * 1000 / self.records_per_second) - 1)
        while self.records_due(due) <= records:
            due += 1
        return due

    def records_due(self, elapsed_ms: int) -> int:
        """How many records are due once `elapsed_ms` have passed; the first at 0."""
        return int(elapsed_ms * self.records_per_second / 1000) + 1


class DataGeneratorSource(Source[T]):
    """Records made by a function of their number.

    Args:
        generator_function: gives record i, i = 0, 1, 2, ...; an object with attributes is
            copied for each subtask.
        count: how many records there are in all; None: the source never ends.
        rate_limiter: None: as fast as the job takes them. A plain number means records per
            second.
        type_info: a hint, not needed.

    Subtask i of n generates records i, i + n, ...; the position is operator state. A run that
    is continued from a checkpoint begins its rate schedule anew.
    """

    def __init__(
        self,
        generator_function: Callable[[int], T],
        count: int | None = None,
        rate_limiter: RateLimiter | float | None = None,
        type_info: object = None,
    ) -> None:
        if not callable(generator_function):
            raise TypeError(
                "DataGeneratorSource takes a function from a record's number to the record, "
                f"not {type(generator_function).__name__} {generator_function!r:.80}"
            )
        if count is not None and (isinstance(count, bool) or not isinstance(count, int)):
            raise TypeError(f"the count of generated records must be an int, not {count!r}")
        if count is not None and count < 0:
            raise ValueError(f"the count of generated records must not be negative, not {count}")
        if rate_limiter is not None and not isinstance(rate_limiter, RateLimiter):
            rate_limiter = RateLimiter(rate_limiter)
        self._generator_function = generator_function
        self._count = count
        self._rate_limiter = rate_limiter
        self.type_info = type_info

    @property
    def boundedness(self) -> Boundedness:
        """Bounded if there is a count."""
        bounded = self._count is not None
        return Boundedness.BOUNDED if bounded else Boundedness.CONTINUOUS_UNBOUNDED

    def create_reader(self, context: SourceReaderContext) -> SourceReader[T]:
        """A reader that generates the subtask's records."""
        count = UNBOUNDED_END if self._count is None else self._count
        generate = copy_function(self._generator_function)
        return _GeneratorReader(context, generate, count, self._rate_limiter)


class _GeneratorReader(SequenceReader[T]):
    def __init__(
        self,
        context: SourceReaderContext,
        generate: Callable[[int], T],
        count: int,
        limiter: RateLimiter | None,
    ) -> None:
        super().__init__(context, count)
        self._generate = generate
        self._limiter = limiter
        self._first = 0
        self._started_ms = 0
        self._wake_up: ScheduledCall | None = None

    async def start(self) -> None:
        """Begins the schedule: with record 0, or the first that was not read before."""
        await super().start()
        self._first = self.next_number() if self.context.restored else 0
        self._started_ms = self.context.clock.now_ms()

    def read(self, numbers: range) -> list[object]:
        """The generated records."""
        generate = self._generate
        return [generate(number) for number in numbers]

    def due_end(self) -> int:
        """The number of the first record that is not due yet."""
        if self._limiter is None:
            return UNBOUNDED_END
        elapsed_ms = self.context.clock.now_ms() - self._started_ms
        return self._first + self._limiter.records_due(elapsed_ms)

    def wait(self, number: int) -> InputStatus:
        """Has the task woken when record `number` is due."""
        if self._limiter is not None and self._wake_up is None:
            due_ms = self._started_ms + self._limiter.due_ms(number - self._first)
            self._wake_up = self.context.clock.call_at(due_ms, self._wake)
        return InputStatus.NOTHING_AVAILABLE

    def _wake(self) -> None:
        self._wake_up = None
        self.context.available()

    async def close(self) -> None:
        """Gives up the wake-up."""
        if self._wake_up is not None:
            self._wake_up.cancel()
            self._wake_up = None
