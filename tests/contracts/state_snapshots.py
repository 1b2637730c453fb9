"""What survives a snapshot and a change of parallelism, on every backend."""

from collections import Counter

import pytest

from statebackends.descriptors import (
    ListStateDescriptor,
    MapStateDescriptor,
    ValueStateDescriptor,
)
from statebackends.errors import StateError
from statebackends.keygroups import key_group_range
from statebackends.timer_queue import Timer
from statebackends.type_info import Types
from tests.contracts.snapshots import saved
from tests.contracts.state_cases import (
    GROUPS,
    ITEMS,
    KINDS,
    TABLE,
    VALUE,
    Position,
    StateBackendCases,
    content,
    fill,
)


class StateSnapshots(StateBackendCases):
    """Snapshots and timers."""

    def test_timers_are_part_of_the_snapshot(self):
        """By queue, with namespace and representative, each once."""
        backend = self.backend()
        queue = backend.timer_queue("user")
        assert backend.timer_queue("user") is queue
        for key in ("a", "b", 1, None):
            queue.add(-5, key, None)
            queue.add(10, key, ("window", 1))
            queue.add(10, key, ("window", 1))
        backend.timer_queue("other").add(2**63 - 1, "a", None)
        again = self.backend(saved([backend]))
        assert set(again.timer_queue("user")) == {
            timer
            for key in ("a", "b", 1, None)
            for timer in (Timer(-5, key, None), Timer(10, key, ("window", 1)))
        }
        assert list(again.timer_queue("other")) == [Timer(2**63 - 1, "a", None)]

    @KINDS
    @pytest.mark.parametrize("namespaced", [False, True])
    def test_a_restored_state_is_that_of_its_snapshot(self, descriptor, namespaced):
        """Changes after a cut show in the next one only; both can be restored."""
        backend = self.backend()

        def each_key(backend, action):
            get = backend.get_namespaced_state if namespaced else backend.get_partitioned_state
            state = get(descriptor)
            for key in range(50):
                backend.set_current_key(key)
                if namespaced:
                    state.set_current_namespace(("w", key % 3))
                yield action(state, key)

        list(each_key(backend, lambda state, key: fill(state, descriptor, key)))
        before = list(each_key(backend, lambda state, _: content(state, descriptor)))
        first = saved([backend])
        list(each_key(backend, lambda state, key: fill(state, descriptor, key + 1)))
        after = list(each_key(backend, lambda state, _: content(state, descriptor)))
        second = saved([backend])
        for cut, expected in ((first, before), (second, after)):
            again = self.backend(cut)
            assert list(each_key(again, lambda state, _: content(state, descriptor))) == expected
            assert again.entry_count() == 50

    @pytest.mark.parametrize(("before", "after"), [(2, 5), (5, 2), (5, 3), (3, 5), (3, 3), (1, 10)])
    def test_each_key_is_restored_in_the_subtask_that_owns_it(self, before, after):
        """State, windows and timers move with their key group when the parallelism changes."""
        former = [self.backend(parallelism=before, index=i) for i in range(before)]
        for backend in former:
            value = backend.get_partitioned_state(VALUE)
            items = backend.get_namespaced_state(ITEMS)
            for key in range(200):
                if backend.key_group_of(key) in backend.key_group_range:
                    backend.set_current_key(key)
                    value.update(key)
                    items.set_current_namespace(key % 7)
                    items.add(str(key))
                    backend.timer_queue("t").add(key, key, None)
        cut = saved(former)
        seen: Counter[int] = Counter()
        for index in range(after):
            backend = self.backend(cut, after, index)
            value = backend.get_partitioned_state(VALUE)
            items = backend.get_namespaced_state(ITEMS)
            keys = list(backend.keys("value"))
            for key in keys:
                backend.set_current_key(key)
                items.set_current_namespace(key % 7)
                assert (value.value(), list(items)) == (key, [str(key)])
            assert sorted(timer.key for timer in backend.timer_queue("t")) == sorted(keys)
            seen.update(keys)
        assert seen == Counter(range(200))

    def test_state_not_asked_for_stays_in_the_next_snapshots(self):
        """Also after a change of parallelism."""
        backend = self.backend()
        state = backend.get_partitioned_state(VALUE)
        queue = backend.timer_queue("t")
        for key in range(50):
            backend.set_current_key(key)
            state.update(key)
            queue.add(key, key, None)
        cut = saved([backend])
        idle = [self.backend(cut, 3, index) for index in range(3)]
        assert sum(each.entry_count() for each in idle) == 50
        again = self.backend(saved(idle))
        again.get_partitioned_state(VALUE)
        assert sorted(again.keys("value")) == list(range(50))
        assert len(again.timer_queue("t")) == 50

    @pytest.mark.parametrize(
        "other",
        [
            ListStateDescriptor("value", int),
            ValueStateDescriptor("value", str),
            ValueStateDescriptor("value"),
        ],
        ids=["kind", "type", "untyped"],
    )
    def test_a_changed_declaration_is_refused_at_restore(self, other):
        """Naming the state, before its bytes are misread."""
        backend = self.backend()
        backend.set_current_key("a")
        backend.get_partitioned_state(VALUE).update(1)
        again = self.backend(saved([backend]))
        with pytest.raises(StateError, match="'value'"):
            again.get_partitioned_state(other)

    def test_changed_map_keys_are_refused_at_restore(self):
        """The declared key type is part of the declaration."""
        backend = self.backend()
        backend.set_current_key("a")
        backend.get_partitioned_state(TABLE).put("x", 1)
        again = self.backend(saved([backend]))
        with pytest.raises(StateError, match="'table'"):
            again.get_partitioned_state(MapStateDescriptor("table", int, int))

    def test_a_changed_layout_is_refused_at_restore(self):
        """State with namespaces is not read as state without."""
        backend = self.backend()
        backend.set_current_key("a")
        backend.get_partitioned_state(VALUE).update(1)
        again = self.backend(saved([backend]))
        with pytest.raises(StateError, match="'value'"):
            again.get_namespaced_state(VALUE)

    def test_a_changed_max_parallelism_is_refused_at_restore(self):
        """Keys would be in other groups."""
        cut = saved([self.backend()])
        other = self.make(key_group_range(GROUPS + 1, 1, 0), GROUPS + 1)
        with pytest.raises(StateError, match="max parallelism"):
            other.restore(cut)

    def test_an_empty_snapshot_restores_to_nothing(self):
        """The handle reads as for a new state."""
        backend = self.backend()
        backend.get_partitioned_state(VALUE)
        again = self.backend(saved([backend]))
        state = again.get_partitioned_state(VALUE)
        again.set_current_key("a")
        assert state.value() is None
        assert again.entry_count() == 0

    def test_a_snapshot_given_up_leaves_the_backend_usable(self):
        """`alive` says no at the second chunk."""
        from statebackends.snapshot import SnapshotFileWriter
        from tests.contracts.snapshots import Bytes

        backend = self.backend()
        state = backend.get_partitioned_state(VALUE)
        for key in range(50):
            backend.set_current_key(key)
            state.update(key)
        answers = iter([True, False])
        with pytest.raises(InterruptedError):
            SnapshotFileWriter(Bytes()).add_keyed(
                "operator", backend.snapshot(), lambda: next(answers)
            )
        again = self.backend(saved([backend]))
        again.get_partitioned_state(VALUE)
        assert again.entry_count() == 50

    def test_values_come_back_with_their_types(self):
        """Bool stays bool, tuple stays tuple, also against the declared type."""
        values = [True, 1, 1.0, (1, 2), [1], {"a": (1,)}, "x", b"x", 2**100]
        backend = self.backend()
        states = {
            name: backend.get_partitioned_state(ValueStateDescriptor(name, info))
            for name, info in (("untyped", None), ("typed", Types.INT()))
        }
        for index, value in enumerate(values):
            backend.set_current_key(index)
            for state in states.values():
                state.update(value)
        again = self.backend(saved([backend]))
        for name, info in (("untyped", None), ("typed", Types.INT())):
            state = again.get_partitioned_state(ValueStateDescriptor(name, info))
            for index, value in enumerate(values):
                again.set_current_key(index)
                assert (type(state.value()), state.value()) == (type(value), value)

    def test_a_dataclass_state_is_restored_by_its_fields(self):
        """Written through its schema, equal afterwards."""
        backend = self.backend()
        backend.set_current_key("a")
        descriptor = ValueStateDescriptor("p", Position)
        backend.get_partitioned_state(descriptor).update(Position("here", 3, [1.5]))
        again = self.backend(saved([backend]))
        again.set_current_key("a")
        assert again.get_partitioned_state(descriptor).value() == Position("here", 3, [1.5])

    def test_closing_twice_does_nothing(self):
        """As tasks close on every way out."""
        backend = self.backend()
        backend.close()
        backend.close()
