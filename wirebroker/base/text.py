"""Words and names in text for people."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


def camel_case(name: str) -> str:
    """Convert OFFSET_FETCH to OffsetFetch."""
    return "".join(word.capitalize() for word in name.split("_"))


def lower_camel_case(name: str) -> str:
    """Convert producer_id to producerId."""
    first, *others = name.split("_")
    return first + "".join(word.capitalize() for word in others)


def counted(count: int, noun: str) -> str:
    """Return a count with its noun: 1 record, 2 records, 3 entries."""
    if count == 1:
        return f"1 {noun}"
    if noun.endswith("y") and noun[-2] not in "aeiou":
        return f"{count} {noun[:-1]}ies"
    return f"{count} {noun}{'es' if noun.endswith(('s', 'x', 'ch', 'sh')) else 's'}"


def few_of(names: Sequence[str], max_count: int) -> str:
    """Return the first names, separated by commas, and the number of others."""
    listed = ", ".join(names[:max_count])
    return f"{listed} and {len(names) - max_count} more" if len(names) > max_count else listed
