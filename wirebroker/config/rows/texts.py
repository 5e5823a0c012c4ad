"""Values as texts: shown as Java shows them, and read where a text has a form of its own.

A leaf: imports nothing of ours.
"""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from wirebroker.config.rows.row import ConfigValue

# The longest string of a request, a response or a record.
LONGEST_STRING_BYTES: Final = (1 << 15) - 1
# Java's Integer.parseInt takes the digits of all scripts, as Python's int.
_WHOLE_NUMBER = re.compile(r"[+-]?\d+")
_HOST = re.compile(r"[0-9a-zA-Z\-%._:]*")
# What Java's String.trim removes: the blank and all control characters before it.
_JAVA_BLANKS = "".join(map(chr, range(0x21)))


def text_of(value: ConfigValue) -> str | None:
    """Return a value's text as DescribeConfigs shows it (Java's forms); None for an unset one."""
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
    """Return what a path, or each of a list of paths, must be; None if it is."""
    paths = value if isinstance(value, tuple) else (str(value),)
    return "no path has a NUL character" if any("\0" in path for path in paths) else None


def short_wish(value: ConfigValue) -> str | None:
    """Return what a text of a record must be; None if it is."""
    if len(str(value).encode()) <= LONGEST_STRING_BYTES:
        return None
    return f"it must be no longer than {LONGEST_STRING_BYTES} bytes"


def counts_by_host(text: str) -> dict[str, int]:
    """Read `host:count, …` (max.connections.per.ip.overrides); the last colon counts.

    Raises:
        ValueError: An item has no colon, a host has a character that no host has, or a count is
            no 32-bit integer.

    Source: Kafka's SocketServerConfigs and Utils.validHostPattern; Java's trim.
    """
    counts: dict[str, int] = {}
    for item in filter(None, (part.strip() for part in text.split(","))):
        host, colon, count = (each.strip(_JAVA_BLANKS) for each in item.rpartition(":"))
        if not colon or not _HOST.fullmatch(host) or not _WHOLE_NUMBER.fullmatch(count):
            raise ValueError(item)
        number = int(count)
        if not -(1 << 31) <= number < 1 << 31:
            raise ValueError(item)
        counts[host] = number
    return counts


def _java_double(value: float) -> str:
    """Return a double as Java's Double.toString does."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        return repr(value)
    mantissa, e, exponent = repr(value).partition("e")
    if e:  # the default of log.cleaner.io.max.bytes.per.second, at every start
        return f"{mantissa}{'' if '.' in mantissa else '.0'}E{int(exponent)}"
    from decimal import Decimal  # noqa: PLC0415 - DescribeConfigs alone shows such values

    shortest = Decimal(repr(abs(value))).normalize()
    digits = "".join(str(digit) for digit in shortest.as_tuple().digits)
    sign = "-" if value < 0 else ""
    return f"{sign}{digits[0]}.{digits[1:] or '0'}E{shortest.adjusted()}"
