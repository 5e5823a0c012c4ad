"""Tables of Kafka scripts: columns as wide as their contents, or wider."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

_MIN_WIDTH: Final = 15


def columns(rows: Sequence[Sequence[object]], *, min_width: int = _MIN_WIDTH) -> list[str]:
    """Return rows, titles first, as lines; None becomes a dash."""
    texts = [["-" if value is None else str(value) for value in row] for row in rows]
    widths = [max(min_width, *map(len, column)) for column in zip(*texts, strict=True)]
    return [
        " ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip()
        for row in texts
    ]
