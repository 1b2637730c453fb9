"""Timers of a keyed operator: event time follows the watermark, processing time the clock."""

from __future__ import annotations

from collections.abc import Callable, Hashable

from operators.elements import MAX_TIMESTAMP, MIN_TIMESTAMP
from operators.errors import PermanentError
from operators.process_functions import TimerService
from operators.stream_operator import OperatorContext, Work
from statebackends.backend import VOID_NAMESPACE
from statebackends.clock import ScheduledCall
from statebackends.timer_queue import Timer

FINAL_TIMERS_MAX = 1_000_000
"""Timers registered while the final watermark fires, before that counts as endless."""


class InternalTimerService:
    """The timers of one operator under one name (Flink: `InternalTimerService`).

    They live in two queues of the keyed state, so they are part of its snapshot. Event-time
    timers are pulled: `advance_watermark`, then `poll_event` until it gives None. Timers
    registered meanwhile at or below the watermark come out in the same round.

    For processing time there is one wake-up at the clock, for the earliest timer. When it comes
    the service sends itself mail and calls `on_processing_time`, which pulls the due timers with
    `poll_processing`; after it the wake-up is armed again.
    """

    def __init__(
        self, name: str, context: OperatorContext, on_processing_time: Callable[[], Work]
    ) -> None:
        self.name = name
        self.current_watermark = MIN_TIMESTAMP
        self._context = context
        self._clock = context.clock
        self._backend = context.keyed_state
        self.event_queue = self._backend.timer_queue(name)
        self.processing_queue = self._backend.timer_queue(f"{name}/processing-time")
        self._on_processing_time = on_processing_time
        self._due_until = MIN_TIMESTAMP
        self._wake_up: ScheduledCall | None = None
        self._wake_up_at = MAX_TIMESTAMP
        self._mailed = False
        self._closed = False
        self._final_timers_left = 0

    # -- registering ----------------------------------------------------------------------------

    def register_event_time_timer(self, namespace: Hashable, timestamp: int) -> None:
        """A timer of the current key; fires with the next watermark of at least `timestamp`."""
        backend = self._backend
        key = backend.representative(backend.current_key)
        self.event_queue.add(checked_timestamp(timestamp), key, namespace)

    def delete_event_time_timer(self, namespace: Hashable, timestamp: int) -> None:
        """Takes a timer of the current key back."""
        backend = self._backend
        key = backend.representative(backend.current_key)
        self.event_queue.remove(checked_timestamp(timestamp), key, namespace)

    def register_processing_time_timer(self, namespace: Hashable, timestamp: int) -> None:
        """A timer of the current key; fires in mail once the clock reaches `timestamp`."""
        backend = self._backend
        key = backend.representative(backend.current_key)
        if self.processing_queue.add(checked_timestamp(timestamp), key, namespace):
            self.arm()

    def delete_processing_time_timer(self, namespace: Hashable, timestamp: int) -> None:
        """Takes a timer of the current key back; a wake-up for nothing costs nothing."""
        backend = self._backend
        key = backend.representative(backend.current_key)
        self.processing_queue.remove(checked_timestamp(timestamp), key, namespace)

    # -- firing ---------------------------------------------------------------------------------

    def advance_watermark(self, timestamp: int) -> None:
        """Raises the watermark; `poll_event` gives out what is due by it."""
        self.current_watermark = timestamp
        if timestamp == MAX_TIMESTAMP:
            self._final_timers_left = len(self.event_queue) + FINAL_TIMERS_MAX

    def poll_event(self) -> Timer | None:
        """Takes out the earliest event-time timer that the watermark has reached.

        Raises `PermanentError` where the timers of the final watermark register new ones without
        end, as a timer that always registers the next one does: so it would at each new start.
        """
        timer = self.event_queue.poll(self.current_watermark)
        if timer is not None and self.current_watermark == MAX_TIMESTAMP:
            self._final_timers_left -= 1
            if self._final_timers_left < 0:
                raise PermanentError(
                    f"on_timer went on registering timers after the end of the input, now at "
                    f"{timer.timestamp}: register none once current_watermark() is {MAX_TIMESTAMP}"
                )
        return timer

    def poll_processing(self) -> Timer | None:
        """Takes out the earliest processing-time timer that was due when the mail came."""
        return self.processing_queue.poll(self._due_until)

    # -- the wake-up ----------------------------------------------------------------------------

    def open(self) -> None:
        """Arms the wake-up for timers that were restored."""
        self.arm()

    def arm(self) -> None:
        """Makes sure that the clock calls for the earliest processing-time timer."""
        earliest = self.processing_queue.earliest()
        # Mail that is under way fires all that is due and arms anew.
        if earliest is None or self._mailed or self._closed:
            return
        if self._wake_up is not None:
            if self._wake_up_at <= earliest:
                return
            self._wake_up.cancel()
        self._wake_up_at = earliest
        self._wake_up = self._clock.call_at(earliest, self._wake)

    def close(self) -> None:
        """Gives up the wake-up."""
        self._closed = True
        if self._wake_up is not None:
            self._wake_up.cancel()
            self._wake_up = None

    def _wake(self) -> None:
        self._wake_up = None
        if not self._closed:
            self._mailed = True
            self._context.send_mail(self._fire)

    def _fire(self) -> Work:
        self._mailed = False
        self._due_until = self._clock.now_ms()
        yield from self._on_processing_time()
        self.arm()


class KeyedTimerService(TimerService):
    """What user code sees: timers of the current key without namespace."""

    __slots__ = ("_backend", "_clock", "_event_queue", "_timers")

    def __init__(self, timers: InternalTimerService, context: OperatorContext) -> None:
        self._timers = timers
        self._clock = context.clock
        self._backend = context.keyed_state
        self._event_queue = timers.event_queue

    def current_processing_time(self) -> int:
        """Processing time in ms since the epoch."""
        return self._clock.now_ms()

    def current_watermark(self) -> int:
        """The watermark; inside `on_timer` the one that made the timer fire."""
        return self._timers.current_watermark

    def register_processing_time_timer(self, timestamp: int) -> None:
        """See `TimerService`."""
        self._timers.register_processing_time_timer(VOID_NAMESPACE, timestamp)

    def register_event_time_timer(self, timestamp: int) -> None:
        """See `TimerService`; the same as the internal service does, without a further call."""
        backend = self._backend
        key = backend.representative(backend.current_key)
        self._event_queue.add(checked_timestamp(timestamp), key, VOID_NAMESPACE)

    def delete_processing_time_timer(self, timestamp: int) -> None:
        """See `TimerService`."""
        self._timers.delete_processing_time_timer(VOID_NAMESPACE, timestamp)

    def delete_event_time_timer(self, timestamp: int) -> None:
        """See `TimerService`."""
        self._timers.delete_event_time_timer(VOID_NAMESPACE, timestamp)


def checked_timestamp(timestamp: int) -> int:
    """`timestamp` if a timer can have it: an int of 64 bits.

    Raises `TypeError` for a bool or any other type, `ValueError` for an int beyond.
    """
    if type(timestamp) is int and MIN_TIMESTAMP <= timestamp <= MAX_TIMESTAMP:
        return timestamp
    if isinstance(timestamp, bool) or not isinstance(timestamp, int):
        raise TypeError(
            f"a timer's timestamp is an int in ms, not {type(timestamp).__name__} {timestamp!r}"
        )
    if not MIN_TIMESTAMP <= timestamp <= MAX_TIMESTAMP:
        raise ValueError(f"a timer's timestamp must fit into 64 bits: {timestamp}")
    return int(timestamp)
