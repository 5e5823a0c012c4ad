"""Durations as text, such as 2h."""

from __future__ import annotations

import re
from typing import Final

UNITS_MS: Final = {
    "s": 1_000,
    "m": 60_000,
    "h": 3_600_000,
    "d": 86_400_000,
    "w": 604_800_000,
}
_AGO: Final = re.compile(r"-?([0-9]{1,9})([smhdw])")


def ago_ms(text: str) -> int | None:
    """Return how long ago `2h` (or `-2h`) is, in ms; None for another text."""
    match = _AGO.fullmatch(text)
    return None if match is None else int(match[1]) * UNITS_MS[match[2]]
