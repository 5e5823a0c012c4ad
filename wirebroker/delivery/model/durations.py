"""Durations and times in headers and settings.

A duration is a number of milliseconds, a number with a unit (`250ms`, `5s`, `10m`, `2h`, `7d`), or
an ISO 8601 duration without years and months (`PT1H30M`, `P1DT12H`). A time is milliseconds since
1970, or ISO 8601 with a time zone, without leap seconds.
"""

from __future__ import annotations

import datetime
import re
from typing import Final

_UNITS_MS: Final = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_SIMPLE: Final = re.compile(r"(\d{1,15})(ms|s|m|h|d)?", re.ASCII)
_ISO: Final = re.compile(
    r"P(?:(\d{1,9})W)?(?:(\d{1,9})D)?(?:T(?:(\d{1,9})H)?(?:(\d{1,9})M)?(?:(\d{1,9})(?:\.(\d{1,9}))?S)?)?",
    re.ASCII,
)
_ISO_MS: Final = (604_800_000, 86_400_000, 3_600_000, 60_000, 1_000)
# The end of a day, which Python does not read.
_MIDNIGHT: Final = re.compile(r"(?<=[T ])24(?=(:?00){1,2}(?:[.,]0+)?(?:Z|[+-]|$))", re.ASCII)
_MILLISECONDS: Final = re.compile(r"\d{1,18}", re.ASCII)
# Longer texts are neither.
_MOST_CHARACTERS: Final = 64
_SHOWN_CHARACTERS: Final = 40


def parse_duration(text: str) -> int:
    """Return a duration in milliseconds.

    Raises:
        ValueError: The text is not a duration.
    """
    simple = _SIMPLE.fullmatch(text) if len(text) <= _MOST_CHARACTERS else None
    if simple is not None:
        return int(simple[1]) * _UNITS_MS[simple[2] or "ms"]
    iso = _ISO.fullmatch(text) if len(text) <= _MOST_CHARACTERS else None
    if iso is None or not any(iso.groups()) or text.endswith("T"):
        raise ValueError(
            f"{text[:_SHOWN_CHARACTERS]!r} is not a duration: write milliseconds, 5m or PT1H30M"
        )
    total = sum(
        int(count) * unit for count, unit in zip(iso.groups()[:5], _ISO_MS, strict=True) if count
    )
    return total + (int(iso[6].ljust(3, "0")[:3]) if iso[6] else 0)


def parse_time(text: str) -> int:
    """Return a time in milliseconds since 1970.

    Raises:
        ValueError: The text is not a time, or has no time zone.
    """
    if _MILLISECONDS.fullmatch(text):
        return int(text)
    shown = text[:_SHOWN_CHARACTERS]
    try:
        if len(text) > _MOST_CHARACTERS:
            raise ValueError  # noqa: TRY301 - the same message
        # RFC 3339 allows small letters.
        start, count = _MIDNIGHT.subn("00", text.upper())
        parsed = datetime.datetime.fromisoformat(start) + datetime.timedelta(days=count)
    except (ValueError, OverflowError):
        raise ValueError(
            f"{shown!r} is not a time: write milliseconds since 1970 or 2027-01-31T10:00:00Z"
        ) from None
    if parsed.tzinfo is None:
        raise ValueError(f"{shown!r} has no time zone: append Z or an offset such as +02:00")
    since_1970 = parsed - datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
    return since_1970 // datetime.timedelta(milliseconds=1)
