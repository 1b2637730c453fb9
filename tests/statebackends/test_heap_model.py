"""The heap backend against a plain dict, through any sequence of calls, cuts and rescales."""

from collections.abc import Hashable

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from statebackends.descriptors import (
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    ValueStateDescriptor,
)
from statebackends.heap import HeapKeyedStateBackend
from statebackends.keygroups import key_group_of, key_group_range, subtask_of
from statebackends.keys import encode_key
from tests.contracts.snapshots import saved

GROUPS = 8
VALUE = ValueStateDescriptor("value")
ITEMS = ListStateDescriptor("items", int)
TABLE = MapStateDescriptor("table")
TOTAL = ReducingStateDescriptor("total", lambda a, b: a + b, int)
KEYS = st.sampled_from(["a", "b", "", None, 0, 1, True, 1.0, 2.5, (1, "a"), (True, "a"), b"a"])
NAMESPACES = st.integers(0, 2)
NUMBERS = st.integers(-5, 5)


class HeapModel(RuleBasedStateMachine):
    """Subtasks that share out the keys, beside one dict per state that has them all."""

    @initialize(parallelism=st.integers(1, 4))
    def start(self, parallelism: int) -> None:
        self.subtasks = [self.made(parallelism, index) for index in range(parallelism)]
        self.value: dict[Hashable, object] = {}
        self.items: dict[tuple[Hashable, Hashable], list[int]] = {}
        self.table: dict[Hashable, dict[Hashable, int]] = {}
        self.total: dict[Hashable, int] = {}
        self.timers: set[tuple[int, Hashable]] = set()
        self.memory = self.model()
        self.cut = saved(self.subtasks)

    def made(self, parallelism: int, index: int) -> HeapKeyedStateBackend:
        return HeapKeyedStateBackend(key_group_range(GROUPS, parallelism, index), GROUPS)

    def model(self):
        return (
            dict(self.value),
            {at: list(items) for at, items in self.items.items()},
            {key: dict(table) for key, table in self.table.items()},
            dict(self.total),
            set(self.timers),
        )

    def at(self, key: Hashable) -> HeapKeyedStateBackend:
        key_group = key_group_of(encode_key(key), GROUPS)
        backend = self.subtasks[subtask_of(key_group, GROUPS, len(self.subtasks))]
        backend.set_current_key(key)
        return backend

    @rule(key=KEYS, number=st.one_of(st.none(), NUMBERS))
    def update_value(self, key, number):
        self.at(key).get_partitioned_state(VALUE).update(number)
        self.value.pop(key, None)
        if number is not None:
            self.value[key] = number

    @rule(key=KEYS, namespace=NAMESPACES, numbers=st.lists(NUMBERS, max_size=2))
    def add_items(self, key, namespace, numbers):
        state = self.at(key).get_namespaced_state(ITEMS)
        state.set_current_namespace(namespace)
        state.add_all(numbers)
        if numbers:
            self.items.setdefault((key, namespace), []).extend(numbers)

    @rule(key=KEYS, namespace=NAMESPACES)
    def clear_items(self, key, namespace):
        state = self.at(key).get_namespaced_state(ITEMS)
        state.set_current_namespace(namespace)
        state.clear()
        self.items.pop((key, namespace), None)

    @rule(key=KEYS, entry=KEYS, number=NUMBERS)
    def put_entry(self, key, entry, number):
        self.at(key).get_partitioned_state(TABLE).put(entry, number)
        self.table.setdefault(key, {})[entry] = number

    @rule(key=KEYS, entry=KEYS)
    def remove_entry(self, key, entry):
        self.at(key).get_partitioned_state(TABLE).remove(entry)
        table = self.table.get(key, {})
        table.pop(entry, None)
        if not table:
            self.table.pop(key, None)

    @rule(keys=st.lists(KEYS, max_size=4), number=NUMBERS)
    def fold_total(self, keys, number):
        for key in keys:
            backend = self.at(key)
            folded = backend.fold(TOTAL, [key, key], [number, 1], TOTAL.reduce)
            first = self.total[key] + number if key in self.total else number
            assert folded == [first, first + 1]
            self.total[key] = first + 1

    @rule(key=KEYS, timestamp=NUMBERS, gone=st.booleans())
    def set_timer(self, key, timestamp, gone):
        backend = self.at(key)
        queue = backend.timer_queue("t")
        if gone:
            queue.remove(timestamp, backend.representative(key), None)
            self.timers.discard((timestamp, key))
        else:
            queue.add(timestamp, backend.representative(key), None)
            self.timers.add((timestamp, key))

    @rule()
    def take_cut(self):
        self.cut = saved(self.subtasks)
        self.memory = self.model()

    @rule(parallelism=st.integers(1, GROUPS), kept=st.booleans())
    def restart(self, parallelism, kept):
        """From the newest cut, or from that of an earlier step."""
        if kept:
            self.take_cut()
        self.subtasks = [self.made(parallelism, index) for index in range(parallelism)]
        for backend in self.subtasks:
            backend.restore(self.cut)
        self.value, self.items, self.table, self.total, self.timers = self.memory
        self.memory = self.model()

    @invariant()
    def entries_agree(self):
        expected = sum(map(len, (self.value, self.items, self.table, self.total)))
        assert sum(backend.entry_count() for backend in self.subtasks) == expected

    def teardown(self):
        if not hasattr(self, "subtasks"):
            return
        found = ({}, {}, {}, {}, set())
        for backend in self.subtasks:
            value = backend.get_partitioned_state(VALUE)
            items = backend.get_namespaced_state(ITEMS)
            table = backend.get_partitioned_state(TABLE)
            total = backend.get_partitioned_state(TOTAL)
            for key in backend.keys("value"):
                backend.set_current_key(key)
                found[0][key] = value.value()
            for namespace in range(3):
                items.set_current_namespace(namespace)
                for key in backend.keys("items", namespace):
                    backend.set_current_key(key)
                    found[1][key, namespace] = list(items)
            for key in backend.keys("table"):
                backend.set_current_key(key)
                found[2][key] = dict(table.items())
            for key in backend.keys("total"):
                backend.set_current_key(key)
                found[3][key] = total.get()
            found[4].update((timer.timestamp, timer.key) for timer in backend.timer_queue("t"))
        assert found == self.model()


TestHeapModel = HeapModel.TestCase
TestHeapModel.settings = settings(deadline=None, max_examples=40, stateful_step_count=30)
