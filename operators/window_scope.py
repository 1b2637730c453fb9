"""What triggers, window functions and assigners see of the operator that calls them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from operators.advice import STATE_IN_OPEN, YIELDED
from operators.keyed_state_store import KeyedStateStore, WindowStateStore
from operators.runtime_context import RuntimeContext
from operators.triggers import Trigger, Window
from operators.window_functions import ProcessWindowFunction
from operators.windows import WindowAssigner

if TYPE_CHECKING:
    from operators.metrics import MetricGroup
    from operators.stream_operator import OperatorContext
    from operators.timers import InternalTimerService
    from statebackends.descriptors import StateDescriptor
    from statebackends.state import State


class WindowScope:
    """The window at hand, time and state; one per operator, shared by its three contexts."""

    __slots__ = ("context", "runtime_context", "timers", "window", "window_states")

    def __init__(self, context: OperatorContext, timers: InternalTimerService) -> None:
        self.context = context
        self.runtime_context = RuntimeContext(context)
        self.timers = timers
        self.window_states = WindowStateStore(context.keyed_state)
        self.window: Window | None = None

    def enter(self, window: Window) -> None:
        """Makes `window` the one that is spoken of; the key is the backend's current key."""
        self.window = window
        self.window_states.namespace = window

    def now_ms(self) -> int:
        """Processing time."""
        return self.context.clock.now_ms()


class ScopedTriggerContext(Trigger.TriggerContext):
    """The trigger's view."""

    def __init__(self, scope: WindowScope) -> None:
        self._scope = scope

    def get_current_processing_time(self) -> int:
        """See `Trigger.TriggerContext`."""
        return self._scope.now_ms()

    def get_metric_group(self) -> MetricGroup:
        """See `Trigger.TriggerContext`."""
        return self._scope.context.metrics

    def get_current_watermark(self) -> int:
        """See `Trigger.TriggerContext`."""
        return self._scope.timers.current_watermark

    def register_processing_time_timer(self, time: int) -> None:
        """See `Trigger.TriggerContext`."""
        self._scope.timers.register_processing_time_timer(self._scope.window, time)

    def register_event_time_timer(self, time: int) -> None:
        """See `Trigger.TriggerContext`."""
        self._scope.timers.register_event_time_timer(self._scope.window, time)

    def delete_processing_time_timer(self, time: int) -> None:
        """See `Trigger.TriggerContext`."""
        self._scope.timers.delete_processing_time_timer(self._scope.window, time)

    def delete_event_time_timer(self, time: int) -> None:
        """See `Trigger.TriggerContext`."""
        self._scope.timers.delete_event_time_timer(self._scope.window, time)

    def get_partitioned_state(self, state_descriptor: StateDescriptor) -> State:
        """See `Trigger.TriggerContext`."""
        return self._scope.window_states.get(state_descriptor)


class ScopedProcessContext(ProcessWindowFunction.Context[Window]):
    """The window function's view."""

    _advice = YIELDED | STATE_IN_OPEN

    def __init__(self, scope: WindowScope) -> None:
        self._scope = scope

    def window(self) -> Window:
        """See `ProcessWindowFunction.Context`."""
        assert self._scope.window is not None
        return self._scope.window

    def current_processing_time(self) -> int:
        """See `ProcessWindowFunction.Context`."""
        return self._scope.now_ms()

    def current_watermark(self) -> int:
        """See `ProcessWindowFunction.Context`."""
        return self._scope.timers.current_watermark

    def window_state(self) -> KeyedStateStore:
        """See `ProcessWindowFunction.Context`."""
        return self._scope.window_states

    def global_state(self) -> KeyedStateStore:
        """See `ProcessWindowFunction.Context`."""
        return self._scope.runtime_context


class ScopedAssignerContext(WindowAssigner.WindowAssignerContext):
    """The assigner's view."""

    def __init__(self, scope: WindowScope) -> None:
        self._scope = scope

    def get_current_processing_time(self) -> int:
        """See `WindowAssigner.WindowAssignerContext`."""
        return self._scope.now_ms()

    def get_runtime_context(self) -> RuntimeContext:
        """See `WindowAssigner.WindowAssignerContext`."""
        return self._scope.runtime_context
