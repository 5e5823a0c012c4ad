"""Values of fields that several kinds of changes have: numbers, times, partitions, lines.

Each function raises ChangeError, with the field's name, for a value of another form.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from wirebroker.base.durations import ago_ms
from wirebroker.client.topics.partition_choice import partition_numbers, topic_choice
from wirebroker.console.changes.change import ChangeError
from wirebroker.console.view.formats import iso_time, parsed_time

if TYPE_CHECKING:
    from collections.abc import Mapping

    from wirebroker.client.topics.partition_choice import TopicChoice

# Lines of a field.
_MOST_ENTERED: Final = 1000


def number_of(
    values: Mapping[str, str], field: str, least: int, most: int = (1 << 63) - 1
) -> int | None:
    """Return a whole number in a range, or None if the field is empty."""
    text = values[field].strip()
    if not text:
        return None
    digits = text.removeprefix("-")
    if not (digits.isascii() and digits.isdigit() and len(digits) < 20):
        raise ChangeError(f"{text[:40]!r} is not a whole number", field)
    if not least <= int(text) <= most:
        raise ChangeError(f"write a number from {least:,} to {most:,}", field)
    return int(text)


def time_of(values: Mapping[str, str], field: str, now_ms: int) -> int | None:
    """Return a time in ms since 1970, or None if the field is empty.

    It is entered as `2h` (ago), in UTC by ISO 8601, or as a number of ms.
    """
    text = values[field].strip()
    if not text:
        return None
    ago = ago_ms(text)
    if ago is not None:
        return max(0, now_ms - ago)
    try:
        return parsed_time(text)
    except ValueError as error:
        raise ChangeError(f"{error}, or 2h for two hours ago", field) from None


def time_flag(text: str) -> str:
    """Return a time that was entered as the command line takes it, with its time zone.

    Raises:
        ValueError: It is not a time.
    """
    return text if ago_ms(text) is not None else iso_time(parsed_time(text))


def partitions_of_field(values: Mapping[str, str], field: str) -> tuple[int, ...] | None:
    """Return partitions, or None for all if the field is empty."""
    if not values[field].strip():
        return None
    try:
        return partition_numbers(values[field])
    except ValueError as error:
        raise ChangeError(str(error), field) from None


def lines_of(values: Mapping[str, str], field: str) -> list[str]:
    """Return the lines that are not empty, stripped."""
    lines = [line.strip() for line in values[field].splitlines() if line.strip()]
    if len(lines) > _MOST_ENTERED:
        raise ChangeError(f"write at most {_MOST_ENTERED:,} lines, not {len(lines):,}", field)
    return lines


def choices_of(values: Mapping[str, str], field: str) -> list[TopicChoice]:
    """Return the topics and partitions of lines such as `orders` and `orders:0,1`."""
    try:
        return [topic_choice(line) for line in lines_of(values, field)]
    except ValueError as error:
        raise ChangeError(str(error), field) from None


def settings_of(values: Mapping[str, str], field: str) -> dict[str, str]:
    """Return the settings of lines such as `retention.ms=86400000`."""
    settings: dict[str, str] = {}
    for line in lines_of(values, field):
        name, equals, value = line.partition("=")
        name = name.strip()
        if not equals or not name:
            raise ChangeError(f"{line[:100]!r} is not a setting: write NAME=VALUE", field)
        if name in settings:
            raise ChangeError(f"{name[:100]} is set twice", field)
        settings[name] = value.strip()
    return settings
