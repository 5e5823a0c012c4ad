"""Values as texts in Java's format, and parsers of other texts."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from wirebroker.config.rows.row import ConfigValue

LONGEST_STRING_BYTES: Final = (1 << 15) - 1
# As Java's Integer.parseInt, int() accepts the digits of all scripts.
_WHOLE_NUMBER = re.compile(r"[+-]?\d+")
_HOST = re.compile(r"[0-9a-zA-Z\-%._:]*")
# Java's String.trim removes these.
_JAVA_BLANKS = "".join(map(chr, range(0x21)))


def text_of(value: ConfigValue) -> str | None:
    """Return a value's text in Java's format, as in DescribeConfigs."""
    if value is None:
        return None
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, tuple):
        return ",".join(value)
    if isinstance(value, float):
        return _java_double(value)
    return str(value)


def path_wish(value: ConfigValue) -> str | None:
    """Return why a path or a list of paths is invalid, or None."""
    paths = value if isinstance(value, tuple) else (str(value),)
    return (
        ("a path must not contain a NUL character") if any("\0" in path for path in paths) else None
    )


def short_wish(value: ConfigValue) -> str | None:
    """Return why a text is too long for a record, or None."""
    if len(str(value).encode()) <= LONGEST_STRING_BYTES:
        return None
    return f"it must not be longer than {LONGEST_STRING_BYTES} bytes"


def counts_by_host(text: str) -> dict[str, int]:
    """Parse `host:count, …` (max.connections.per.ip.overrides), split at the last colon.

    Raises:
        ValueError: An item is invalid.

    Source: Kafka's SocketServerConfigs and Utils.validHostPattern; Java's trim.
    """
    counts: dict[str, int] = {}
    for item in filter(None, (part.strip() for part in text.split(","))):
        host, colon, count = (part.strip(_JAVA_BLANKS) for part in item.rpartition(":"))
        if not colon or not _HOST.fullmatch(host) or not _WHOLE_NUMBER.fullmatch(count):
            raise ValueError(item)
        number = int(count)
        if not -(1 << 31) <= number < 1 << 31:
            raise ValueError(item)
        counts[host] = number
    return counts


def _java_double(value: float) -> str:
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        return repr(value)
    mantissa, e, exponent = repr(value).partition("e")
    if e:  # the default of log.cleaner.io.max.bytes.per.second
        return f"{mantissa}{'' if '.' in mantissa else '.0'}E{int(exponent)}"
    from decimal import Decimal  # noqa: PLC0415 - for DescribeConfigs

    shortest = Decimal(repr(abs(value))).normalize()
    digits = "".join(str(digit) for digit in shortest.as_tuple().digits)
    sign = "-" if value < 0 else ""
    return f"{sign}{digits[0]}.{digits[1:] or '0'}E{shortest.adjusted()}"
