"""Settings as text by key (PyFlink: `Configuration`)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Self


class Configuration:
    """Texts by key with typed access; `env.configure` checks keys and values.

    Typed getters raise ValueError for a text that is no value of that type.
    """

    def __init__(self, values: Mapping[str, str] | None = None) -> None:
        self._values: dict[str, str] = {}
        for key, value in (values or {}).items():
            self.set_string(key, value)

    @staticmethod
    def from_dict(map: Mapping[str, str]) -> Configuration:  # noqa: A002 - PyFlink's name
        """A configuration with a copy of the entries."""
        return Configuration(map)

    @staticmethod
    def parse_list_value(value: str) -> list[str]:
        """The parts of a list written as text, separated by semicolons or commas."""
        text = value.strip().removeprefix("[").removesuffix("]")
        return [part.strip() for part in text.replace(",", ";").split(";") if part.strip()]

    def get_string(self, key: str, default_value: str) -> str:
        """The text of a key."""
        return self._values.get(key, default_value)

    def set_string(self, key: str, value: str) -> Self:
        """Sets the text of a key."""
        _check(key, str, "a key")
        _check(value, str, f"{key}: the value")
        self._values[key] = value
        return self

    def get_integer(self, key: str, default_value: int) -> int:
        """The integer of a key."""
        return int(self._values[key]) if key in self._values else default_value

    def set_integer(self, key: str, value: int) -> Self:
        """Sets an integer."""
        _check(value, int, f"{key}: the value")
        return self.set_string(key, str(value))

    def get_boolean(self, key: str, default_value: bool) -> bool:
        """The boolean of a key."""
        if key not in self._values:
            return default_value
        word = self._values[key].strip().lower()
        if word not in {"true", "false"}:
            raise ValueError(f"{key}: {self._values[key]!r} must be 'true' or 'false'")
        return word == "true"

    def set_boolean(self, key: str, value: bool) -> Self:
        """Sets a boolean."""
        _check(value, bool, f"{key}: the value")
        return self.set_string(key, "true" if value else "false")

    def get_float(self, key: str, default_value: float) -> float:
        """The number of a key."""
        return float(self._values[key]) if key in self._values else default_value

    def set_float(self, key: str, value: float) -> Self:
        """Sets a number."""
        _check(value, (int, float), f"{key}: the value")
        return self.set_string(key, str(value))

    def get_bytearray(self, key: str, default_value: bytearray) -> bytearray:
        """The bytes of a key."""
        return bytearray.fromhex(self._values[key]) if key in self._values else default_value

    def set_bytearray(self, key: str, value: bytearray) -> Self:
        """Sets bytes, kept as hexadecimal digits."""
        return self.set_string(key, value.hex())

    def key_set(self) -> set[str]:
        """All keys."""
        return set(self._values)

    def contains_key(self, key: str) -> bool:
        """Whether a key is set."""
        return key in self._values

    def remove_config(self, key: str) -> bool:
        """Takes a key out; whether it was there."""
        return self._values.pop(key, None) is not None

    def add_all(self, other: Configuration, prefix: str | None = None) -> Self:
        """Sets all entries of another configuration, `prefix` put before their keys."""
        for key, value in other.to_dict().items():
            self._values[f"{prefix or ''}{key}"] = value
        return self

    def add_all_to_dict(self, target_dict: dict[str, str]) -> None:
        """Sets all entries in a dictionary."""
        target_dict.update(self._values)

    def to_dict(self) -> dict[str, str]:
        """A copy of the entries."""
        return dict(self._values)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Configuration) and self._values == other._values

    __hash__ = None  # type: ignore[assignment]  # equal by content, and the content changes

    def __repr__(self) -> str:
        return f"Configuration({self._values!r})"


def _check(value: object, kind: type | tuple[type, ...], what: str) -> None:
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        kinds = kind if isinstance(kind, tuple) else (kind,)
        names = " or ".join(one.__name__ for one in kinds)
        raise TypeError(f"{what} must be {names}, not {type(value).__name__} {value!r:.80}")
