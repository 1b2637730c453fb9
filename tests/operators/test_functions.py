"""User functions: copies per subtask, callables, aggregates of callables."""

import copy
import threading

import pytest

from operators.functions import (
    AggregateFunction,
    MapFunction,
    callable_of,
    copy_function,
)


class Counting(MapFunction[int, int]):
    def __init__(self) -> None:
        self.seen: list[int] = []
        self.also = self.seen
        self.lock = threading.Lock()

    def map(self, value: int) -> int:
        self.seen.append(value)
        return len(self.seen)


def test_a_copy_has_attributes_of_its_own_though_one_cannot_be_copied() -> None:
    """The lock is shared, the list is not."""
    function = Counting()
    duplicate = copy_function(function)
    duplicate.map(1)
    assert function.seen == []
    assert duplicate.lock is function.lock


def test_attributes_that_share_an_object_share_its_copy() -> None:
    """Also where some attribute could not be copied."""
    duplicate = copy_function(Counting())
    assert duplicate.also is duplicate.seen


def test_a_bound_method_is_copied_with_its_object() -> None:
    """It would write to the original otherwise."""
    function = Counting()
    assert copy_function(function.map)(5) == 1
    assert function.seen == []


def test_plain_functions_are_not_copied() -> None:
    """There is nothing in them to copy."""
    assert copy_function(len) is len
    assert copy_function(copy_function) is copy_function


def test_callable_of_finds_the_method_or_takes_the_callable() -> None:
    """A function object or a plain callable serve alike."""
    assert callable_of(Counting(), "map")(7) == 1
    assert callable_of(abs, "map")(-7) == 7


def test_callable_of_refuses_what_cannot_be_called_per_record() -> None:
    """Each mistake has a message of its own."""

    async def later(value: int) -> int:
        return value

    with pytest.raises(TypeError, match="expected a callable"):
        callable_of(3, "map")
    with pytest.raises(TypeError, match=r"write Counting\(\)"):
        callable_of(Counting, "map")
    with pytest.raises(TypeError, match="async user functions are not supported yet"):
        callable_of(later, "map")


def test_an_aggregate_of_callables_survives_a_copy() -> None:
    """Without `get_result` the accumulator is the result."""
    aggregate = AggregateFunction.of(
        create=lambda: 0, add=lambda value, total: total + value, merge=lambda a, b: a + b
    )
    duplicate = copy.deepcopy(aggregate)
    total = duplicate.add(4, duplicate.add(3, duplicate.create_accumulator()))
    assert duplicate.get_result(duplicate.merge(total, 10)) == 17


def test_an_aggregate_without_merge_says_what_needs_it() -> None:
    """Only windows that merge call it."""
    aggregate = AggregateFunction.of(lambda: 0, lambda value, total: total + value, str)
    assert aggregate.get_result(5) == "5"
    with pytest.raises(NotImplementedError, match="windows that merge"):
        aggregate.merge(1, 2)
