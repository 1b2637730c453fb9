"""PyFlink's `Configuration`: texts by key."""

import pytest

from runtime.configuration import Configuration


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("string", "text"),
        ("integer", 7),
        ("boolean", True),
        ("float", 0.5),
        ("bytearray", bytearray(b"\x00\xff")),
    ],
)
def test_a_value_is_read_back_as_set(kind: str, value: object) -> None:
    """Each type with its own pair of methods, and the default for another key."""
    configuration = Configuration()
    getattr(configuration, f"set_{kind}")("key", value)
    assert getattr(configuration, f"get_{kind}")("key", None) == value
    assert getattr(configuration, f"get_{kind}")("other", value) is value


def test_a_text_that_is_no_boolean_is_refused() -> None:
    """It is not taken for false."""
    with pytest.raises(ValueError, match="must be 'true' or 'false'"):
        Configuration({"key": "perhaps"}).get_boolean("key", False)


def test_a_copy_does_not_follow_the_original() -> None:
    """Dictionaries go in and out by value."""
    source = {"a": "1"}
    configuration = Configuration.from_dict(source)
    source["a"] = "2"
    configuration.to_dict()["a"] = "3"
    assert configuration.to_dict() == {"a": "1"}


def test_entries_are_added_under_a_prefix() -> None:
    """Keys of the added one get it."""
    configuration = Configuration({"a": "1"}).add_all(Configuration({"b": "2"}), "x.")
    assert configuration.key_set() == {"a", "x.b"}


def test_a_removed_key_is_gone() -> None:
    """Removing says whether there was something to remove."""
    configuration = Configuration({"a": "1"})
    assert configuration.remove_config("a")
    assert not configuration.remove_config("a")
    assert not configuration.contains_key("a")


@pytest.mark.parametrize("text", ["a;b", "a, b", "[a, b]"])
def test_a_list_is_read_from_text(text: str) -> None:
    """In the ways that Flink writes lists."""
    assert Configuration.parse_list_value(text) == ["a", "b"]
