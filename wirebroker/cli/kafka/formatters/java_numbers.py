"""Numbers as Java prints them: Double.toString and Float.toString since JDK 19."""

from __future__ import annotations

import math
import struct
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

# Java prints numbers in this range without an exponent.
_LEAST_PLAIN: Final = 1e-3
_BEYOND_PLAIN: Final = 1e7
_FLOAT: Final = struct.Struct(">f")
_MOST_DIGITS: Final = 17


def double_text(number: float) -> str:
    """Return a double as Java prints it."""
    return _text(number, float)


def float_text(number: float) -> str:
    """Return a single-precision number as Java prints it."""
    return _text(number, _single)


def _single(text: str) -> float:
    try:
        return float(_FLOAT.unpack(_FLOAT.pack(float(text)))[0])
    except OverflowError:
        return math.inf


def _text(number: float, read: Callable[[str], float]) -> str:
    if math.isnan(number):
        return "NaN"
    sign = "-" if math.copysign(1, number) < 0 else ""
    size = abs(number)
    if math.isinf(size):
        return f"{sign}Infinity"
    if not size:
        return f"{sign}0.0"
    digits, exponent = _digits(size, read)
    if _LEAST_PLAIN <= size < _BEYOND_PLAIN:
        return sign + _plain(digits, exponent)
    return f"{sign}{digits[0]}.{digits[1:]}E{exponent}"


def _digits(size: float, read: Callable[[str], float]) -> tuple[str, int]:
    """Return the fewest digits, at least two, that parse to the number, and the exponent."""
    text = ""
    for count in range(2, _MOST_DIGITS + 1):
        text = f"{size:.{count - 1}e}"
        if read(text) == size:
            break
    digits, _, exponent = text.partition("e")
    return digits.replace(".", "", 1), int(exponent)


def _plain(digits: str, exponent: int) -> str:
    if exponent < 0:
        return f"0.{'0' * (-exponent - 1)}{digits.rstrip('0')}"
    integer_digits = digits[: exponent + 1].ljust(exponent + 1, "0")
    return f"{integer_digits}.{digits[exponent + 1 :].rstrip('0') or '0'}"
