"""One configuration option: its key, its default, and how its text is read."""

from __future__ import annotations

import dataclasses
import difflib
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar, cast

from operators.time import to_ms
from runtime.errors import ConfigurationError

T = TypeVar("T")

_DURATION = re.compile(r"(-?\d+(?:\.\d+)?)\s*([a-z]*)", re.IGNORECASE)
_UNIT_MS = {
    "": 1,
    **dict.fromkeys(("ms", "milli", "millis", "millisecond", "milliseconds"), 1),
    **dict.fromkeys(("s", "sec", "secs", "second", "seconds"), 1_000),
    **dict.fromkeys(("m", "min", "mins", "minute", "minutes"), 60_000),
    **dict.fromkeys(("h", "hour", "hours"), 3_600_000),
    **dict.fromkeys(("d", "day", "days"), 86_400_000),
}
_TRUE = frozenset({"true", "yes", "on", "1"})
_FALSE = frozenset({"false", "no", "off", "0"})
_OFF = frozenset({"", "none", "off", "0", "-1"})


@dataclass(frozen=True, slots=True)
class ValueKind(Generic[T]):
    """What values an option takes: `read` turns text or a Python value into one.

    `read` raises ValueError or TypeError; `allowed` ends the sentence "it must be ...".
    """

    name: str
    allowed: str
    read: Callable[[object], T]
    show: Callable[[T], str] = str


@dataclass(frozen=True, slots=True)
class ConfigOption(Generic[T]):
    """One row of the table of configuration keys."""

    key: str
    kind: ValueKind[T]
    default: T
    doc: str

    def read(self, value: object, source: str = "") -> T:
        """The value of the option from text or a Python value.

        Raises ConfigurationError naming the option (and `source`, where it was set), the value
        and what is allowed.
        """
        try:
            return self.kind.read(value)
        except (ValueError, TypeError) as error:
            where = source or self.key
            if self.key not in where:
                where = f"{where} ({self.key})"
            raise ConfigurationError(
                f"{where}: {value!r} cannot be used; it must be {self.kind.allowed}"
            ) from error


def option(key: str, kind: ValueKind[T], default: T, doc: str) -> T:
    """Declares a field of a settings class to be the option `key`.

    The type says what the field holds; in truth this gives the dataclass its field.
    """
    metadata = {"option": ConfigOption(key, kind, default, doc)}
    # A dataclass refuses mutable defaults; a settings class copies them when it reads its fields.
    return dataclasses.field(default_factory=lambda: default, metadata=metadata)


def options_of(section: type) -> Mapping[str, ConfigOption[Any]]:
    """The options that a settings class declares, by field name."""
    return {
        one.name: one.metadata["option"]
        for one in dataclasses.fields(section)
        if "option" in one.metadata
    }


class CheckedSettings:
    """What all settings classes share: each field that is an option is validated when made."""

    __slots__ = ()

    def __post_init__(self) -> None:
        for name, one in options_of(type(self)).items():
            # The class is frozen for everybody else; here its fields take their final form.
            object.__setattr__(self, name, one.read(getattr(self, name)))


def nearest(word: str, known: Iterable[str], *, cutoff: float = 0.6) -> str:
    """The end of an error message about an unknown word: the most similar known one, if any."""
    close = difflib.get_close_matches(word, list(known), n=1, cutoff=cutoff)
    return f"; did you mean {close[0]!r}?" if close else ""


def parse_duration_ms(text: str) -> int:
    """Milliseconds of `200ms`, `10 s`, `1.5 min`, `2h`, `1 d`; a bare number is milliseconds.

    Units are Flink's (`TimeUtils`). Raises ValueError for anything else and for a length that
    is not whole milliseconds.
    """
    match = _DURATION.fullmatch(text.strip().replace("_", ""))
    unit_ms = _UNIT_MS.get(match.group(2).lower()) if match is not None else None
    if match is None or unit_ms is None:
        raise ValueError(f"not a duration: {text!r}")
    milliseconds = float(match.group(1)) * unit_ms
    if milliseconds != int(milliseconds):
        raise ValueError(f"not whole milliseconds: {text!r}")
    return int(milliseconds)


def show_duration(milliseconds: int) -> str:
    """The shortest text that `parse_duration_ms` reads as `milliseconds`."""
    for unit, unit_ms in (("d", 86_400_000), ("h", 3_600_000), ("min", 60_000), ("s", 1_000)):
        if milliseconds and milliseconds % unit_ms == 0:
            return f"{milliseconds // unit_ms} {unit}"
    return f"{milliseconds} ms"


def duration(minimum_ms: int = 0, maximum_ms: int | None = None) -> ValueKind[int]:
    """A length of time, held in milliseconds."""

    def read(value: object) -> int:
        parsed = parse_duration_ms(value) if isinstance(value, str) else to_ms(_time(value))
        return _within(parsed, minimum_ms, maximum_ms)

    bound = f" of at least {show_duration(minimum_ms)}" if minimum_ms else ""
    if maximum_ms is not None:
        bound += f" and at most {show_duration(maximum_ms)}"
    return ValueKind(
        "duration", f"a duration such as '10s', '200ms' or '1 min'{bound}", read, show_duration
    )


def duration_or_off(minimum_ms: int) -> ValueKind[int | None]:
    """A length of time, or `off` (None)."""
    inner = duration(minimum_ms)

    def read(value: object) -> int | None:
        off = value is None or str(value).strip().lower() in _OFF
        return None if off else inner.read(value)

    def show(value: int | None) -> str:
        return "off" if value is None else show_duration(value)

    return ValueKind("duration", f"{inner.allowed}, or 'off'", read, show)


def integer(minimum: int, maximum: int | None = None) -> ValueKind[int]:
    """A whole number within bounds."""

    def read(value: object) -> int:
        if isinstance(value, str):
            return _within(int(value.strip()), minimum, maximum)
        if type(value) is not int:
            raise TypeError(f"not an integer: {value!r}")
        return _within(value, minimum, maximum)

    bound = f"of at least {minimum}" if maximum is None else f"from {minimum} to {maximum}"
    return ValueKind("integer", f"an integer {bound}", read)


def number(minimum: float, maximum: float) -> ValueKind[float]:
    """A number within bounds."""

    def read(value: object) -> float:
        if isinstance(value, bool) or not isinstance(value, (str, int, float)):
            raise TypeError(f"not a number: {value!r}")
        parsed = float(value)
        if not minimum <= parsed <= maximum:
            raise ValueError(f"{parsed} is out of bounds")
        return parsed

    return ValueKind("number", f"a number from {minimum:g} to {maximum:g}", read)


def boolean() -> ValueKind[bool]:
    """True or false."""

    def read(value: object) -> bool:
        if isinstance(value, bool):
            return value
        word = value.strip().lower() if isinstance(value, str) else ""
        if word in _TRUE or word in _FALSE:
            return word in _TRUE
        raise ValueError(f"not a boolean: {value!r}")

    return ValueKind("boolean", "'true' or 'false'", read, lambda value: str(value).lower())


def text(what: str) -> ValueKind[str]:
    """Any text but an empty one; `what` ends the sentence "it must be ..."."""

    def read(value: object) -> str:
        if not isinstance(value, str) or not value.strip():
            raise TypeError(f"not a text: {value!r}")
        return value

    return ValueKind("text", what, read)


def optional_text(what: str) -> ValueKind[str | None]:
    """Any text but an empty one, or nothing."""
    inner = text(what)

    def read(value: object) -> str | None:
        return None if value is None else inner.read(value)

    return ValueKind("text", what, read, lambda value: "" if value is None else value)


def choice(*values: str, also: dict[str, str] | None = None) -> ValueKind[str]:
    """One of some words, in any case; `also` maps further spellings to them."""
    known = {**{value: value for value in values}, **(also or {})}

    def read(value: object) -> str:
        word = str(value).strip().lower()
        if word not in known:
            raise ValueError(f"unknown: {value!r}")
        return known[word]

    return ValueKind("choice", " or ".join(f"'{value}'" for value in values), read)


def mapping() -> ValueKind[Mapping[str, str]]:
    """Texts by name: `a:1,b:2` (Flink's form of a map)."""

    def read(value: object) -> Mapping[str, str]:
        if isinstance(value, str):
            pairs = [item.split(":", 1) for item in value.split(",") if item.strip()]
            return {key.strip(): item.strip() for key, item in pairs}
        if not isinstance(value, Mapping):
            raise TypeError(f"not a mapping: {value!r}")
        return {str(key): str(item) for key, item in value.items()}

    def show(value: Mapping[str, str]) -> str:
        return ",".join(f"{key}:{item}" for key, item in value.items())

    return ValueKind("map", "pairs such as 'name:value,other:value'", read, show)


def _within(value: int, minimum: int, maximum: int | None) -> int:
    if value < minimum or (maximum is not None and value > maximum):
        raise ValueError(f"{value} is out of bounds")
    return value


def _time(value: object) -> int:
    # to_ms refuses what is no length of time, so the claim about the type is checked there.
    return cast(int, value)
