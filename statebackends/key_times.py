"""Canonical bytes of datetimes and times of day: aware ones by UTC, naive ones apart."""

from __future__ import annotations

from collections.abc import Hashable
from datetime import UTC, datetime, time, timedelta, timezone

_EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001 - arithmetic on naive fields
_EPOCH_UTC = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_WIDEST = timedelta(hours=23, minutes=59)
_DAY_SECONDS = 86_400


def encode_datetime(key: datetime) -> bytes:
    """Aware: microseconds from the epoch in UTC. Naive: the same of its own fields."""
    first = key.replace(fold=0)
    offset = first.utcoffset()
    since = first.replace(tzinfo=None) - _EPOCH
    if offset is None:
        return b"w" + (since // _MICROSECOND).to_bytes(9, "big", signed=True)
    return b"a" + ((since - offset) // _MICROSECOND).to_bytes(9, "big", signed=True)


def decode_naive(data: bytes) -> Hashable:
    """The naive datetime."""
    return _EPOCH + int.from_bytes(data, "big", signed=True) * _MICROSECOND


def decode_aware(data: bytes) -> Hashable:
    """The datetime in UTC, or with an offset where UTC would leave the years 1 to 9999."""
    since = int.from_bytes(data, "big", signed=True) * _MICROSECOND
    try:
        return _EPOCH_UTC + since
    except OverflowError:
        offset = _WIDEST if since < timedelta(0) else -_WIDEST
        return (_EPOCH + (since + offset)).replace(tzinfo=timezone(offset))


def encode_time(key: time) -> bytes:
    """Aware: seconds of UTC (below 0 or beyond a day too, as Python compares), microseconds."""
    seconds = key.hour * 3600 + key.minute * 60 + key.second
    offset = key.utcoffset()
    kind = b"h"
    if offset is not None:
        # Python compares times of day without the fraction of a second of their offsets.
        seconds -= offset.days * _DAY_SECONDS + offset.seconds
        kind = b"o"
    return kind + seconds.to_bytes(4, "big", signed=True) + key.microsecond.to_bytes(3, "big")


def decode_naive_time(data: bytes) -> Hashable:
    """The naive time of day."""
    seconds, microsecond = _seconds(data)
    return _time(seconds, microsecond)


def decode_aware_time(data: bytes) -> Hashable:
    """The time of day in UTC, or with the smallest offset that brings it into a day."""
    seconds, microsecond = _seconds(data)
    local = min(max(seconds, 0), _DAY_SECONDS - 1)
    return _time(local, microsecond).replace(tzinfo=timezone(timedelta(seconds=local - seconds)))


def _seconds(data: bytes) -> tuple[int, int]:
    return int.from_bytes(data[:4], "big", signed=True), int.from_bytes(data[4:], "big")


def _time(seconds: int, microsecond: int) -> time:
    minutes, second = divmod(seconds, 60)
    hour, minute = divmod(minutes, 60)
    return time(hour, minute, second, microsecond)
