"""The only JSON parser: every file, request, response and token passes through it.

It raises ValueError where Python's parser raises RecursionError (deep nesting) or accepts numbers
that are not JSON (NaN, Infinity) or overflow (1e400).

Source: RFC 8259, sections 6 and 9.
"""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable

MAX_INT32: Final = (1 << 31) - 1
MAX_INT64: Final = (1 << 63) - 1


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"{text[:40]} is too large a number")
    return number


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is not a JSON number")


# Making a decoder takes longer than decoding a short text.
_DECODER: Final = json.JSONDecoder(parse_float=_finite, parse_constant=_refuse_constant)


def parse_json(
    text: bytes | str,
    *,
    fraction: Callable[[str], Any] = _finite,
    fields: Callable[[list[tuple[str, Any]]], Any] | None = None,
) -> Any:
    """Parse a JSON text.

    `fraction` converts numbers with a fraction or an exponent, `fields` an object's fields.

    Raises:
        ValueError: The text is not JSON, is nested too deeply, or has a number that is too large.
    """
    try:
        if fraction is _finite and fields is None:
            return _DECODER.decode(text if isinstance(text, str) else _text_of(text))
        return json.loads(
            text, object_pairs_hook=fields, parse_float=fraction, parse_constant=_refuse_constant
        )
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def _text_of(data: bytes) -> str:
    return data.decode(json.detect_encoding(data), "surrogatepass")


def json_integer(value: Any, least: int, most: int) -> int:
    """Return `value` if it is an integer from `least` to `most`; a boolean is not.

    Raises:
        ValueError: It is another value.
    """
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
        raise ValueError(f"{str(value)[:40]} is not an integer from {least} to {most}")
    return value
