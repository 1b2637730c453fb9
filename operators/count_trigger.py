"""A trigger that counts elements (Flink: `CountTrigger`)."""

from __future__ import annotations

from operator import add
from typing import cast

from typing_extensions import override

from operators.triggers import Trigger, TriggerResult, Window
from statebackends.descriptors import ReducingStateDescriptor
from statebackends.state import ReducingState


class CountTrigger(Trigger[object, Window]):
    """Fires after each `max_count` elements of a window and key (PyFlink: `CountTrigger`).

    It takes the place of the default trigger: the end of a window does not fire what is left.

    Raises:
        ValueError: the count is no whole number above 0.
    """

    def __init__(self, max_count: int) -> None:
        if max_count < 1 or max_count % 1:
            raise ValueError(f"CountTrigger needs a whole number from 1 on, not {max_count!r}")
        self._max_count = max_count
        self._count = ReducingStateDescriptor[int]("trigger-count", add, int)

    @staticmethod
    def of(max_count: int) -> CountTrigger:
        """A trigger for each `max_count` elements."""
        return CountTrigger(max_count)

    @override
    def on_element(
        self, element: object, timestamp: int, window: Window, ctx: Trigger.TriggerContext
    ) -> TriggerResult:
        """Counts the element."""
        count = self._state(ctx)
        count.add(1)
        if (count.get() or 0) < self._max_count:
            return TriggerResult.CONTINUE
        count.clear()
        return TriggerResult.FIRE

    @override
    def on_processing_time(
        self, time: int, window: Window, ctx: Trigger.TriggerContext
    ) -> TriggerResult:
        """Time has no say."""
        return TriggerResult.CONTINUE

    @override
    def on_event_time(
        self, time: int, window: Window, ctx: Trigger.TriggerContext
    ) -> TriggerResult:
        """Time has no say."""
        return TriggerResult.CONTINUE

    @override
    def can_merge(self) -> bool:
        """Counts of windows add up."""
        return True

    @override
    def on_merge(self, window: Window, ctx: Trigger.OnMergeContext) -> None:
        """The count of the new window is that of all."""
        ctx.merge_partitioned_state(self._count)

    @override
    def clear(self, window: Window, ctx: Trigger.TriggerContext) -> None:
        """Forgets the count."""
        self._state(ctx).clear()

    def _state(self, ctx: Trigger.TriggerContext) -> ReducingState[int]:
        return cast("ReducingState[int]", ctx.get_partitioned_state(self._count))
