"""States of every kind, and the way to a backend, for the contract of state backends."""

from dataclasses import dataclass

import pytest

from statebackends.backend import KeyedStateBackend
from statebackends.descriptors import (
    AggregatingStateDescriptor,
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    StateDescriptor,
    ValueStateDescriptor,
)
from statebackends.keygroups import KeyGroupRange, key_group_range
from statebackends.snapshot import RestoredKeyedState

GROUPS = 10
VALUE = ValueStateDescriptor("value", int)
ITEMS = ListStateDescriptor("items", str)
TABLE = MapStateDescriptor("table", str, int)


class Average:
    """Accumulator (sum, count)."""

    def create_accumulator(self):
        return (0, 0)

    def add(self, value, accumulator):
        return accumulator[0] + value, accumulator[1] + 1

    def get_result(self, accumulator):
        return accumulator[0] / accumulator[1]

    def merge(self, acc_a, acc_b):
        return acc_a[0] + acc_b[0], acc_a[1] + acc_b[1]


class InPlaceAverage(Average):
    """The same with an accumulator that changes in place."""

    def create_accumulator(self):
        return [0, 0]

    def add(self, value, accumulator):
        accumulator[0] += value
        accumulator[1] += 1
        return accumulator


TOTAL = ReducingStateDescriptor("total", lambda a, b: a + b, int)
AVERAGE = AggregatingStateDescriptor("average", Average())
DESCRIPTORS = [VALUE, ITEMS, TABLE, TOTAL, AVERAGE]
KINDS = pytest.mark.parametrize("descriptor", DESCRIPTORS, ids=lambda d: d.kind)


def fill(state, descriptor: StateDescriptor, number: int) -> None:
    """Puts an entry that says `number` into a state of any kind."""
    if descriptor.kind == "value":
        state.update(number)
    elif descriptor.kind == "list":
        state.update([str(number), "end"])
    elif descriptor.kind == "map":
        state.put_all({"number": number, "none": None})
    else:
        state.clear()
        state.add(number)


def content(state, descriptor: StateDescriptor):
    """What a state of any kind holds, as a comparable value."""
    if descriptor.kind == "value":
        return state.value()
    if descriptor.kind == "list":
        return list(state.get())
    if descriptor.kind == "map":
        return dict(state.items())
    return state.get()


@dataclass
class Position:
    """A value with fields."""

    name: str
    number: int
    rest: list[float]


class StateBackendCases:
    """What the parts of the contract build on; a test class defines `make`."""

    def make(self, key_groups: KeyGroupRange, max_parallelism: int) -> KeyedStateBackend:
        raise NotImplementedError

    def backend(
        self, restored: list[RestoredKeyedState] = (), parallelism: int = 1, index: int = 0
    ) -> KeyedStateBackend:
        made = self.make(key_group_range(GROUPS, parallelism, index), GROUPS)
        if restored:
            made.restore(restored)
        return made
