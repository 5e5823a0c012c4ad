"""Required numbers, and lists of brokers, in the fields of changes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from wirebroker.console.changes.change import ChangeError
from wirebroker.console.changes.field_values import number_of

if TYPE_CHECKING:
    from collections.abc import Mapping


def required_number(values: Mapping[str, str], field: str, least: int, most: int) -> int:
    """Return a whole number in a range, or raise ChangeError."""
    number = number_of(values, field, least, most)
    if number is None:
        raise ChangeError(f"write a number from {least:,} to {most:,}", field)
    return number


def broker_list(values: Mapping[str, str], field: str) -> list[int]:
    """Return the brokers of a list such as `1,2,3`, or raise ChangeError."""
    words = [word.strip() for word in values[field].split(",")]
    if not all(word.isascii() and word.isdigit() and len(word) < 11 for word in words):
        raise ChangeError(f"{values[field][:40]!r} is not a list of brokers: write 1,2,3", field)
    brokers = [int(word) for word in words]
    twice = next((broker for broker in brokers if brokers.count(broker) > 1), None)
    if twice is not None:
        raise ChangeError(f"broker {twice} is in the list twice", field)
    return brokers
