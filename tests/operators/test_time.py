"""Durations in all their forms."""

from datetime import timedelta

import pytest

from operators.time import Duration, Time, to_ms


@pytest.mark.parametrize(
    "value",
    [
        90_000,
        timedelta(seconds=90),
        Time.seconds(90),
        Time.milliseconds(90_000),
        Duration.of_seconds(90),
        Duration.of_millis(90_000),
        Duration.of_nanos(90_000_000_999),
    ],
)
def test_every_form_means_the_same_milliseconds(value: object) -> None:
    """An int is milliseconds; nanoseconds are rounded down."""
    assert to_ms(value) == 90_000  # type: ignore[arg-type]  # parametrized


def test_units_of_both_classes_agree() -> None:
    """Minutes, hours and days are the same length in `Time` and `Duration`."""
    assert Time.minutes(3).to_milliseconds() == Duration.of_minutes(3).to_millis() == 180_000
    assert Time.hours(2).to_milliseconds() == Duration.of_hours(2).to_millis() == 7_200_000
    assert Time.days(1).to_milliseconds() == Duration.of_days(1).to_millis() == 86_400_000


@pytest.mark.parametrize("value", [True, 1.5, "10s", None])
def test_what_is_no_duration_is_refused_by_the_name_of_the_setting(value: object) -> None:
    """The message says which setting was wrong."""
    with pytest.raises(TypeError, match="gap must be"):
        to_ms(value, "gap")  # type: ignore[arg-type]  # on purpose


def test_a_timedelta_of_a_fraction_of_a_millisecond_is_refused() -> None:
    """Rounding would change what the user said."""
    with pytest.raises(ValueError, match="whole milliseconds"):
        to_ms(timedelta(microseconds=1_500))


def test_a_float_of_seconds_is_refused() -> None:
    """PyFlink's factories take ints."""
    with pytest.raises(TypeError, match="seconds must be an int"):
        Time.seconds(1.5)  # type: ignore[arg-type]  # on purpose
