"""Numbers, sizes, durations and times as text. Unknown values (None) are a dash."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from math import inf
from typing import Final

UNKNOWN: Final = "–"  # noqa: RUF001 - an en dash, as in tables
_BINARY_UNITS: Final = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")
_DECIMAL_UNITS: Final = ("", "k", "M", "G", "T")
_KIB: Final = 1024
_SECOND_MS: Final = 1000
_MINUTE_S: Final = 60
_HOUR_S: Final = 3600
_DAY_S: Final = 86_400
_MOST_PERCENT: Final = 9999.0
# datetime ends with the year 9999.
_LAST_MS: Final = 253_402_300_799_999
# A first word that contains a dot, an underscore or a digit, or that ends with a colon.
_NAME_FIRST: Final = re.compile(r"\S*(?:[._]\w|\d|:(?:\s|$))")


def number(value: float | None) -> str:
    """Return a whole number with separators, such as 1,234,567."""
    return UNKNOWN if value is None else f"{value:,.0f}"


def compact(value: float | None) -> str:
    """Return a short number, such as 1.23 M; small ones are exact."""
    if value is None:
        return UNKNOWN
    scaled, unit = float(value), 0
    while abs(scaled) >= 999.5 and unit < len(_DECIMAL_UNITS) - 1:
        scaled, unit = scaled / 1000, unit + 1
    if unit == 0:
        is_small = abs(scaled) < 9.95 and scaled != int(scaled)
        return f"{scaled:.2g}" if is_small else f"{scaled:.0f}"
    return f"{_three_digits(scaled)} {_DECIMAL_UNITS[unit]}"


def size(value: float | None) -> str:
    """Return a size in binary units, such as 1.5 GiB."""
    if value is None:
        return UNKNOWN
    scaled, unit = float(value), 0
    while abs(scaled) >= 1000 and unit < len(_BINARY_UNITS) - 1:
        scaled, unit = scaled / _KIB, unit + 1
    return f"{scaled:.0f} B" if unit == 0 else f"{_three_digits(scaled)} {_BINARY_UNITS[unit]}"


def _three_digits(value: float) -> str:
    digits = 2 if abs(value) < 9.995 else 1 if abs(value) < 99.95 else 0
    text = f"{value:.{digits}f}"
    return text.rstrip("0").rstrip(".") if digits else text


def rate(value: float | None) -> str:
    """Return a rate of records, such as 1.2 k/s."""
    return UNKNOWN if value is None else f"{compact(value)}/s"


def size_rate(value: float | None) -> str:
    """Return a rate of bytes, such as 1.2 MiB/s."""
    return UNKNOWN if value is None else f"{size(value)}/s"


def signed_rate(value: float | None) -> str:
    """Return a change per second with its sign."""
    if value is None:
        return UNKNOWN
    return f"{'+' if value > 0 else '−' if value < 0 else ''}{compact(abs(value))}/s"  # noqa: RUF001


def duration(seconds: float | None) -> str:
    """Return a duration in at most two units, such as 2 h 5 min."""
    if seconds is None:
        return UNKNOWN
    if 0 < seconds < 1:
        return f"{seconds * 1000:.0f} ms"
    if seconds < _MINUTE_S:
        return f"{_three_digits(seconds) if seconds < 10 else round(seconds)} s"
    whole = int(seconds)
    for unit_s, name, next_s, next_name in (
        (_DAY_S, "d", _HOUR_S, "h"),
        (_HOUR_S, "h", _MINUTE_S, "min"),
        (_MINUTE_S, "min", 1, "s"),
    ):
        if whole >= unit_s:
            rest = whole % unit_s // next_s
            return f"{whole // unit_s} {name}" + (f" {rest} {next_name}" if rest else "")
    return f"{whole} s"


def duration_ms(milliseconds: float | None) -> str:
    """Return a duration, from milliseconds."""
    return duration(None if milliseconds is None else milliseconds / _SECOND_MS)


def iso_time(time_ms: int | None) -> str:
    """Return a time in UTC by ISO 8601, with milliseconds; other numbers as they are."""
    if time_ms is None:
        return UNKNOWN
    if not 0 <= time_ms <= _LAST_MS:
        return str(time_ms)
    moment = datetime.fromtimestamp(time_ms / _SECOND_MS, UTC)
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{time_ms % _SECOND_MS:03d}Z"


def plain_time(time_ms: int | None) -> str:
    """Return a time in UTC for people; scripts replace it by the viewer's time zone."""
    text = iso_time(time_ms)
    return text.replace("T", " ").removesuffix("Z") + " UTC" if text.endswith("Z") else text


def parsed_time(text: str) -> int:
    """Parse ISO 8601 (UTC unless it has an offset) or milliseconds since 1970.

    Raises:
        ValueError: It is neither.
    """
    stripped = text.strip()
    if stripped.isascii() and stripped.isdigit():
        return min(int(stripped[:20]), _LAST_MS)
    try:
        moment = datetime.fromisoformat(stripped)
    except ValueError:
        raise ValueError(
            f"{text[:40]!r} is not a time: write 2026-11-22T10:00 or milliseconds since 1970"
        ) from None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return max(0, int(moment.timestamp() * _SECOND_MS))


def sentence(text: str) -> str:
    """Return a clause as a sentence, with a capital letter and a full stop.

    A name at the beginning keeps its case: `retention.ms: …`, `orders-0: …`.
    """
    stripped = text.strip()
    if not stripped:
        return ""
    end = "" if stripped[-1] in ".!?" else "."
    start = stripped[0] if _NAME_FIRST.match(stripped) else stripped[0].upper()
    return f"{start}{stripped[1:]}{end}"


def share_of(part: float, limit: float) -> str | None:
    """Return a share of a limit such as 57 %, which may exceed 100 %; None without a limit."""
    if not 0 < limit < inf:
        return None
    return f"{min(_MOST_PERCENT, 100 * part / limit):,.0f} %"


def percent(part: float | None, whole: float | None) -> float | None:
    """Return a share in percent, 0 to 100, or None."""
    if part is None or not whole:
        return None
    return max(0.0, min(100.0, 100 * part / whole))
