"""Schemas: what they give and what they refuse."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from connectors.schemas import ByteArraySchema, JsonSchema, SimpleStringSchema, parse_json

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=8,
)


@given(JSON, st.sampled_from(["utf-8", "utf-8-sig", "utf-16", "utf-32-le"]), st.booleans())
def test_json_is_parsed_as_the_standard_library_does(
    document: object, encoding: str, spaces: bool
) -> None:
    """In every encoding that it detects, with spaces around or without."""
    text = json.dumps(document)
    data = (f" {text}\n" if spaces else text).encode(encoding)
    assert parse_json(data) == json.loads(data)


@given(st.binary(max_size=12))
def test_what_is_no_json_fails_as_in_the_standard_library(data: bytes) -> None:
    """With the same error."""
    try:
        expected = json.loads(data)
    except ValueError as error:
        with pytest.raises(type(error)):
            parse_json(data)
    else:
        assert repr(parse_json(data)) == repr(expected)


@given(JSON)
def test_json_comes_back(document: object) -> None:
    """What JSON has a form for."""
    schema = JsonSchema()
    assert schema.deserialize(schema.serialize(document)) == document


def test_strings_come_back_in_their_encoding() -> None:
    """And nothing else is taken for a string."""
    schema = SimpleStringSchema("latin-1")
    assert schema.serialize("\xe4") == b"\xe4"
    assert schema.deserialize(b"\xe4") == "\xe4"
    with pytest.raises(TypeError, match="takes str, not int"):
        schema.serialize(5)  # type: ignore[arg-type]  # the mistake under test
    with pytest.raises(LookupError):
        SimpleStringSchema("no-such-encoding")


def test_bytes_stay_as_they_are() -> None:
    """And nothing else is taken for bytes."""
    schema = ByteArraySchema()
    assert schema.serialize(bytearray(b"x")) == b"x"
    assert schema.deserialize(b"x") == b"x"
    with pytest.raises(TypeError, match="takes bytes, not str"):
        schema.serialize("x")  # type: ignore[arg-type]  # the mistake under test
