"""Tables of Kafka scripts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_MIN_WIDTH: Final = 15


def tabbed(titles: Sequence[str], rows: Sequence[Sequence[object]]) -> list[str]:
    """Return lines, titles first, with a tab after each column."""
    texts = [list(titles), *([str(value) for value in row] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*texts, strict=True)]
    return [
        "".join(f"{text.ljust(width)}\t" for text, width in zip(row, widths, strict=True))
        for row in texts
    ]


def padded(rows: Sequence[Sequence[object]], min_widths: Sequence[int]) -> list[str]:
    """Return rows, titles first, with columns of at least these widths."""
    texts = [["null" if value is None else str(value) for value in row] for row in rows]
    widths = [
        max(width, *map(len, column))
        for width, column in zip(min_widths, zip(*texts, strict=True), strict=True)
    ]
    return [
        " ".join(text.ljust(width) for text, width in zip(row, widths, strict=True))
        for row in texts
    ]


def aligned(rows: Sequence[Sequence[object]], widths: Sequence[int]) -> list[str]:
    """Return rows, titles first, each cell padded to its width; None is a dash."""
    return [
        " ".join(
            ("-" if cell is None else str(cell)).ljust(width)
            for cell, width in zip(row, widths, strict=True)
        )
        for row in rows
    ]


def width_of(texts: Iterable[str], least: int = _MIN_WIDTH) -> int:
    """Return the width of a column, at least this one."""
    return max(least, *map(len, texts), 0)
