"""Numbers in the fields of changes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from wirebroker.console.changes.change import ChangeError

if TYPE_CHECKING:
    from collections.abc import Mapping

# Longer texts are no numbers of the protocol; int() would take time for them.
_MOST_DIGITS: Final = 19


def number_of(values: Mapping[str, str], field: str, least: int, most: int) -> int:
    """Return a whole number within bounds, or raise ChangeError."""
    text = values[field]
    if not _is_number(text) or not least <= int(text) <= most:
        raise ChangeError(f"{text[:40]!r} is not a whole number from {least} to {most}", field)
    return int(text)


def optional_number(values: Mapping[str, str], field: str, least: int, most: int) -> int | None:
    """Return the number of a field; None if it is empty."""
    return number_of(values, field, least, most) if values[field] else None


def numbers_of(values: Mapping[str, str], field: str) -> list[int]:
    """Return the numbers of a list such as `1,2,3`, or raise ChangeError."""
    words = [word.strip() for word in values[field].split(",")]
    if not all(map(_is_number, words)):
        raise ChangeError(f"{values[field][:40]!r} is not a list of numbers: write 1,2,3", field)
    numbers = [int(word) for word in words]
    twice = next((number for number in numbers if numbers.count(number) > 1), None)
    if twice is not None:
        raise ChangeError(f"{twice} is in the list twice", field)
    return numbers


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= _MOST_DIGITS
