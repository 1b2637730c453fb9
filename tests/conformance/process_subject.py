"""A keyed process function that does what each record, and each timer, tells it to."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from runtime import (
    AggregateFunction,
    AggregatingStateDescriptor,
    KeyedProcessFunction,
    ListStateDescriptor,
    MapStateDescriptor,
    OutputTag,
    ReducingStateDescriptor,
    RuntimeContext,
    ValueStateDescriptor,
)

SIDE = OutputTag[Any]("side")

Operation = dict[str, Any]


class Interpreter(KeyedProcessFunction[Any, Any, Any]):
    """Executes the operations that are a record's value, or that the case has for a timer."""

    def __init__(self, operator: dict[str, Any]) -> None:
        self._descriptions = operator.get("states", [])
        self._on_timer: dict[str, list[Operation]] = operator.get("on_timer", {})

    def open(self, runtime_context: RuntimeContext) -> None:
        self._states = {
            state["name"]: _state(runtime_context, state["name"], state["kind"])
            for state in self._descriptions
        }

    def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> Iterator[Any]:
        for operation in value[1]:
            yield from self._execute(operation, ctx, None)

    def on_timer(self, timestamp: int, ctx: KeyedProcessFunction.OnTimerContext) -> Iterator[Any]:
        yield {"timer": timestamp, "domain": ctx.time_domain().name, **_times(ctx)}
        for operation in self._on_timer.get(str(timestamp), self._on_timer.get("*", [])):
            yield from self._execute(operation, ctx, timestamp)

    def _execute(
        self, operation: Operation, ctx: KeyedProcessFunction.Context, fired: int | None
    ) -> Iterator[Any]:
        name = operation["op"]
        if name == "emit":
            yield {"emit": operation["value"], **_times(ctx)}
        elif name == "side":
            yield SIDE, {"side": operation["value"], "key": ctx.get_current_key()}
        elif name in TIMER_OPERATIONS:
            timestamp = operation.get("ts")
            if timestamp is None:
                assert fired is not None, "timer_plus outside of a timer"
                timestamp = fired + operation["timer_plus"]
            getattr(ctx.timer_service(), TIMER_OPERATIONS[name])(timestamp)
        else:
            yield from self._access(operation, ctx.get_current_key())

    def _access(self, operation: Operation, key: Any) -> Iterator[Any]:
        """A state operation: reads give their result, a failing one its error."""
        name, state = operation["op"], operation["state"]
        about = {"op": name, "state": state, "key": key}
        argument = operation.get("arg")
        try:
            result = STATE_OPERATIONS[name](self._states[state], argument)
        except Exception as error:
            yield {**about, "error": type(error).__name__}
            return
        if name in READS_WITH_ARGUMENT:
            yield {**about, "arg": argument, "result": result}
        elif name in READS:
            yield {**about, "result": result}


TIMER_OPERATIONS = {
    "reg_event": "register_event_time_timer",
    "del_event": "delete_event_time_timer",
    "reg_proc": "register_processing_time_timer",
    "del_proc": "delete_processing_time_timer",
}
READS_WITH_ARGUMENT = frozenset({"map.get", "map.contains"})
READS = frozenset(
    {
        "value.get",
        "value.inc",
        "list.get",
        "map.entries",
        "map.keys",
        "map.values",
        "map.is_empty",
        "reducing.get",
        "aggregating.get",
    }
)


def _increment(state: Any, argument: Any) -> int:
    count: int = (state.value() or 0) + 1
    state.update(count)
    return count


def _add_to_each(state: Any, addend: int) -> None:
    for key, value in state.items():
        state.put(key, value + addend)


def _remove_each(state: Any, argument: Any) -> None:
    for key in state:
        state.remove(key)


STATE_OPERATIONS: dict[str, Callable[[Any, Any], Any]] = {
    "value.get": lambda state, _: state.value(),
    "value.set": lambda state, value: state.update(value),
    "value.inc": _increment,
    "list.get": lambda state, _: list(state.get()),
    "list.add": lambda state, value: state.add(value),
    "list.add_all": lambda state, values: state.add_all(values),
    "list.update": lambda state, values: state.update(values),
    "map.get": lambda state, key: state.get(key),
    "map.put": lambda state, entry: state.put(entry[0], entry[1]),
    "map.put_all": lambda state, entries: state.put_all(entries),
    "map.remove": lambda state, key: state.remove(key),
    "map.contains": lambda state, key: state.contains(key),
    "map.entries": lambda state, _: dict(state.items()),
    "map.keys": lambda state, _: sorted(state.keys()),
    "map.values": lambda state, _: sorted(state.values(), key=lambda v: (v is None, v or 0)),
    "map.is_empty": lambda state, _: state.is_empty(),
    "map.iterator_set_value_plus": _add_to_each,
    "map.iterator_remove": _remove_each,
    "map.iterator_remove_all": _remove_each,
    "reducing.get": lambda state, _: state.get(),
    "reducing.add": lambda state, value: state.add(value),
    "aggregating.get": lambda state, _: state.get(),
    "aggregating.add": lambda state, value: state.add(value),
}
for _kind in ("value", "list", "map", "reducing", "aggregating"):
    STATE_OPERATIONS[f"{_kind}.clear"] = lambda state, _: state.clear()


def _times(ctx: KeyedProcessFunction.Context) -> dict[str, Any]:
    service = ctx.timer_service()
    return {
        "key": ctx.get_current_key(),
        "ctx_ts": ctx.timestamp(),
        "wm": service.current_watermark(),
        "pt": service.current_processing_time(),
    }


def _state(context: RuntimeContext, name: str, kind: str) -> Any:
    match kind:
        case "value":
            return context.get_state(ValueStateDescriptor[Any](name))
        case "list":
            return context.get_list_state(ListStateDescriptor[Any](name))
        case "map":
            return context.get_map_state(MapStateDescriptor[Any, Any](name))
        case "reducing":
            descriptor = ReducingStateDescriptor[Any](name, lambda left, right: left + right)
            return context.get_reducing_state(descriptor)
        case "aggregating":
            average = AggregateFunction.of(
                create=lambda: (0, 0),
                add=lambda value, acc: (acc[0] + value, acc[1] + 1),
                get_result=lambda acc: acc[0] / acc[1],
            )
            return context.get_aggregating_state(AggregatingStateDescriptor(name, average))
        case other:
            raise AssertionError(f"state of kind {other}")
