"""Triggers decide when a window puts out its contents (Flink: `Trigger` and its built-ins)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from enum import Enum
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar, runtime_checkable

if TYPE_CHECKING:
    from operators.metrics import MetricGroup
    from statebackends.descriptors import StateDescriptor
    from statebackends.state import State

T_contra = TypeVar("T_contra", contravariant=True)


@runtime_checkable
class Window(Protocol):
    """What groups elements; hashable and equal by value (Flink: `Window`)."""

    def max_timestamp(self) -> int:
        """The last timestamp in ms that belongs to the window."""
        ...

    def __hash__(self) -> int: ...


W_contra = TypeVar("W_contra", bound=Window, contravariant=True)


class TriggerResult(Enum):
    """What happens to a window after its trigger was asked: fire, purge, both or neither."""

    CONTINUE = (False, False)
    FIRE_AND_PURGE = (True, True)
    FIRE = (True, False)
    PURGE = (False, True)

    def is_fire(self) -> bool:
        """The window function is called with the contents."""
        return self.value[0]

    def is_purge(self) -> bool:
        """The contents are dropped; the trigger's state stays."""
        return self.value[1]


class Trigger(ABC, Generic[T_contra, W_contra]):
    """Decides for each window and key when it fires; subclass it for rules of your own.

    One trigger object serves all windows and keys of a subtask: what must be remembered belongs
    into `TriggerContext.get_partitioned_state`, which is kept per key and window, never into an
    attribute.
    """

    class TriggerContext(ABC):
        """Time, timers and state of the window and key at hand."""

        @abstractmethod
        def get_current_processing_time(self) -> int:
            """Processing time in ms since the epoch."""

        @abstractmethod
        def get_metric_group(self) -> MetricGroup:
            """The operator's metrics."""

        @abstractmethod
        def get_current_watermark(self) -> int:
            """The event time in ms up to which everything is expected to have arrived."""

        @abstractmethod
        def register_processing_time_timer(self, time: int) -> None:
            """Has `on_processing_time` called once processing time reaches `time`."""

        @abstractmethod
        def register_event_time_timer(self, time: int) -> None:
            """Has `on_event_time` called once the watermark reaches `time`."""

        @abstractmethod
        def delete_processing_time_timer(self, time: int) -> None:
            """Deletes a processing-time timer of this window and key, if it is there."""

        @abstractmethod
        def delete_event_time_timer(self, time: int) -> None:
            """Deletes an event-time timer of this window and key, if it is there."""

        @abstractmethod
        def get_partitioned_state(self, state_descriptor: StateDescriptor) -> State:
            """State of this window and key; `Trigger.clear` has to clear it."""

    class OnMergeContext(TriggerContext):
        """The context of `on_merge`: can also merge the state of the windows that merge."""

        @abstractmethod
        def merge_partitioned_state(self, state_descriptor: StateDescriptor) -> None:
            """Merges this state of all merged windows into that of the resulting one."""

    @abstractmethod
    def on_element(
        self, element: T_contra, timestamp: int, window: W_contra, ctx: TriggerContext
    ) -> TriggerResult:
        """Called for each element after it was added to `window`."""

    @abstractmethod
    def on_processing_time(self, time: int, window: W_contra, ctx: TriggerContext) -> TriggerResult:
        """Called when a processing-time timer of this trigger is due."""

    @abstractmethod
    def on_event_time(self, time: int, window: W_contra, ctx: TriggerContext) -> TriggerResult:
        """Called when an event-time timer is due.

        Also for the timer that clears a window up at its end: a trigger that did not register
        `time` itself answers CONTINUE.
        """

    def can_merge(self) -> bool:
        """Whether windows under this trigger may merge (sessions)."""
        return False

    def on_merge(self, window: W_contra, ctx: OnMergeContext) -> None:
        """Called when windows were merged into `window`.

        Raises `NotImplementedError` unless overridden together with `can_merge`.
        """
        raise NotImplementedError(f"{type(self).__name__} cannot merge windows")

    @abstractmethod
    def clear(self, window: W_contra, ctx: TriggerContext) -> None:
        """Called when `window` is removed: deletes its timers and clears its trigger state."""


class EventTimeTrigger(Trigger[object, Window]):
    """Fires when the watermark passes the end of the window; at once for what comes after it."""

    @staticmethod
    def create() -> EventTimeTrigger:
        """The trigger."""
        return EventTimeTrigger()

    def on_element(
        self, element: object, timestamp: int, window: Window, ctx: Trigger.TriggerContext
    ) -> TriggerResult:
        """Fires for an element in lateness, else waits for the end of the window."""
        end = window.max_timestamp()
        if end <= ctx.get_current_watermark():
            return TriggerResult.FIRE
        ctx.register_event_time_timer(end)
        return TriggerResult.CONTINUE

    def on_processing_time(
        self, time: int, window: Window, ctx: Trigger.TriggerContext
    ) -> TriggerResult:
        """Processing time means nothing to it."""
        return TriggerResult.CONTINUE

    def on_event_time(
        self, time: int, window: Window, ctx: Trigger.TriggerContext
    ) -> TriggerResult:
        """Fires at the end of the window only."""
        return TriggerResult.FIRE if time == window.max_timestamp() else TriggerResult.CONTINUE

    def can_merge(self) -> bool:
        """True."""
        return True

    def on_merge(self, window: Window, ctx: Trigger.OnMergeContext) -> None:
        """Waits for the end of the merged window, unless that is already behind."""
        end = window.max_timestamp()
        if end > ctx.get_current_watermark():
            ctx.register_event_time_timer(end)

    def clear(self, window: Window, ctx: Trigger.TriggerContext) -> None:
        """Deletes the timer at the end of the window."""
        ctx.delete_event_time_timer(window.max_timestamp())


class ProcessingTimeTrigger(Trigger[object, Window]):
    """Fires when processing time passes the end of the window."""

    @staticmethod
    def create() -> ProcessingTimeTrigger:
        """The trigger."""
        return ProcessingTimeTrigger()

    def on_element(
        self, element: object, timestamp: int, window: Window, ctx: Trigger.TriggerContext
    ) -> TriggerResult:
        """Waits for the end of the window."""
        ctx.register_processing_time_timer(window.max_timestamp())
        return TriggerResult.CONTINUE

    def on_processing_time(
        self, time: int, window: Window, ctx: Trigger.TriggerContext
    ) -> TriggerResult:
        """Fires."""
        return TriggerResult.FIRE

    def on_event_time(
        self, time: int, window: Window, ctx: Trigger.TriggerContext
    ) -> TriggerResult:
        """Event time means nothing to it."""
        return TriggerResult.CONTINUE

    def can_merge(self) -> bool:
        """True."""
        return True

    def on_merge(self, window: Window, ctx: Trigger.OnMergeContext) -> None:
        """Waits for the end of the merged window, unless that is already behind."""
        end = window.max_timestamp()
        if end > ctx.get_current_processing_time():
            ctx.register_processing_time_timer(end)

    def clear(self, window: Window, ctx: Trigger.TriggerContext) -> None:
        """Deletes the timer at the end of the window."""
        ctx.delete_processing_time_timer(window.max_timestamp())


class PurgingTrigger(Trigger[T_contra, W_contra]):
    """Drops the contents whenever the trigger inside fires: each firing has new elements only."""

    def __init__(self, nested_trigger: Trigger[T_contra, W_contra]) -> None:
        self.nested_trigger = nested_trigger

    @staticmethod
    def of(nested_trigger: Trigger[T_contra, W_contra]) -> PurgingTrigger[T_contra, W_contra]:
        """Wraps `nested_trigger`."""
        return PurgingTrigger(nested_trigger)

    def on_element(
        self, element: T_contra, timestamp: int, window: W_contra, ctx: Trigger.TriggerContext
    ) -> TriggerResult:
        """As the trigger inside, purging what fires."""
        return _purging(self.nested_trigger.on_element(element, timestamp, window, ctx))

    def on_processing_time(
        self, time: int, window: W_contra, ctx: Trigger.TriggerContext
    ) -> TriggerResult:
        """As the trigger inside, purging what fires."""
        return _purging(self.nested_trigger.on_processing_time(time, window, ctx))

    def on_event_time(
        self, time: int, window: W_contra, ctx: Trigger.TriggerContext
    ) -> TriggerResult:
        """As the trigger inside, purging what fires."""
        return _purging(self.nested_trigger.on_event_time(time, window, ctx))

    def can_merge(self) -> bool:
        """Whether the trigger inside can."""
        return self.nested_trigger.can_merge()

    def on_merge(self, window: W_contra, ctx: Trigger.OnMergeContext) -> None:
        """As the trigger inside."""
        self.nested_trigger.on_merge(window, ctx)

    def clear(self, window: W_contra, ctx: Trigger.TriggerContext) -> None:
        """As the trigger inside."""
        self.nested_trigger.clear(window, ctx)


def _purging(result: TriggerResult) -> TriggerResult:
    return TriggerResult.FIRE_AND_PURGE if result is TriggerResult.FIRE else result
