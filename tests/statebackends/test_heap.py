"""The heap backend keeps the contract, and shows which live objects were touched."""

import pytest

from statebackends.backend import KeyedStateBackend
from statebackends.descriptors import (
    AggregatingStateDescriptor,
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    ValueStateDescriptor,
)
from statebackends.errors import StateError
from statebackends.hash_map import HashMapStateBackend
from statebackends.heap import HeapKeyedStateBackend
from statebackends.key_memo import MEMO_KEYS_MAX
from statebackends.keygroups import KeyGroupRange
from tests.contracts.snapshots import saved, written
from tests.contracts.state_backend import StateBackendContract
from tests.contracts.state_cases import InPlaceAverage


class TestHeap(StateBackendContract):
    """The contract on the heap."""

    def make(self, key_groups: KeyGroupRange, max_parallelism: int) -> KeyedStateBackend:
        return HashMapStateBackend().create_keyed_state_backend(key_groups, max_parallelism)


@pytest.fixture
def backend() -> HeapKeyedStateBackend:
    made = HeapKeyedStateBackend(KeyGroupRange(0, 9), 10)
    made.set_current_key("a")
    return made


def touched(backend: HeapKeyedStateBackend) -> list[object]:
    found = list(backend.touched)
    backend.touched.clear()
    return found


def test_mutable_values_are_touched_when_stored_and_when_handed_out(backend):
    """By identity, from every kind of state."""
    thing = [1]
    value = backend.get_partitioned_state(ValueStateDescriptor("v"))
    items = backend.get_partitioned_state(ListStateDescriptor("l"))
    table = backend.get_partitioned_state(MapStateDescriptor("m"))
    total = backend.get_partitioned_state(ReducingStateDescriptor("r", lambda a, _: a))
    for store, read in (
        (lambda: value.update(thing), value.value),
        (lambda: items.add(thing), items.get),
        (lambda: items.update([thing]), items.get),
        (lambda: table.put("x", thing), lambda: table.get("x")),
        (lambda: table.put("x", thing), table.values),
        (lambda: table.put("x", thing), table.items),
        (lambda: total.add(thing), total.get),
    ):
        store()
        assert [each is thing for each in touched(backend)] == [True]
        read()
        assert [each is thing for each in touched(backend)] == [True]


def test_a_result_that_is_the_accumulator_is_touched(backend):
    """Aggregations that give their accumulator out give out state."""

    class Collecting(InPlaceAverage):
        def get_result(self, accumulator):
            return accumulator

    state = backend.get_partitioned_state(AggregatingStateDescriptor("a", Collecting()))
    state.add(1)
    backend.touched.clear()
    result = state.get()
    assert backend.touched == [result]
    assert backend.touched[0] is result


def test_immutable_values_are_not_touched(backend):
    """Nothing has to be copied for them."""
    state = backend.get_partitioned_state(ValueStateDescriptor("v"))
    for value in (1, "x", (1, ("a", None)), frozenset({1}), 2.5, b"x"):
        state.update(value)
        assert state.value() == value
    assert backend.touched == []


def test_the_mutable_element_of_a_tuple_is_touched(backend):
    """The tuple itself cannot change."""
    inner = {}
    backend.get_partitioned_state(ValueStateDescriptor("v")).update((1, inner))
    assert [each is inner for each in backend.touched] == [True]


def test_what_was_touched_is_forgotten_with_the_key(backend):
    """The list never outgrows one user call."""
    backend.get_partitioned_state(ValueStateDescriptor("v")).update([1])
    backend.set_current_key("b")
    assert backend.touched == []


def test_more_keys_than_the_memo_holds_keep_their_state():
    """The memo forgets keys, the rows stay."""
    backend = HeapKeyedStateBackend(KeyGroupRange(0, 9), 10)
    descriptor = ReducingStateDescriptor("n", lambda a, b: a + b)
    keys = list(range(MEMO_KEYS_MAX + 10))
    for _ in range(2):
        results = backend.fold(descriptor, keys, [1] * len(keys), descriptor.reduce)
    assert set(results) == {2}
    assert backend.entry_count() == len(keys)


def test_a_row_removed_and_made_again_is_the_one_that_counts(backend):
    """No memo leads to the row of before."""
    state = backend.get_partitioned_state(ValueStateDescriptor("v"))
    for key in (1, True, 1.0, (1,), (True,)):
        backend.set_current_key(key)
        state.update(1)
        state.clear()
        backend.set_current_key(key)
        state.update(2)
        backend.set_current_key(key)
        assert state.value() == 2
        assert saved([backend])[0].sections[0].entries >= 1


def test_a_value_that_cannot_be_serialised_is_refused_by_its_state(backend):
    """The snapshot fails naming the state, with the cause."""
    backend.get_partitioned_state(ValueStateDescriptor("callback")).update(lambda: None)
    with pytest.raises(StateError, match="'callback'"):
        written(backend.snapshot())


def test_names_of_timer_queues_are_not_for_states(backend):
    """Both stand side by side in a state file."""
    with pytest.raises(StateError, match="timers/"):
        backend.get_partitioned_state(ValueStateDescriptor("timers/user"))
