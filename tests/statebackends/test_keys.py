"""Keys are their canonical bytes: equal keys, and only those, have equal ones."""

import datetime as dt
import enum
import subprocess
import sys
import uuid
from collections import namedtuple
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from statebackends.errors import StateError, UnstableKeyError
from statebackends.keys import decode_key, encode_key, representative_of

Point = namedtuple("Point", "x y")  # noqa: PYI024 - the untyped form is meant


class Colour(enum.Enum):
    RED = 1
    BLUE = 2
    CRIMSON = 1  # noqa: PIE796 - an alias is the point


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


class Word(enum.StrEnum):
    HELLO = "hello"


class Access(enum.Flag):
    READ = 1
    WRITE = 2


class Text(str):
    __slots__ = ()


@dataclass(frozen=True)
class Place:
    town: str
    number: object
    note: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class Pair:
    left: object
    right: object = None


OFFSETS = st.integers(-23 * 60, 23 * 60).map(lambda m: dt.timezone(dt.timedelta(minutes=m)))
NUMBERS = st.one_of(
    st.integers(),
    st.integers(-3, 3),
    st.booleans(),
    st.floats(allow_nan=False),
    st.sampled_from([0.0, -0.0, 1.0, 0.5, float("inf"), Decimal("0.5"), Fraction(1, 2), Level.LOW]),
    st.decimals(allow_nan=False, min_value=-(10**30), max_value=10**30),
    st.sampled_from([Decimal("Infinity"), Decimal("1.0"), Decimal("-0"), Decimal("1E+3")]),
    st.fractions(),
)
SCALARS = st.one_of(
    NUMBERS,
    st.none(),
    st.text(),
    st.text().map(Text),
    st.sampled_from([Word.HELLO, "hello", Colour.RED, Colour.BLUE, Access.READ | Access.WRITE]),
    st.binary(),
    st.dates(),
    st.datetimes(),
    st.datetimes(timezones=OFFSETS),
    st.times(),
    st.times(timezones=OFFSETS),
    st.timedeltas(),
    st.uuids(),
)
KEYS = st.recursive(
    SCALARS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3).map(tuple),
        st.tuples(inner, inner).map(lambda pair: Point(*pair)),
        st.frozensets(inner, max_size=3),
        st.builds(Place, st.text(max_size=2), inner, st.text(max_size=2)),
        st.builds(Pair, inner),
    ),
    max_leaves=5,
)
THOROUGH = settings(deadline=None, max_examples=300)


@THOROUGH
@given(KEYS, KEYS)
def test_two_keys_are_equal_if_and_only_if_their_bytes_are(one, other):
    """Python's equality and that of the bytes are the same."""
    assert (encode_key(one) == encode_key(other)) == (one == other)


@THOROUGH
@given(NUMBERS, NUMBERS)
def test_two_numbers_are_equal_if_and_only_if_their_bytes_are(one, other):
    """Whatever their types, numbers count by their value."""
    assert (encode_key(one) == encode_key(other)) == (one == other)


@THOROUGH
@given(KEYS)
def test_bytes_decode_to_an_equal_key_with_the_same_bytes(key):
    """The representative stands for the key in every way."""
    representative = decode_key(encode_key(key))
    assert representative == key
    assert hash(representative) == hash(key)
    assert encode_key(representative) == encode_key(key)


@pytest.mark.parametrize(
    ("key", "representative"),
    [
        (True, 1),
        (1.0, 1),
        (-0.0, 0),
        (Decimal("2.50"), 2.5),
        (Decimal("0.1"), Decimal("0.1")),
        (Fraction(1, 10), Decimal("0.1")),
        (Fraction(1, 3), Fraction(1, 3)),
        (Level.HIGH, 2),
        (Word.HELLO, "hello"),
        (Text("a"), "a"),
        (Point(1, 2.0), (1, 2)),
        (Colour.CRIMSON, Colour.RED),
        (frozenset({True}), frozenset({1})),
    ],
)
def test_a_representative_has_the_plain_type(key, representative):
    """What timers and restored state show does not depend on which equal key came first."""
    shown = representative_of(key)
    assert shown == representative
    assert type(shown) is type(representative)


def test_an_aware_datetime_is_its_instant():
    """The same instant in two zones is one key, told in UTC."""
    berlin = dt.datetime(2024, 7, 1, 12, tzinfo=ZoneInfo("Europe/Berlin"))
    utc = dt.datetime(2024, 7, 1, 10, tzinfo=dt.UTC)
    assert encode_key(berlin) == encode_key(utc)
    assert representative_of(berlin).tzinfo is dt.UTC


def test_a_naive_datetime_is_no_instant():
    """Naive and aware datetimes of the same fields are two keys."""
    aware = dt.datetime(2024, 7, 1, tzinfo=dt.UTC)
    assert encode_key(aware) != encode_key(aware.replace(tzinfo=None))


def test_a_local_time_that_comes_twice_is_one_key():
    """Python compares without fold within a zone, and so do the bytes."""
    first = dt.datetime(2024, 10, 27, 2, 30, tzinfo=ZoneInfo("Europe/Berlin"))
    assert first == first.replace(fold=1)
    assert encode_key(first) == encode_key(first.replace(fold=1))


@pytest.mark.parametrize(
    ("key", "remedy"),
    [
        ([1], "tuple"),
        ({"a": 1}, "tuple"),
        ({1}, "frozenset"),
        (bytearray(b"a"), "bytes"),
        (float("nan"), "NaN"),
        (Decimal("nan"), "NaN"),
        (Decimal("1E+100000"), "str"),
        (object(), "frozen dataclass"),
        (1j, "real"),
        ((1, [2]), "tuple"),
    ],
)
def test_an_unstable_key_is_refused_with_the_remedy(key, remedy):
    """The message says what to give instead."""
    with pytest.raises(UnstableKeyError, match=remedy):
        encode_key(key)


def test_a_refusal_names_the_type():
    """The reader learns what kind of object came as a key."""

    class Basket:
        pass

    with pytest.raises(UnstableKeyError, match="Basket"):
        encode_key(Basket())


def test_a_dataclass_that_can_change_is_refused():
    """Only frozen dataclasses are keys."""

    @dataclass(unsafe_hash=True)
    class Loose:
        x: int

    with pytest.raises(UnstableKeyError, match="frozen=True"):
        encode_key(Loose(1))


def test_a_dataclass_field_that_could_not_be_restored_is_refused():
    """A field outside equality is not in the bytes, so it needs a default."""

    @dataclass(frozen=True)
    class Partial:
        x: int
        y: int = field(compare=False)

    with pytest.raises(UnstableKeyError, match="'y'"):
        encode_key(Partial(1, 2))


def test_the_class_of_a_stored_key_must_exist():
    """Bytes that name a class that is gone are refused by its name."""
    data = encode_key(Colour.RED).replace(b"Colour", b"Purple")
    with pytest.raises(StateError, match="Purple"):
        decode_key(data)


def test_bytes_do_not_depend_on_the_process():
    """Python's hash is salted per process, the bytes are not."""
    program = (
        "from statebackends.keys import encode_key;"
        "print(encode_key((1, 'a', frozenset({'x', 'y', 'z'}), None, 2.5)).hex())"
    )
    here = encode_key((1, "a", frozenset({"x", "y", "z"}), None, 2.5)).hex()
    for salt in ("1", "2"):
        done = subprocess.run(
            [sys.executable, "-c", program],
            env={"PYTHONHASHSEED": salt},
            capture_output=True,
            text=True,
            check=True,
        )
        assert done.stdout.strip() == here


def test_a_class_unknown_to_this_process_is_found_among_the_loaded_ones():
    """After a restore a key of a class comes before any record brought one."""
    program = (
        "import enum, dataclasses\n"
        "from statebackends.keys import decode_key\n"
        "@dataclasses.dataclass(frozen=True)\n"
        "class Place:\n"
        "    town: str\n"
        "    number: object\n"
        "class Colour(enum.Enum):\n"
        "    RED = 1\n"
        "import sys\n"
        "print(decode_key(bytes.fromhex(sys.argv[1])))\n"
    )
    data = encode_key((Place("a", 1), Colour.RED)).hex()
    done = subprocess.run(
        [sys.executable, "-c", program, data], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "(Place(town='a', number=1), <Colour.RED: 1>)"


def test_known_bytes_stay_what_they_are():
    """Stored state is found again by later versions only if these never change."""
    assert encode_key("key") == b"skey"
    assert encode_key(-1) == b"i\xff"
    assert encode_key(("a", None)) == b"t\0\0\0\2sa\0\0\0\1n"
    assert encode_key(0.5) == b"r\0\0\0\1\1\2"
    assert encode_key(uuid.UUID(int=1)) == b"u" + b"\0" * 15 + b"\1"
