"""How keys and namespaces keep state apart, on every backend."""

import pytest

from statebackends.descriptors import (
    ListStateDescriptor,
    ReducingStateDescriptor,
    ValueStateDescriptor,
)
from statebackends.errors import StateError, UnstableKeyError
from tests.contracts.state_cases import (
    DESCRIPTORS,
    GROUPS,
    ITEMS,
    KINDS,
    TABLE,
    TOTAL,
    VALUE,
    StateBackendCases,
    content,
    fill,
)


class StateKeys(StateBackendCases):
    """Keys, namespaces, registration and folding."""

    def test_equal_keys_share_their_state(self):
        """1, 1.0 and True are one key, shown as 1."""
        backend = self.backend()
        state = backend.get_partitioned_state(VALUE)
        for key in (1, 1.0, True):
            backend.set_current_key(key)
            state.update((state.value() or 0) + 1)
        assert state.value() == 3
        assert [(type(key), key) for key in backend.keys("value")] == [(int, 1)]
        assert backend.current_key is True
        assert backend.key_group_of(1.0) == backend.key_group_of(1)
        assert type(backend.representative(1.0)) is int

    def test_none_is_a_key(self):
        """It has state like any other."""
        backend = self.backend()
        state = backend.get_partitioned_state(VALUE)
        backend.set_current_key(None)
        state.update(1)
        assert list(backend.keys("value")) == [None]

    @pytest.mark.parametrize("key", [[1], float("nan"), object()], ids=["list", "nan", "object"])
    def test_an_unstable_key_is_refused_at_its_first_record(self, key):
        """Before anything is stored under it."""
        backend = self.backend()
        backend.get_partitioned_state(VALUE)
        with pytest.raises(UnstableKeyError):
            backend.set_current_key(key)

    def test_state_without_a_current_key_is_refused(self):
        """User code in `open` has no key yet."""
        backend = self.backend()
        state = backend.get_partitioned_state(VALUE)
        with pytest.raises(StateError, match="current key"):
            state.value()
        with pytest.raises(StateError, match="current key"):
            state.update(1)

    def test_a_key_of_another_subtask_is_refused(self):
        """A key selector that is not stable would spread a key's state."""
        backend = self.backend(parallelism=GROUPS)
        backend.get_partitioned_state(VALUE)
        stranger = next(key for key in range(100) if backend.key_group_of(key) != 0)
        with pytest.raises(StateError, match="key selector"):
            backend.set_current_key(stranger)

    def test_states_of_one_key_do_not_mix(self):
        """Each kind keeps its own; clearing one leaves the others."""
        backend = self.backend()
        states = [backend.get_partitioned_state(each) for each in DESCRIPTORS]
        backend.set_current_key("a")
        for number, (state, descriptor) in enumerate(zip(states, DESCRIPTORS, strict=True)):
            fill(state, descriptor, number)
        states[1].clear()
        found = [content(state, each) for state, each in zip(states, DESCRIPTORS, strict=True)]
        assert found == [0, [], {"number": 2, "none": None}, 3, 4.0]

    def test_keys_are_those_with_an_entry_in_that_state_and_namespace(self):
        """Keys of other states and namespaces do not show, removed ones disappear."""
        backend = self.backend()
        first = backend.get_partitioned_state(VALUE)
        second = backend.get_partitioned_state(TABLE)
        windowed = backend.get_namespaced_state(ITEMS)
        for key in range(1000):
            backend.set_current_key(key)
            if key < 600:
                first.update(key)
            if key >= 400:
                second.put("x", key)
            windowed.set_current_namespace(key % 2)
            windowed.add("x")
        for key in range(0, 600, 2):
            backend.set_current_key(key)
            first.clear()
        assert sorted(backend.keys("value")) == list(range(1, 600, 2))
        assert sorted(backend.keys("table")) == list(range(400, 1000))
        assert sorted(backend.keys("items", 0)) == list(range(0, 1000, 2))
        assert list(backend.keys("items", 7)) == []

    def test_state_may_change_while_its_keys_are_iterated(self):
        """A function applied to all keys may update or clear."""
        backend = self.backend()
        state = backend.get_partitioned_state(VALUE)
        for key in range(100):
            backend.set_current_key(key)
            state.update(key)
        for key in backend.keys("value"):
            backend.set_current_key(key)
            if key % 2:
                state.clear()
            else:
                state.update(-key)
        assert sorted(backend.keys("value")) == list(range(0, 100, 2))

    @KINDS
    def test_namespaces_do_not_mix(self, descriptor):
        """Each namespace of a key has an entry of its own; clearing one leaves the other."""
        backend = self.backend()
        state = backend.get_namespaced_state(descriptor)
        backend.set_current_key("a")
        for namespace in (1, 2):
            state.set_current_namespace(namespace)
            fill(state, descriptor, namespace)
        assert backend.entry_count() == 2
        kept = content(state, descriptor)
        state.set_current_namespace(1)
        assert content(state, descriptor) != kept
        state.clear()
        assert backend.entry_count() == 1
        state.set_current_namespace(2)
        assert content(state, descriptor) == kept

    def test_a_namespace_is_never_none(self):
        """Nor is a state with namespaces used before one is set."""
        backend = self.backend()
        state = backend.get_namespaced_state(VALUE)
        backend.set_current_key("a")
        with pytest.raises(StateError):
            state.value()
        with pytest.raises(StateError):
            state.set_current_namespace(None)

    def test_a_namespace_table_and_a_handle_see_the_same_entries(self):
        """Operators fold through the table, user code reads through the handle."""
        backend = self.backend()
        tables = backend.namespace_table(TOTAL)
        state = backend.get_namespaced_state(TOTAL)
        assert tables.peek("w") is None
        tables.table("w")[backend.representative(1.0)] = 5
        backend.set_current_key(True)
        state.set_current_namespace("w")
        state.add(2)
        assert dict(tables.table("w")) == {1: 7}
        assert list(tables.namespaces()) == ["w"]
        tables.drop("w")
        assert state.get() is None
        assert list(tables.namespaces()) == []

    def test_a_table_without_entries_is_not_there(self):
        """Asking for it leaves nothing behind."""
        backend = self.backend()
        tables = backend.namespace_table(TOTAL)
        tables.table("w")
        assert tables.peek("w") is None
        assert list(tables.namespaces()) == []
        assert backend.entry_count() == 0

    @KINDS
    @pytest.mark.parametrize("namespaced", [False, True])
    def test_cleared_keys_leave_nothing_behind(self, descriptor, namespaced):
        """The count of entries goes up and down again."""
        backend = self.backend()
        get = backend.get_namespaced_state if namespaced else backend.get_partitioned_state
        state = get(descriptor)
        counts = []
        for step in (lambda: fill(state, descriptor, 1), state.clear):
            for key in range(20):
                backend.set_current_key(key)
                if namespaced:
                    state.set_current_namespace(key % 3)
                step()
            counts.append(backend.entry_count())
        assert counts == [20, 0]
        assert backend.snapshot().entries == 0

    @KINDS
    def test_a_state_is_registered_once(self, descriptor):
        """The second get of a name gives the same handle."""
        backend = self.backend()
        first = backend.get_partitioned_state(descriptor)
        assert backend.get_partitioned_state(descriptor) is first

    def test_a_name_is_of_one_kind_type_and_layout(self):
        """Another declaration of the same name is refused by name."""
        backend = self.backend()
        backend.get_partitioned_state(VALUE)
        for other in (ListStateDescriptor("value", int), ValueStateDescriptor("value", str)):
            with pytest.raises(StateError, match="value"):
                backend.get_partitioned_state(other)
        with pytest.raises(StateError, match="namespaces"):
            backend.get_namespaced_state(VALUE)

    def test_a_state_registered_late_finds_earlier_keys(self):
        """Keys that have other state already take part."""
        backend = self.backend()
        first = backend.get_partitioned_state(VALUE)
        backend.set_current_key("a")
        first.update(1)
        late = backend.get_partitioned_state(TOTAL)
        late.add(5)
        assert (first.value(), late.get(), backend.entry_count()) == (1, 5, 2)

    def test_fold_gives_the_running_value_of_each_record(self):
        """In order, the first value of a key as it is; the state can be read afterwards."""
        backend = self.backend()
        folded = backend.fold(TOTAL, ["a", "b", "a", True, 1], [1, 2, 3, 4, 5], TOTAL.reduce)
        assert folded == [1, 2, 4, 4, 9]
        assert backend.fold_position == 5
        state = backend.get_partitioned_state(TOTAL)
        backend.set_current_key(1.0)
        assert state.get() == 9

    def test_fold_says_how_far_it_came(self):
        """The records before the failing one are applied, it and those after it are not."""
        backend = self.backend()

        def reduce(one, other):
            if other == 3:
                raise TypeError("no threes")
            return one + other

        with pytest.raises(TypeError, match="no threes"):
            backend.fold(TOTAL, ["a", "a", "a", "b"], [1, 2, 3, 4], reduce)
        assert backend.fold_position == 2
        state = backend.get_partitioned_state(TOTAL)
        backend.set_current_key("a")
        assert state.get() == 3
        assert list(backend.keys("total")) == ["a"]

    def test_fold_refuses_an_unstable_key(self):
        """By the same error as a single record."""
        with pytest.raises(UnstableKeyError):
            self.backend().fold(TOTAL, ["a", [1]], [1, 2], TOTAL.reduce)

    def test_fold_results_do_not_change_with_the_state(self):
        """A function that changes its first argument gives each record its own result."""
        backend = self.backend()
        descriptor = ReducingStateDescriptor("r", lambda a, b: a.extend(b) or a)
        results = backend.fold(descriptor, ["a", "a"], [[1], [2]], descriptor.reduce)
        backend.fold(descriptor, ["a"], [[3]], descriptor.reduce)
        assert results == [[1], [1, 2]]

    def test_fold_to_none_leaves_nothing_behind(self):
        """A reduced value of None clears, as does adding None."""
        backend = self.backend()
        assert backend.fold(TOTAL, ["a", "a"], [1, 2], lambda *_: None) == [1, None]
        assert backend.entry_count() == 0

    def test_a_handle_sees_what_fold_did_to_the_current_key(self):
        """Without the key being set again."""
        backend = self.backend()
        state = backend.get_partitioned_state(TOTAL)
        backend.set_current_key("a")
        backend.fold(TOTAL, ["a"], [1], TOTAL.reduce)
        state.add(1)
        assert state.get() == 2
