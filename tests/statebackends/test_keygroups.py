"""Key groups cover the keys of an operator, each by exactly one subtask."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from statebackends.keygroups import (
    EMPTY_KEY_GROUP_RANGE,
    MAX_PARALLELISM_LIMIT,
    KeyGroupRange,
    key_group_of,
    key_group_range,
    murmur_hash,
    subtask_of,
)
from statebackends.keys import encode_key


@pytest.mark.parametrize(
    ("parallelism", "ranges"),
    [(2, [(0, 4), (5, 9)]), (3, [(0, 3), (4, 6), (7, 9)])],
)
def test_ten_key_groups_are_dealt_out_as_in_flink(parallelism, ranges):
    """The bounds round so that the first subtasks get the larger shares."""
    dealt = [key_group_range(10, parallelism, index) for index in range(parallelism)]
    assert dealt == [KeyGroupRange(start, end) for start, end in ranges]


@settings(deadline=None, max_examples=100)
@given(st.data())
def test_each_key_group_belongs_to_the_subtask_whose_range_has_it(data):
    """Ranges are disjoint, cover all groups and agree with `subtask_of`."""
    groups = data.draw(st.integers(1, 4096))
    parallelism = data.draw(st.integers(1, groups))
    dealt = [
        (key_group, index)
        for index in range(parallelism)
        for key_group in key_group_range(groups, parallelism, index)
    ]
    assert [key_group for key_group, _ in dealt] == list(range(groups))
    assert all(subtask_of(group, groups, parallelism) == index for group, index in dealt)


@pytest.mark.parametrize(
    ("groups", "parallelism", "index"),
    [(0, 1, 0), (MAX_PARALLELISM_LIMIT + 1, 1, 0), (10, 11, 0), (10, 0, 0), (10, 2, 2)],
)
def test_numbers_out_of_bounds_are_refused(groups, parallelism, index):
    """No range exists for them."""
    with pytest.raises(ValueError, match="not within"):
        key_group_range(groups, parallelism, index)


@given(st.text(), st.integers(1, MAX_PARALLELISM_LIMIT))
def test_a_key_group_is_the_scrambled_hash_within_the_groups(key, groups):
    """The one-step form gives what the two formulas give one after the other."""
    import mmh3

    data = encode_key(key)
    assert key_group_of(data, groups) == murmur_hash(mmh3.hash(data)) % groups


@pytest.mark.parametrize(
    ("one", "other", "common"),
    [
        ((0, 10), (3, 7), (3, 7)),
        ((0, 5), (6, 10), (0, -1)),
        ((0, 10), (5, 20), (5, 10)),
        ((3, 12), (0, 10), (3, 10)),
    ],
)
def test_an_intersection_has_the_groups_of_both(one, other, common):
    """Symmetric, and the range itself with itself."""
    first, second = KeyGroupRange(*one), KeyGroupRange(*other)
    assert first.intersection(second) == second.intersection(first) == KeyGroupRange(*common)
    assert first.intersection(first) == first


@pytest.mark.parametrize(
    ("start", "end"), [(0, 0), (0, 1), (1, 2), (42, 42), (3, 7), (0, 32767), (32766, 32767)]
)
def test_a_range_has_its_ends_and_what_lies_between(start, end):
    """Length, order and membership agree."""
    key_groups = KeyGroupRange(start, end)
    assert list(key_groups) == list(range(start, end + 1))
    assert len(key_groups) == end - start + 1
    assert start in key_groups
    assert end in key_groups
    assert start - 1 not in key_groups
    assert end + 1 not in key_groups


def test_a_reversed_range_is_empty():
    """As in Flink, whatever its numbers."""
    assert KeyGroupRange(5, 3) == EMPTY_KEY_GROUP_RANGE
    assert list(EMPTY_KEY_GROUP_RANGE) == []


def test_a_negative_start_is_refused():
    """There is no such key group."""
    with pytest.raises(ValueError, match="starts at 0"):
        KeyGroupRange(-1, 3)
