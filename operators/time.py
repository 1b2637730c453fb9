"""Durations as users write them, and their one form inside: integer milliseconds."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TypeAlias


def _whole(value: int, unit: str) -> int:
    if type(value) is not int:
        raise TypeError(f"{unit} must be an int, not {type(value).__name__}: {value!r}")
    return value


@dataclass(frozen=True, slots=True, order=True)
class Time:
    """A length of time in whole milliseconds (PyFlink: `Time`)."""

    _milliseconds: int

    def __post_init__(self) -> None:
        _whole(self._milliseconds, "milliseconds")

    def to_milliseconds(self) -> int:
        """The length in milliseconds."""
        return self._milliseconds

    @staticmethod
    def milliseconds(milliseconds: int) -> Time:
        """That many milliseconds."""
        return Time(milliseconds)

    @staticmethod
    def seconds(seconds: int) -> Time:
        """That many seconds."""
        return Time(_whole(seconds, "seconds") * 1_000)

    @staticmethod
    def minutes(minutes: int) -> Time:
        """That many minutes."""
        return Time(_whole(minutes, "minutes") * 60_000)

    @staticmethod
    def hours(hours: int) -> Time:
        """That many hours."""
        return Time(_whole(hours, "hours") * 3_600_000)

    @staticmethod
    def days(days: int) -> Time:
        """That many days of 24 hours."""
        return Time(_whole(days, "days") * 86_400_000)


@dataclass(frozen=True, slots=True, order=True)
class Duration:
    """A length of time in whole milliseconds (PyFlink: `Duration`)."""

    _milliseconds: int

    def __post_init__(self) -> None:
        _whole(self._milliseconds, "milliseconds")

    def to_millis(self) -> int:
        """The length in milliseconds."""
        return self._milliseconds

    @staticmethod
    def of_days(days: int) -> Duration:
        """That many days of 24 hours."""
        return Duration(_whole(days, "days") * 86_400_000)

    @staticmethod
    def of_hours(hours: int) -> Duration:
        """That many hours."""
        return Duration(_whole(hours, "hours") * 3_600_000)

    @staticmethod
    def of_millis(millis: int) -> Duration:
        """That many milliseconds."""
        return Duration(millis)

    @staticmethod
    def of_minutes(minutes: int) -> Duration:
        """That many minutes."""
        return Duration(_whole(minutes, "minutes") * 60_000)

    @staticmethod
    def of_nanos(nanos: int) -> Duration:
        """That many nanoseconds, rounded down to whole milliseconds."""
        return Duration(_whole(nanos, "nanos") // 1_000_000)

    @staticmethod
    def of_seconds(seconds: int) -> Duration:
        """That many seconds."""
        return Duration(_whole(seconds, "seconds") * 1_000)


TimeLike: TypeAlias = int | timedelta | Time | Duration
"""A length of time as every method of the interface takes it; an int means milliseconds."""


def to_ms(value: TimeLike, name: str = "duration") -> int:
    """`value` in milliseconds; `name` says in an error which setting it was.

    Raises `TypeError` for anything that is no length of time (a bool or a float included) and
    `ValueError` for a `timedelta` that is not a whole number of milliseconds.
    """
    if type(value) is int:
        return value
    if isinstance(value, timedelta):
        milliseconds, rest = divmod(value, timedelta(milliseconds=1))
        if rest:
            raise ValueError(f"{name} must be whole milliseconds, not {value!r}")
        return milliseconds
    if isinstance(value, Time):
        return value.to_milliseconds()
    if isinstance(value, Duration):
        return value.to_millis()
    raise TypeError(
        f"{name} must be a timedelta, integer milliseconds, Time or Duration, "
        f"not {type(value).__name__}: {value!r}"
    )
