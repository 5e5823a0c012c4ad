"""An SVG of the quality report: records of each partition, and lag of groups."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final
from xml.sax.saxutils import escape

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from wirebroker.pipelines.quality.group_lag import PartitionLag
    from wirebroker.pipelines.quality.quality import PartitionQuality

_WIDTH: Final = 640
_LEFT: Final = 150  # where bars begin
_ROOM: Final = 350  # for the longest bar
_LINE: Final = 20
_GOOD, _BAD, _LAG = "#4878a8", "#c44e52", "#8c8c8c"
_STYLE: Final = "font-family='sans-serif' font-size='12'"


def picture_of_quality(
    found: Sequence[PartitionQuality], lags: Sequence[PartitionLag]
) -> Iterator[str]:
    """Return an SVG's lines: a bar for each partition, red if it has resent records.

    Gray bars show the lag of groups on the same scale.
    """
    bars = list(_bars(found, lags))
    height = (len(bars) + 1) * _LINE
    yield (
        f"<svg xmlns='http://www.w3.org/2000/svg' width='{_WIDTH}' height='{height}' {_STYLE}>"
        f"<rect width='{_WIDTH}' height='{height}' fill='white'/>"
    )
    for line, (label, share, colour, told) in enumerate(bars, 1):
        y = line * _LINE
        if not colour:
            yield f"<text x='8' y='{y}' font-weight='bold'>{escape(label)}</text>"
            continue
        width = round(share * _ROOM)
        yield f"<text x='{_LEFT - 8}' y='{y}' text-anchor='end'>{escape(label)}</text>"
        yield f"<rect x='{_LEFT}' y='{y - 11}' width='{width}' height='13' fill='{colour}'/>"
        yield f"<text x='{_LEFT + width + 6}' y='{y}'>{escape(told)}</text>"
    yield "</svg>"


def _bars(
    found: Sequence[PartitionQuality], lags: Sequence[PartitionLag]
) -> Iterator[tuple[str, float, str, str]]:
    """Yield each line's label, share of the longest, color ("" for a heading) and text."""
    for topic in dict.fromkeys(each.topic for each in found):
        mine = [each for each in found if each.topic == topic]
        behind = [each for each in lags if each.topic == topic]
        most = max([*(each.records for each in mine), *(each.lag for each in behind), 1])
        yield f"{topic}: records of each partition", 0, "", ""
        for one in mine:
            more = [f"{one.records:,}"]
            more += [f"{one.gaps:,} gaps"] if one.gaps else []
            more += [f"{one.resent:,} resent"] if one.resent else []
            colour = _BAD if one.resent else _GOOD
            yield f"partition {one.partition}", one.records / most, colour, ", ".join(more)
        for each in behind:
            label = f"{each.group}, {each.partition}"
            yield _cut(label), each.lag / most, _LAG, f"{each.lag:,} behind"


def _cut(label: str) -> str:
    return label if len(label) <= 20 else f"…{label[-19:]}"
