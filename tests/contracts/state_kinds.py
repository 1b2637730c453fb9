"""What the five kinds of state do for one key, on every backend."""

import pytest

from statebackends.descriptors import (
    AggregatingStateDescriptor,
    ListStateDescriptor,
    MapStateDescriptor,
    ValueStateDescriptor,
)
from statebackends.errors import UnstableKeyError
from tests.contracts.snapshots import saved
from tests.contracts.state_cases import (
    ITEMS,
    TABLE,
    TOTAL,
    VALUE,
    Average,
    InPlaceAverage,
    StateBackendCases,
)


class StateKinds(StateBackendCases):
    """The states of one key."""

    def test_a_value_is_none_until_it_is_set_and_after_it_is_cleared(self):
        """None is what an absent value reads as, and setting None removes it."""
        backend = self.backend()
        state = backend.get_partitioned_state(VALUE)
        backend.set_current_key("a")
        seen = [state.value()]
        for step in (lambda: state.update(5), lambda: state.update(6), state.clear, state.clear):
            step()
            seen.append(state.value())
        state.update(7)
        state.update(None)
        assert [*seen, state.value()] == [None, 5, 6, None, None, None]

    def test_a_default_is_given_where_nothing_is_stored(self):
        """It is not stored by being read, and a mutable one is given as a copy."""
        backend = self.backend()
        state = backend.get_partitioned_state(ValueStateDescriptor("v", default_value=[]))
        backend.set_current_key("a")
        state.value().append(1)
        assert state.value() == []
        assert backend.entry_count() == 0

    def test_a_list_keeps_order_and_duplicates(self):
        """Elements come back as they were added."""
        backend = self.backend()
        state = backend.get_partitioned_state(ITEMS)
        backend.set_current_key("a")
        assert list(state.get()) == []
        state.add("c")
        state.add_all(["a", "c"])
        state.add_all([])
        assert list(state.get()) == ["c", "a", "c"]
        state.update(["x"])
        assert list(state) == ["x"]

    def test_updating_a_list_with_nothing_clears_it(self):
        """No empty list stays behind."""
        backend = self.backend()
        state = backend.get_partitioned_state(ITEMS)
        backend.set_current_key("a")
        state.add("c")
        state.update([])
        assert list(state.get()) == []
        assert backend.entry_count() == 0

    @pytest.mark.parametrize(
        "call",
        [
            lambda state: state.add(None),
            lambda state: state.add_all(None),
            lambda state: state.add_all(["x", None]),
            lambda state: state.update(None),
            lambda state: state.update(["x", None]),
        ],
    )
    def test_a_list_takes_no_none(self, call):
        """A refused call changes nothing."""
        backend = self.backend()
        state = backend.get_partitioned_state(ITEMS)
        backend.set_current_key("a")
        state.add("c")
        with pytest.raises(TypeError):
            call(state)
        assert list(state.get()) == ["c"]

    def test_a_list_given_to_a_state_stays_the_callers(self):
        """Changing it afterwards does not reach the state, nor does changing what `get` gave."""
        backend = self.backend()
        state = backend.get_partitioned_state(ITEMS)
        backend.set_current_key("a")
        given = ["x"]
        state.update(given)
        given.append("y")
        list(state.get()).append("z")
        assert list(state.get()) == ["x"]

    def test_a_map_puts_gets_and_removes(self):
        """Entries by key; the last one gone, the map is empty."""
        backend = self.backend()
        state = backend.get_partitioned_state(TABLE)
        backend.set_current_key("a")
        assert state.is_empty()
        assert state.get("x") is None
        state.put("x", 1)
        state["y"] = 2
        state.put("x", 3)
        assert (state.get("x"), state["y"], state.contains("x"), "z" in state) == (
            3,
            2,
            True,
            False,
        )
        assert (sorted(state.keys()), sorted(state.values()), sorted(state)) == (
            ["x", "y"],
            [2, 3],
            ["x", "y"],
        )
        state.remove("x")
        state.remove("x")
        del state["y"]
        assert state.is_empty()
        assert backend.entry_count() == 0

    def test_a_map_holds_none_as_a_value(self):
        """An entry of None is there."""
        backend = self.backend()
        state = backend.get_partitioned_state(TABLE)
        backend.set_current_key("a")
        state.put("x", None)
        assert state.contains("x")
        assert not state.is_empty()
        assert dict(state.items()) == {"x": None}

    def test_equal_map_keys_are_one_and_shown_by_their_representative(self):
        """As with the keys of a stream; None is a key."""
        backend = self.backend()
        state = backend.get_partitioned_state(MapStateDescriptor("m"))
        backend.set_current_key("a")
        state.put(True, "a")
        state.put(1.0, "b")
        state.put(None, "c")
        assert state.get(1) == "b"
        assert {(type(key), key) for key in state} == {(int, 1), (type(None), None)}

    @pytest.mark.parametrize("key", [[1], float("nan"), object()], ids=["list", "nan", "object"])
    def test_an_unstable_map_key_is_refused(self, key):
        """It could not be found again."""
        backend = self.backend()
        state = backend.get_partitioned_state(MapStateDescriptor("m"))
        backend.set_current_key("a")
        with pytest.raises(UnstableKeyError):
            state.put(key, 1)

    def test_a_map_may_change_while_it_is_iterated(self):
        """Iteration goes over the entries of its beginning."""
        backend = self.backend()
        state = backend.get_partitioned_state(TABLE)
        backend.set_current_key("a")
        state.put_all({str(i): i for i in range(4096)})
        for key, value in state.items():
            state.put(key, value + 10)
            state.put("new", 0)
            if value % 2:
                state.remove(key)
        expected = {str(i): i + 10 for i in range(0, 4096, 2)} | {"new": 0}
        assert dict(state.items()) == expected

    def test_reducing_folds_from_the_first_value(self):
        """The first value is stored as it is; adding None clears."""
        backend = self.backend()
        state = backend.get_partitioned_state(TOTAL)
        backend.set_current_key("a")
        assert state.get() is None
        state.add(3)
        state.add(4)
        assert state.get() == 7
        state.add(None)
        assert state.get() is None
        assert backend.entry_count() == 0

    @pytest.mark.parametrize("function", [Average(), InPlaceAverage()], ids=["new", "in-place"])
    def test_aggregating_gives_the_result_of_its_accumulator(self, function):
        """Accumulators of two keys do not mix; adding None clears."""
        backend = self.backend()
        state = backend.get_partitioned_state(AggregatingStateDescriptor("avg", function))
        for key, value in [("a", 1), ("b", 10), ("a", 2)]:
            backend.set_current_key(key)
            state.add(value)
        assert state.get() == 1.5
        state.add(None)
        assert state.get() is None
        backend.set_current_key("b")
        assert state.get() == 10

    def test_a_change_of_what_was_handed_out_counts_as_written(self):
        """Within the user call, objects are live."""
        backend = self.backend()
        value = backend.get_partitioned_state(ValueStateDescriptor("v"))
        table = backend.get_partitioned_state(MapStateDescriptor("m"))
        items = backend.get_partitioned_state(ListStateDescriptor("l"))
        backend.set_current_key("a")
        value.update([])
        value.value().append(1)
        table.put("x", {})
        table.get("x")["y"] = 2
        items.add([])
        next(iter(items.get())).append(3)
        backend.set_current_key("b")
        backend.set_current_key("a")
        assert (value.value(), table.get("x"), list(items)) == ([1], {"y": 2}, [[3]])
        again = self.backend(saved([backend]))
        again.set_current_key("a")
        assert again.get_partitioned_state(ValueStateDescriptor("v")).value() == [1]
        assert again.get_partitioned_state(MapStateDescriptor("m")).get("x") == {"y": 2}
