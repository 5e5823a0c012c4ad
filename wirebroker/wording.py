"""Words and names that lines for people share.

A leaf.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


def camel_case(name: str) -> str:
    """Return the name of a constant as Kafka shows it: OFFSET_FETCH is OffsetFetch."""
    return "".join(word.capitalize() for word in name.split("_"))


def lower_camel_case(name: str) -> str:
    """Return the name of a field as Kafka shows it: producer_id is producerId."""
    first, *others = name.split("_")
    return first + "".join(word.capitalize() for word in others)


def few_of(names: Sequence[str], most: int) -> str:
    """Return names with commas between, and how many there are beyond the first `most`."""
    shown = ", ".join(names[:most])
    return f"{shown} and {len(names) - most} more" if len(names) > most else shown
