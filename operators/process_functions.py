"""Process functions: per record calls with context, side outputs and, on keyed streams, timers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterable
from enum import Enum
from typing import Any, Generic

from typing_extensions import TypeVar

from operators.functions import Function

IN = TypeVar("IN")
OUT = TypeVar("OUT")
K = TypeVar("K", bound=Hashable)
K_co = TypeVar("K_co", bound=Hashable, covariant=True, default=Any)


class TimeDomain(Enum):
    """Which clock made a timer fire (PyFlink: `TimeDomain`)."""

    EVENT_TIME = 0
    PROCESSING_TIME = 1


class TimerService(ABC):
    """Clocks and timers of the current key (PyFlink: `TimerService`).

    Timestamps are ms as int within 64 bits; a bool or float raises `TypeError`, an int beyond
    `ValueError`. Timers equal in key and time count once.
    """

    __slots__ = ()

    @abstractmethod
    def current_processing_time(self) -> int:
        """Processing time in ms since the epoch."""

    @abstractmethod
    def current_watermark(self) -> int:
        """The watermark; before the first one -2**63."""

    @abstractmethod
    def register_processing_time_timer(self, timestamp: int) -> None:
        """Has `on_timer` called once processing time reaches `timestamp`."""

    @abstractmethod
    def register_event_time_timer(self, timestamp: int) -> None:
        """Has `on_timer` called when a watermark of at least `timestamp` comes next."""

    @abstractmethod
    def delete_processing_time_timer(self, timestamp: int) -> None:
        """Takes the timer back; does nothing if there is none."""

    @abstractmethod
    def delete_event_time_timer(self, timestamp: int) -> None:
        """Takes the timer back; does nothing if there is none."""


class ProcessFunction(Function, Generic[IN, OUT]):
    """Called per record of a stream that is not keyed (PyFlink: `ProcessFunction`).

    Outputs are yielded (or returned as a list); ``yield tag, value`` with an `OutputTag` sends
    `value` to that side output.
    """

    class Context(ABC):
        """What a call can ask about the record at hand."""

        __slots__ = ()

        @abstractmethod
        def timer_service(self) -> TimerService:
            """Clocks; timers need a keyed stream and raise `TypeError` here."""

        @abstractmethod
        def timestamp(self) -> int | None:
            """The record's timestamp in ms, None if it has none."""

    @abstractmethod
    def process_element(self, value: IN, ctx: ProcessFunction.Context) -> Iterable[OUT] | None:
        """The outputs for `value`."""


class KeyedProcessFunction(Function, Generic[K, IN, OUT]):
    """Called per record of a keyed stream, with state and timers (PyFlink's class of that name).

    State handles are fetched in `open` from the runtime context and mean the current key.
    Outputs as in `ProcessFunction`; those of an event-time timer carry the timer's timestamp,
    those of a processing-time timer carry none.
    """

    class Context(ABC, Generic[K_co]):
        """What a call can ask about the record at hand; `Context[str]` types the key."""

        __slots__ = ()

        @abstractmethod
        def get_current_key(self) -> K_co:
            """The key of the record or timer."""

        @abstractmethod
        def timer_service(self) -> TimerService:
            """Clocks and timers of the current key."""

        @abstractmethod
        def timestamp(self) -> int | None:
            """The record's or timer's timestamp in ms, None if the record has none."""

    class OnTimerContext(Context[K_co]):
        """What `on_timer` can ask in addition."""

        __slots__ = ()

        @abstractmethod
        def time_domain(self) -> TimeDomain:
            """Which clock made the timer fire."""

    @abstractmethod
    def process_element(
        self, value: IN, ctx: KeyedProcessFunction.Context[K]
    ) -> Iterable[OUT] | None:
        """The outputs for `value`."""

    def on_timer(
        self,
        timestamp: int,
        ctx: KeyedProcessFunction.OnTimerContext[K],
    ) -> Iterable[OUT] | None:
        """The outputs for a timer that fired; the current key is the timer's."""
        return None
