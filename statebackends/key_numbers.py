"""Canonical bytes of numbers: equal numbers have equal bytes whatever their type.

Whole numbers are `i` and their two's complement; others are `r` and their reduced ratio;
infinities are `f`. NaN equals nothing, not even itself, so it can be no key.
"""

from __future__ import annotations

import math
from collections.abc import Hashable
from decimal import Decimal
from fractions import Fraction

from statebackends.errors import UnstableKeyError

_EXPONENT_MAX = 4000


def encode_float(number: float) -> bytes:
    """The canonical bytes of a float; raises `UnstableKeyError` for NaN."""
    if number.is_integer():
        return _encode_whole(int(number))
    if math.isfinite(number):
        return _encode_ratio(*float(number).as_integer_ratio())
    if number != number:
        raise UnstableKeyError(f"NaN has no stable form as a key: {_NAN_REMEDY}")
    return b"f+inf" if number > 0 else b"f-inf"


def encode_decimal(number: Decimal) -> bytes:
    """The canonical bytes of a Decimal; raises `UnstableKeyError` for NaN and huge exponents."""
    if number.is_nan():
        raise UnstableKeyError(f"Decimal NaN has no stable form as a key: {_NAN_REMEDY}")
    if number.is_infinite():
        return b"f+inf" if number > 0 else b"f-inf"
    if number and abs(number.adjusted()) > _EXPONENT_MAX:
        raise UnstableKeyError(
            f"Decimal {number} is too large or too small for a key, give str(key)"
        )
    numerator, denominator = number.as_integer_ratio()
    if denominator == 1:
        return _encode_whole(numerator)
    return _encode_ratio(numerator, denominator)


def encode_fraction(number: Fraction) -> bytes:
    """The canonical bytes of a Fraction."""
    if number.denominator == 1:
        return _encode_whole(number.numerator)
    return _encode_ratio(number.numerator, number.denominator)


def decode_ratio(data: bytes) -> Hashable:
    """A ratio as float where that is exact, else as Decimal where that is, else as Fraction."""
    length = int.from_bytes(data[:4], "big")
    numerator = int.from_bytes(data[4 : 4 + length], "big", signed=True)
    denominator = int.from_bytes(data[4 + length :], "big", signed=True)
    ratio = Fraction(numerator, denominator)
    number = _as_float(ratio)
    if number is not None:
        return number
    return _as_decimal(ratio) or ratio


def _as_float(ratio: Fraction) -> float | None:
    try:
        number = ratio.numerator / ratio.denominator
    except OverflowError:
        return None
    # A ratio too small for a float comes out as 0 and is not equal to it.
    return number if number == ratio else None


def _as_decimal(ratio: Fraction) -> Decimal | None:
    rest = ratio.denominator
    twos = (rest & -rest).bit_length() - 1
    rest >>= twos
    fives = 0
    while rest % 5 == 0:
        rest //= 5
        fives += 1
    places = max(twos, fives)
    if rest != 1 or places > _EXPONENT_MAX or abs(ratio.numerator).bit_length() > _EXPONENT_MAX:
        return None
    digits = ratio.numerator * 10**places // ratio.denominator
    if digits.bit_length() > 3 * _EXPONENT_MAX:
        return None
    # By its digits: arithmetic would round to the precision of the context.
    return Decimal((digits < 0, tuple(map(int, str(abs(digits)))), -places))


def _encode_whole(number: int) -> bytes:
    return b"i" + number.to_bytes(number.bit_length() // 8 + 1, "big", signed=True)


def _encode_ratio(numerator: int, denominator: int) -> bytes:
    top = numerator.to_bytes(numerator.bit_length() // 8 + 1, "big", signed=True)
    bottom = denominator.to_bytes(denominator.bit_length() // 8 + 1, "big", signed=True)
    return b"".join((b"r", len(top).to_bytes(4, "big"), top, bottom))


_NAN_REMEDY = "it is not even equal to itself; give None or a string instead"
