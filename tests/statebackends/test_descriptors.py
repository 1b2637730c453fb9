"""Descriptors say what a state is, in PyFlink's argument order."""

import pytest

from statebackends.descriptors import (
    AggregatingStateDescriptor,
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    ValueStateDescriptor,
)
from statebackends.type_info import Types


class Largest:
    def reduce(self, value1, value2):
        return max(value1, value2)


def test_a_reduce_function_is_a_callable_or_an_object():
    """Both are called alike."""
    by_object = ReducingStateDescriptor("r", Largest(), Types.INT())
    by_callable = ReducingStateDescriptor("r", max, Types.INT())
    assert by_object.reduce(1, 2) == by_callable.reduce(1, 2) == 2
    assert by_callable.get_reduce_function() is max


def test_descriptors_of_the_same_kind_name_and_type_are_equal():
    """However the type was given."""
    assert ValueStateDescriptor("v", int) == ValueStateDescriptor("v", Types.INT())
    assert hash(ValueStateDescriptor("v", int)) == hash(ValueStateDescriptor("v", Types.INT()))
    assert ValueStateDescriptor("v", int) != ValueStateDescriptor("v", str)
    assert ValueStateDescriptor("v", int) != ValueStateDescriptor("w", int)
    assert ValueStateDescriptor("v", list[int]) != ListStateDescriptor("v", int)


def test_a_map_descriptor_names_both_types():
    """A changed key type is as much of a change as a changed value type."""
    assert MapStateDescriptor("m", str, int) != MapStateDescriptor("m", int, int)
    assert MapStateDescriptor("m", str, int) != MapStateDescriptor("m", str, str)


@pytest.mark.parametrize(("name", "error"), [("", ValueError), (5, TypeError), (None, TypeError)])
def test_a_state_needs_a_name(name, error):
    """A string that is not empty."""
    with pytest.raises(error, match="name"):
        ValueStateDescriptor(name)


def test_an_incomplete_aggregate_function_is_refused():
    """Naming the method that is missing."""
    with pytest.raises(TypeError, match="create_accumulator"):
        AggregatingStateDescriptor("a", Largest())


def test_something_else_than_a_reduce_function_is_refused():
    """At the declaration, not at the second record of a key."""
    with pytest.raises(TypeError, match="reduce function"):
        ReducingStateDescriptor("r", 5)
