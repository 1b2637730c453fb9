"""Watermark strategies: what a user says about event time, and the generators behind it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Generic, Protocol, TypeVar

from operators.elements import MIN_TIMESTAMP, Watermark
from operators.functions import callable_of, copy_function, unfit_call
from operators.time import TimeLike, to_ms
from operators.user_places import place_of

T = TypeVar("T")
T_contra = TypeVar("T_contra", contravariant=True)

ALIGNMENT_INTERVAL_MS = 1_000
"""How often aligned sources compare their watermarks, unless the strategy says otherwise."""


class WatermarkOutput(Protocol):
    """Where a generator puts its watermarks (Flink: `WatermarkOutput`)."""

    def emit_watermark(self, watermark: int | Watermark) -> None:
        """Says that no record with a timestamp at or below this is expected any more.

        A watermark that is not higher than the last one has no effect.
        """

    def mark_idle(self) -> None:
        """Says that there will be nothing for a while: others need not wait."""

    def mark_active(self) -> None:
        """Takes `mark_idle` back; emitting a watermark does so too."""


class TimestampAssigner(ABC, Generic[T]):
    """Reads the event time out of a record (PyFlink: `TimestampAssigner`)."""

    @abstractmethod
    def extract_timestamp(self, value: T, record_timestamp: int) -> int:
        """Ms since the epoch; `record_timestamp` is the one it had, -2**63 if none."""


class WatermarkGenerator(ABC, Generic[T_contra]):
    """Turns timestamps into watermarks (Flink: `WatermarkGenerator`); one per split."""

    @abstractmethod
    def on_event(self, event: T_contra, event_timestamp: int, output: WatermarkOutput) -> None:
        """Sees each record; `event_timestamp` is -2**63 if it has none.

        A watermark put out here follows the record at once.
        """

    @abstractmethod
    def on_periodic_emit(self, output: WatermarkOutput) -> None:
        """Called each auto watermark interval, and in between where records come fast."""


class BatchWatermarkGenerator(WatermarkGenerator[object]):
    """A generator that needs to know only the highest timestamp of a batch."""

    @abstractmethod
    def on_batch(self, max_timestamp: int | None, count: int) -> None:
        """Sees `count` records; None if none of them has a timestamp."""

    def on_event(self, event: object, event_timestamp: int, output: WatermarkOutput) -> None:
        """The same for one record."""
        self.on_batch(None if event_timestamp == MIN_TIMESTAMP else event_timestamp, 1)


class BoundedOutOfOrdernessWatermarks(BatchWatermarkGenerator):
    """The highest timestamp minus the bound minus 1 (Flink's generator of that name)."""

    def __init__(self, max_out_of_orderness_ms: int) -> None:
        self._delay_ms = max_out_of_orderness_ms + 1
        self._max_timestamp: int | None = None

    def on_batch(self, max_timestamp: int | None, count: int) -> None:
        """Remembers the highest timestamp."""
        seen = self._max_timestamp
        if max_timestamp is not None and (seen is None or max_timestamp > seen):
            self._max_timestamp = max_timestamp

    def on_periodic_emit(self, output: WatermarkOutput) -> None:
        """Puts out the watermark once there was a timestamp."""
        if self._max_timestamp is not None:
            output.emit_watermark(self._max_timestamp - self._delay_ms)


class IdlenessTimer:
    """Says when a generator's input counts as idle (Flink: `IdlenessTimer`).

    The time starts at the first check that saw no record since the one before, and is over when
    a later check finds more than the timeout elapsed. `clock` gives ms and may stand still
    while the input is held up by others.
    """

    def __init__(self, clock: Callable[[], int], timeout_ms: int) -> None:
        self._clock = clock
        self._timeout_ms = timeout_ms
        self._seen = False
        self._quiet_since: int | None = None

    def activity(self) -> None:
        """There was a record."""
        self._seen = True

    def check(self) -> bool:
        """True if the input is idle."""
        if self._seen:
            self._seen = False
            self._quiet_since = None
            return False
        if self._quiet_since is None:
            self._quiet_since = self._clock()
            return False
        return self._clock() - self._quiet_since > self._timeout_ms


class WatermarksWithIdleness(WatermarkGenerator[T]):
    """Adds idleness to a generator (Flink's class of that name)."""

    def __init__(
        self, inner: WatermarkGenerator[T], timeout_ms: int, clock: Callable[[], int]
    ) -> None:
        self.inner = inner
        self.timer = IdlenessTimer(clock, timeout_ms)
        self._idle = False

    def on_event(self, event: T, event_timestamp: int, output: WatermarkOutput) -> None:
        """Hands the record on and counts it as activity."""
        self.inner.on_event(event, event_timestamp, output)
        self.activity()

    def activity(self) -> None:
        """There were records, handed to the inner generator by other means."""
        self.timer.activity()
        self._idle = False

    def on_periodic_emit(self, output: WatermarkOutput) -> None:
        """Marks the output idle once, or lets the inner generator put out its watermark."""
        if self.timer.check():
            if not self._idle:
                self._idle = True
                output.mark_idle()
        else:
            self.inner.on_periodic_emit(output)


@dataclass(frozen=True, slots=True)
class WatermarkAlignment:
    """Sources of a group pause where they are ahead of the group by more than the drift."""

    group: str
    max_drift_ms: int
    update_interval_ms: int = ALIGNMENT_INTERVAL_MS


@dataclass(frozen=True)
class WatermarkStrategy(Generic[T]):
    """How timestamps and watermarks of a stream come about (PyFlink: `WatermarkStrategy`).

    Immutable: each ``with_*`` method returns a new strategy, in any order. The factories give a
    strategy of `Any`: no argument of theirs says what the records are.
    """

    generator_factory: Callable[[], WatermarkGenerator[T]] | None = None
    """Makes one generator per split; None: no watermarks."""
    timestamp_assigner: TimestampAssigner[T] | Callable[[T, int], int] | None = None
    """None: timestamps stay as they come."""
    idle_timeout_ms: int | None = None
    alignment: WatermarkAlignment | None = None

    @staticmethod
    def for_monotonous_timestamps() -> WatermarkStrategy[Any]:
        """Timestamps never fall within a split."""
        return WatermarkStrategy(partial(BoundedOutOfOrdernessWatermarks, 0))

    @staticmethod
    def for_bounded_out_of_orderness(max_out_of_orderness: TimeLike) -> WatermarkStrategy[Any]:
        """A record is at most this much older than the newest before it."""
        bound_ms = to_ms(max_out_of_orderness, "max_out_of_orderness")
        if bound_ms < 0:
            raise ValueError(f"max_out_of_orderness must not be negative, not {bound_ms} ms")
        return WatermarkStrategy(partial(BoundedOutOfOrdernessWatermarks, bound_ms))

    @staticmethod
    def no_watermarks() -> WatermarkStrategy[Any]:
        """No watermarks but the one at the end of the input."""
        return WatermarkStrategy()

    @staticmethod
    def for_generator(
        generator_factory: Callable[[], WatermarkGenerator[T]],
    ) -> WatermarkStrategy[T]:
        """Watermarks by a generator of your own; the factory is called once per split."""
        if not callable(generator_factory):
            raise TypeError("for_generator takes a callable that makes a WatermarkGenerator")
        _check_call(
            generator_factory,
            0,
            "the factory of watermark generators is called without arguments (such as the class "
            "itself)",
        )
        return WatermarkStrategy(generator_factory)

    def with_timestamp_assigner(
        self, timestamp_assigner: TimestampAssigner[T] | Callable[[T, int], int]
    ) -> WatermarkStrategy[T]:
        """Takes timestamps from the records: a `TimestampAssigner` or ``f(value, timestamp)``."""
        extract = callable_of(timestamp_assigner, "extract_timestamp")
        _check_call(
            extract,
            2,
            "a timestamp assigner is called with two arguments, the record and the timestamp it "
            "had",
        )
        return replace(self, timestamp_assigner=timestamp_assigner)

    def with_idleness(self, idle_timeout: TimeLike) -> WatermarkStrategy[T]:
        """A split without records for this long no longer holds the watermark back."""
        timeout_ms = to_ms(idle_timeout, "idle_timeout")
        if timeout_ms <= 0:
            raise ValueError(f"idle_timeout must be positive, not {timeout_ms} ms")
        return replace(self, idle_timeout_ms=timeout_ms)

    def with_watermark_alignment(
        self,
        watermark_group: str,
        max_allowed_watermark_drift: TimeLike,
        update_interval: TimeLike = ALIGNMENT_INTERVAL_MS,
    ) -> WatermarkStrategy[T]:
        """Notes that sources of one group should wait for each other; no source acts on it yet."""
        drift_ms = to_ms(max_allowed_watermark_drift, "max_allowed_watermark_drift")
        interval_ms = to_ms(update_interval, "update_interval")
        if drift_ms < 0 or interval_ms <= 0:
            raise ValueError("the drift must not be negative and the interval must be positive")
        return replace(self, alignment=WatermarkAlignment(watermark_group, drift_ms, interval_ms))

    def create_generator(self, clock: Callable[[], int]) -> WatermarkGenerator[T] | None:
        """A generator for one split, or None; `clock` gives ms for idleness."""
        if self.generator_factory is None:
            return None
        generator = self.generator_factory()
        if self.idle_timeout_ms is not None:
            return WatermarksWithIdleness(generator, self.idle_timeout_ms, clock)
        return generator

    def create_assigner(self) -> Callable[[T, int], int] | None:
        """The function that gives a record's timestamp, a copy for one subtask, or None."""
        if self.timestamp_assigner is None:
            return None
        assigner = copy_function(self.timestamp_assigner)
        extract: Callable[[T, int], int] = callable_of(assigner, "extract_timestamp")  # type: ignore[assignment]  # checked per batch
        return extract


def _check_call(function: Callable[..., object], arguments: int, rule: str) -> None:
    """Raises `TypeError` with `rule` unless the function can be called with so many arguments."""
    unfit = unfit_call(function, arguments)
    if unfit is not None:
        signature, error = unfit
        raise TypeError(
            f"{rule}: {place_of(function) or repr(function)} takes {signature}"
        ) from error
