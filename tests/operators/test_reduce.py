"""The running reduce."""

import pytest

from operators.elements import RecordBatch
from operators.functions import ReduceFunction
from operators.reduce import ReduceOperator
from tests.operators.fakes import Driver, FakeContext
from tests.operators.saved_state import restarted


class Sum(ReduceFunction[int]):
    def reduce(self, value1: int, value2: int) -> int:
        return value1 + value2


def test_each_record_gives_the_new_value_of_its_key() -> None:
    """The first one of a key comes out as it is; batches do not matter."""
    driver = Driver(ReduceOperator(Sum()))
    assert driver.records([1, 2, 3], [5, 6, 7], keys="aba") == [(1, 5), (2, 6), (4, 7)]
    assert driver.records([10, 20], keys="ab") == [(14, None), (22, None)]


def test_values_survive_a_restart() -> None:
    """They are keyed state."""
    driver = Driver(ReduceOperator(Sum()))
    driver.records([1, 2], keys="ab")
    context = FakeContext(keyed_state=restarted(driver.context.keyed_state))
    assert Driver(ReduceOperator(Sum()), context).records([10], keys="b") == [(12, None)]


def test_position_names_the_record_that_failed() -> None:
    """The user's exception passes through untouched."""

    def reduce(a: int, b: int) -> int:
        if b == 3:
            raise KeyError("ts")
        return a + b

    operator = ReduceOperator(reduce)
    driver = Driver(operator)
    assert operator.position() is None
    with pytest.raises(KeyError, match="ts"):
        driver.records([1, 2, 3, 4], keys="aaaa")
    assert operator.position() == 2


def test_a_value_that_is_changed_in_place_comes_out_as_it_was() -> None:
    """Each output is the value of its moment, not the last one several times."""

    def extend(a: list[int], b: list[int]) -> list[int]:
        a.extend(b)
        return a

    outputs = Driver(ReduceOperator(extend)).records([[1], [2], [3]], keys="aaa")
    assert [value for value, _ in outputs] == [[1], [1, 2], [1, 2, 3]]


@pytest.mark.parametrize("beside", ["x", None])
@pytest.mark.parametrize("changed", [0, 1])
def test_a_pair_of_a_new_type_is_looked_at_again(changed: int, beside: str | None) -> None:
    """After many pairs of one kind comes one whose element is changed in place."""

    def extend(a: tuple[list[int], ...], b: tuple[list[int], ...]) -> tuple[list[int], ...]:
        a[changed].extend(b[changed])
        return a

    def pair(number: int) -> tuple[object, object]:
        return ([number], beside) if changed == 0 else (beside, [number])

    firsts = [("x", 1), (2, "x"), (None, None)]
    driver = Driver(ReduceOperator(extend))
    outputs = driver.records([*firsts, pair(1), pair(2), pair(3)], keys="pqraaa")
    assert [value for value, _ in outputs[:3]] == firsts
    assert [value[changed] for value, _ in outputs[3:]] == [[1], [1, 2], [1, 2, 3]]


def test_records_without_keys_are_refused() -> None:
    """The edge to a keyed operator sets them."""
    operator = ReduceOperator(Sum())
    Driver(operator)
    with pytest.raises(ValueError, match="without keys"):
        operator.process_batch(RecordBatch([1]))
