"""What can change in place is told from what cannot, and copied."""

import enum
import uuid
from collections import deque, namedtuple
from dataclasses import dataclass, field
from datetime import date

import pytest

from statebackends.mutability import copy_value, is_immutable, note_mutable


class Colour(enum.Enum):
    RED = 1


@dataclass(frozen=True)
class Fixed:
    x: object


@dataclass
class Loose:
    items: list[int] = field(default_factory=list)


class Labelled(tuple):
    """Its objects have attributes."""


class LabelledSet(frozenset):
    """Its objects have attributes."""


class Derived(Fixed):
    """Its objects have other attributes, which are not frozen."""


Pair = namedtuple("Pair", "left right")  # noqa: PYI024 - the untyped form is meant
IMMUTABLE = [
    1,
    "x",
    None,
    (1, ("a", b"")),
    frozenset({1}),
    Colour.RED,
    int,
    Fixed(1),
    Fixed((1, Colour.RED)),
    Pair(1, "a"),
    uuid.UUID(int=1),
    date(2024, 1, 1),
]
MUTABLE = [
    [],
    [1, [2]],
    {},
    {"a": {"b": []}},
    set(),
    bytearray(b"a"),
    Loose([1]),
    Fixed([1]),
    (1, [2]),
    Pair(1, {}),
    deque([1]),
    Labelled((1, 2)),
    LabelledSet({1}),
    Derived(1),
    (1, Labelled()),
]


@pytest.mark.parametrize("value", IMMUTABLE, ids=repr)
def test_an_immutable_value_is_its_own_copy(value):
    """Nothing is copied and nothing noted."""
    noted: list[object] = []
    note_mutable(value, noted)
    assert is_immutable(value)
    assert copy_value(value) is value
    assert noted == []


@pytest.mark.parametrize("value", MUTABLE, ids=repr)
def test_a_mutable_value_is_copied(value):
    """The copy is equal, of the same type, and another object."""
    copied = copy_value(value)
    assert not is_immutable(value)
    assert copied == value
    assert type(copied) is type(value)
    assert copied is not value


def test_a_change_of_a_nested_value_does_not_reach_the_copy():
    """Copies go all the way down."""
    value = {"a": [Loose([1])], "b": (1, [2])}
    copied = copy_value(value)
    value["a"][0].items.append(5)
    value["b"][1].append(5)
    assert copied == {"a": [Loose([1])], "b": (1, [2])}
