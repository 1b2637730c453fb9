"""The switch that finds objects of state changed too late, or held twice."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from runtime import (
    CollectSink,
    Configuration,
    JobExecutionError,
    KeyedProcessFunction,
    ListStateDescriptor,
    MapStateDescriptor,
    RuntimeContext,
    StreamExecutionEnvironment,
    ValueStateDescriptor,
)
from statebackends.errors import StateError
from statebackends.heap import HeapKeyedStateBackend
from statebackends.keygroups import KeyGroupRange
from statebackends.state import ListState, MapState, ValueState

Context = KeyedProcessFunction.Context


@pytest.fixture
def backend() -> HeapKeyedStateBackend:
    made = HeapKeyedStateBackend(KeyGroupRange(0, 9), 10, detect_late_changes=True)
    made.set_current_key("a")
    return made


@pytest.fixture
def value(backend: HeapKeyedStateBackend) -> ValueState[Any]:
    return backend.get_partitioned_state(ValueStateDescriptor("v"))


def test_a_change_within_the_call_is_none_too_late(
    backend: HeapKeyedStateBackend, value: ValueState[Any]
) -> None:
    """Also one made after the value was stored, or before it is stored again."""
    held = [1]
    value.update(held)
    held.append(2)
    backend.set_current_key("a")
    value.value().append(3)
    value.update(value.value())
    backend.set_current_key("a")
    assert value.value() == [1, 2, 3]


def test_a_change_after_the_call_is_found_at_the_next_touch(
    backend: HeapKeyedStateBackend, value: ValueState[Any]
) -> None:
    """By the key and the object, whether it was stored or handed out."""
    value.update([1])
    kept = value.value()
    backend.set_current_key("b")
    kept.append("late")
    backend.set_current_key("a")
    with pytest.raises(StateError, match=r"key 'a' was changed after.*\[1, 'late'\]"):
        value.value()


def test_elements_are_watched_too(backend: HeapKeyedStateBackend) -> None:
    """Those of lists, of maps and of tuples."""
    items: ListState[Any] = backend.get_partitioned_state(ListStateDescriptor("l"))
    table: MapState[Any, Any] = backend.get_partitioned_state(MapStateDescriptor("m"))
    kept: list[list[int]] = [[1], [2]]
    items.add((0, kept[0]))
    table.put("x", kept[1])
    for thing, read in ((kept[0], items.get), (kept[1], lambda: table.get("x"))):
        backend.set_current_key("b")
        thing.append(9)
        backend.set_current_key("a")
        with pytest.raises(StateError, match="was changed after"):
            read()


def test_one_object_under_two_keys_is_found(
    backend: HeapKeyedStateBackend, value: ValueState[Any]
) -> None:
    """When it is stored under the second one."""
    shared = {"n": 1}
    value.update(shared)
    backend.set_current_key("b")
    with pytest.raises(StateError, match="under two keys, 'a' and 'b'"):
        value.update(shared)


def test_a_copy_and_an_object_in_its_place_are_unsuspicious(
    backend: HeapKeyedStateBackend, value: ValueState[Any]
) -> None:
    """Equal objects are not the same, and a freed one's address means nothing."""
    for round_ in range(100):
        for key in ("a", "b"):
            backend.set_current_key(key)
            value.update([round_])
    assert value.value() == [99]


class Hoarder(KeyedProcessFunction[int, int, Any]):
    """Changes the list of the key before while it works on another."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self.seen: ValueState[list[int]] = runtime_context.get_state(ValueStateDescriptor("seen"))
        self.before: list[int] | None = None

    def process_element(self, value: int, ctx: Context) -> Iterator[Any]:
        if self.before is not None:
            self.before.append(value)
        seen = self.seen.value() or []
        self.before = seen
        self.seen.update(seen)
        yield len(seen)


def run(function: KeyedProcessFunction[Any, Any, Any], detect: str, **and_then: Any) -> list[Any]:
    configuration = Configuration()
    configuration.set_string("riverrun.state.detect-late-changes", detect)
    configuration.set_integer("riverrun.batch.records", 1)
    env = StreamExecutionEnvironment.get_execution_environment(configuration)
    results: CollectSink[Any] = CollectSink()
    stream = env.from_collection([0, 1, 2, 3]).key_by(lambda number: number % 2)
    processed = stream.process(function)
    for name, argument in and_then.items():
        processed = getattr(processed, name)(argument)
    processed.sink_to(results)
    env.execute("late changes")
    return results.results


def test_a_job_with_the_switch_fails_where_the_change_shows() -> None:
    """Naming the operator's key; without the switch nobody notices."""
    assert run(Hoarder(), "false") == [0, 0, 1, 1]
    with pytest.raises(JobExecutionError, match="was changed after the call"):
        run(Hoarder(), "true")


class Nested(KeyedProcessFunction[int, int, Any]):
    """Puts its list out deep inside."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self.seen: ValueState[list[int]] = runtime_context.get_state(ValueStateDescriptor("seen"))

    def process_element(self, value: int, ctx: Context) -> Iterator[Any]:
        seen = self.seen.value() or []
        seen.append(value)
        self.seen.update(seen)
        yield {"seen": seen}


def test_what_is_changed_behind_the_operator_is_not_its_state() -> None:
    """The output is a copy: the list of the key goes on without the change."""

    def spoil(output: dict[str, list[int]]) -> dict[str, list[int]]:
        output["seen"].append(99)
        return output

    spoiled = run(Nested(), "true", map=spoil)
    assert spoiled == [{"seen": [*one["seen"], 99]} for one in run(Nested(), "true")]
