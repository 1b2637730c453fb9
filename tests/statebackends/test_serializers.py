"""Serializers give back what they took, type and all, and say what they can read."""

import math
from dataclasses import dataclass, field
from decimal import Decimal
from typing import NamedTuple, Optional

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from statebackends.keys import representative_of
from statebackends.serializers import KeySerializer, PickleSerializer
from statebackends.type_info import Types, serializer_for


class Named(NamedTuple):
    x: int


@dataclass
class Order:
    number: int
    items: list[str]
    next: Optional["Order"] = None


@dataclass(frozen=True, slots=True)
class Money:
    amount: Decimal
    currency: str


@dataclass
class Counted:
    """Holds more than its fields."""

    x: int

    def __post_init__(self):
        self.twice = 2 * self.x


@dataclass
class Partial:
    x: int
    y: int = field(init=False)


@dataclass
class Secretive:
    x: int

    def __reduce__(self):
        return (Secretive, (self.x + 1,))


VALUES = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(),
        st.floats(allow_nan=False),
        st.text(),
        st.binary(),
        st.decimals(allow_nan=False),
        st.builds(Named, st.integers()),
        st.builds(Money, st.decimals(allow_nan=False), st.text(max_size=3)),
        st.builds(Order, st.integers(), st.lists(st.text(max_size=2), max_size=2)),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.lists(inner, max_size=3).map(tuple),
        st.dictionaries(st.text(max_size=2), inner, max_size=3),
        st.dictionaries(st.integers(), inner, max_size=3),
    ),
    max_leaves=4,
)
SERIALIZERS = [
    serializer_for(each)
    for each in (
        None,
        int,
        float,
        str,
        bytes,
        bool,
        Decimal,
        list[int],
        dict[str, int],
        dict[str, list[int]],
        tuple[int, str],
        Order,
        Money,
        Counted,
    )
] + [Types.TUPLE([]), Types.ROW_NAMED(["a", "b"], [Types.INT(), Types.STRING()])]


def typed(value: object) -> object:
    """The value together with the types of all its parts."""
    if isinstance(value, list | tuple):
        return type(value), [typed(part) for part in value]
    if isinstance(value, dict):
        return dict, [(typed(key), typed(part)) for key, part in value.items()]
    return type(value), value


@settings(deadline=None, max_examples=200)
@given(st.sampled_from(SERIALIZERS), st.lists(VALUES, max_size=5))
def test_values_come_back_with_their_types_whatever_was_declared(serializer, values):
    """A declared type chooses a form, it never changes or refuses a value."""
    loaded = serializer.load_column(serializer.dump_column(values))
    assert list(map(typed, loaded)) == list(map(typed, values))
    for value in values:
        assert typed(serializer.deserialize(serializer.serialize(value))) == typed(value)


@pytest.mark.parametrize(
    ("declared", "values"),
    [
        (int, [0, -1, 2**70]),
        (list[int], [[], [1], [2, 3]]),
        (dict[str, int], [{}, {"a": 1}]),
        (tuple[int, str], [(1, "a"), (2, "b")]),
        (tuple[list[int], str], [([1], "a")]),
        (Order, [Order(1, ["a"]), Order(2, [], Order(3, []))]),
        (Money, [Money(Decimal("1.50"), "EUR")]),
    ],
)
def test_values_of_the_declared_type_come_back(declared, values):
    """By the compact form."""
    serializer = serializer_for(declared)
    assert serializer.load_column(serializer.dump_column(values)) == values
    assert [serializer.deserialize(serializer.serialize(value)) for value in values] == values


def test_a_compact_record_is_smaller_than_a_pickled_one():
    """The schema is in the identity, not in each column's values."""
    values = [Money(Decimal(n), "EUR") for n in range(1000)]
    compact = serializer_for(Money).dump_column(values)
    assert len(compact) < len(PickleSerializer().dump_column(values))


@pytest.mark.parametrize("value", [Counted(2), Secretive(1)])
def test_a_record_that_is_more_than_its_fields_is_pickled(value):
    """What pickle would keep is kept."""
    import pickle

    serializer = serializer_for(type(value))
    again = serializer.deserialize(serializer.serialize(value))
    assert vars(again) == vars(pickle.loads(pickle.dumps(value)))


def test_a_record_without_one_of_its_fields_is_pickled():
    """A field not yet set is still not set afterwards."""
    again = serializer_for(Partial).load_column(
        serializer_for(Partial).dump_column([Partial(1), Partial(2)])
    )
    assert [vars(each) for each in again] == [{"x": 1}, {"x": 2}]


def test_nan_comes_back():
    """As a value it is a float like any other."""
    serializer = serializer_for(float)
    assert math.isnan(serializer.deserialize(serializer.serialize(math.nan)))


@pytest.mark.parametrize(
    ("declared", "identity"),
    [
        (None, "pickle/1"),
        (object, "pickle/1"),
        (int, "int/1"),
        (Types.LONG(), "int/1"),
        (Types.STRING(), "str/1"),
        (list[int], "list/1(int/1)"),
        (Types.LIST(Types.INT()), "list/1(int/1)"),
        (Types.MAP(Types.STRING(), Types.DOUBLE()), "map/1(str/1,float/1)"),
        (tuple[int, str], "tuple/1(int/1,str/1)"),
        (Types.TUPLE([Types.INT(), Types.STRING()]), "tuple/1(int/1,str/1)"),
        (tuple[int, ...], "pickle/1"),
        (int | None, "pickle/1"),
        (Money, "dataclass/1:Money(amount:decimal/1,currency:str/1)"),
        (Order, "dataclass/1:Order(number:int/1,items:list/1(str/1),next:pickle/1)"),
    ],
)
def test_an_identity_says_name_version_and_schema(declared, identity):
    """It is stored with the state, so it must never change for the same form."""
    assert serializer_for(declared).identity == identity


@pytest.mark.parametrize("declared", ["int", 5, print])
def test_what_is_no_type_is_refused(declared):
    """At the declaration, not at the first value."""
    with pytest.raises(TypeError, match="declares no type"):
        serializer_for(declared)


def test_map_keys_are_written_by_their_canonical_bytes():
    """They come back as representatives."""
    keys = [True, "a", (1.0, None), b"x"]
    serializer = KeySerializer()
    assert serializer.load_column(serializer.dump_column(keys)) == keys
    shown = [serializer.deserialize(serializer.serialize(key)) for key in keys]
    assert list(map(typed, shown)) == [typed(representative_of(key)) for key in keys]


def test_a_named_row_has_a_type_for_each_name():
    """A list too short is a mistake of the declaration."""
    with pytest.raises(ValueError, match="2 field names"):
        Types.ROW_NAMED(["a", "b"], [Types.INT()])


def test_a_hint_says_what_can_change_in_place():
    """Scalars and tuples of scalars cannot."""
    assert [serializer_for(each).mutable for each in (int, tuple[int, str], list[int], None)] == [
        False,
        False,
        True,
        True,
    ]


def test_a_msgspec_struct_is_written_by_its_fields():
    """Its schema is in the identity, as that of a dataclass."""
    reading = msgspec.defstruct("Reading", [("at", int), ("values", list[float])], frozen=True)
    serializer = serializer_for(reading)
    values = [reading(1, [0.5]), reading(2, [])]
    assert serializer.identity == "struct/1:Reading(at:int/1,values:list/1(float/1))"
    assert serializer.load_column(serializer.dump_column(values)) == values
