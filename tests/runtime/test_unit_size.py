"""How a task learns how many records it takes at once."""

from hypothesis import given
from hypothesis import strategies as st

from runtime.unit_size import FIRST_RECORDS, UnitSize

TURN = 0.002


def test_fast_code_gets_whole_batches() -> None:
    """Units that take a moment double up to the bound."""
    unit = UnitSize(1024, TURN)
    while unit.records < 1024:
        before = unit.records
        unit.learn(unit.records, 0.0001)
        assert unit.records == min(1024, before * 2)


def test_slow_code_gets_single_records() -> None:
    """With 10 ms a record units shrink until each is one record."""
    unit = UnitSize(1024, TURN)
    for _ in range(6):
        unit.learn(unit.records, 0.01 * unit.records)
    assert unit.records == 1


def test_a_short_unit_says_nothing_about_a_longer_one() -> None:
    """A batch below the size does not raise it, however quick it was."""
    unit = UnitSize(1024, TURN)
    unit.learn(FIRST_RECORDS - 1, 0.0)
    assert unit.records == FIRST_RECORDS


def test_code_that_becomes_fast_is_trusted_again() -> None:
    """From single records the size grows as soon as they are quick."""
    unit = UnitSize(8, TURN)
    for _ in range(4):
        unit.learn(unit.records, 1.0)
    for _ in range(4):
        unit.learn(unit.records, 0.0)
    assert unit.records == 8


@given(st.integers(1, 4096), st.lists(st.tuples(st.integers(1, 4096), st.floats(0, 10))))
def test_the_size_stays_within_its_bounds(most: int, units: list[tuple[int, float]]) -> None:
    """Whatever happens it is at least 1 and at most the bound."""
    unit = UnitSize(most, TURN)
    for records, seconds in units:
        unit.learn(records, seconds)
        assert 1 <= unit.records <= most


def test_after_a_restart_units_are_small_again() -> None:
    """What was learnt before a fork does not hold after it."""
    unit = UnitSize(1024, TURN)
    while unit.records < 1024:
        unit.learn(unit.records, 0.0)
    unit.restart()
    assert unit.records == FIRST_RECORDS
