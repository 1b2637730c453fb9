"""A keyed process function that uses state, both kinds of timers, a side output and a metric."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from runtime import KeyedProcessFunction, OutputTag, RuntimeContext, ValueStateDescriptor

ODD = OutputTag[Any]("odd")


class Counting(KeyedProcessFunction[Any, Any, Any]):
    """Counts per key; a timer 10 ms after each record in event time tells the count."""

    closed = 0
    """How often any copy was closed."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self._count = runtime_context.get_state(ValueStateDescriptor[int]("count"))
        self._seen = runtime_context.get_metrics_group().counter("seen")

    def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> Iterator[Any]:
        self._seen.inc()
        count = (self._count.value() or 0) + 1
        self._count.update(count)
        timestamp = ctx.timestamp()
        if timestamp is None:
            timers = ctx.timer_service()
            timers.register_processing_time_timer(timers.current_processing_time() + 10)
        else:
            ctx.timer_service().register_event_time_timer(timestamp + 10)
        yield value, count
        if count % 2:
            yield ODD, value

    def on_timer(self, timestamp: int, ctx: KeyedProcessFunction.OnTimerContext) -> Iterator[Any]:
        yield ctx.get_current_key(), self._count.value(), ctx.time_domain().name

    def close(self) -> None:
        Counting.closed += 1


def itself(value: Any) -> Any:
    """The key selector of records that are their own key."""
    return value
