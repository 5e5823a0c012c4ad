"""The quality report as SVG."""

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
    partitions: Sequence[PartitionQuality], lags: Sequence[PartitionLag]
) -> Iterator[str]:
    """Return an SVG's lines: a bar for each partition's records, red if some were resent.

    Gray bars show the lag of groups on the same scale.
    """
    bars = list(_bars(partitions, lags))
    height = (len(bars) + 1) * _LINE
    yield (
        f"<svg xmlns='http://www.w3.org/2000/svg' width='{_WIDTH}' height='{height}' {_STYLE}>"
        f"<rect width='{_WIDTH}' height='{height}' fill='white'/>"
    )
    for line, (label, share, colour, text) in enumerate(bars, 1):
        y = line * _LINE
        if not colour:
            yield f"<text x='8' y='{y}' font-weight='bold'>{escape(label)}</text>"
            continue
        width = round(share * _ROOM)
        yield f"<text x='{_LEFT - 8}' y='{y}' text-anchor='end'>{escape(label)}</text>"
        yield f"<rect x='{_LEFT}' y='{y - 11}' width='{width}' height='13' fill='{colour}'/>"
        yield f"<text x='{_LEFT + width + 6}' y='{y}'>{escape(text)}</text>"
    yield "</svg>"


def _bars(
    partitions: Sequence[PartitionQuality], lags: Sequence[PartitionLag]
) -> Iterator[tuple[str, float, str, str]]:
    """Yield each line's label, share of the longest, color ("" for a heading) and text."""
    for topic in dict.fromkeys(partition.topic for partition in partitions):
        topic_partitions = [partition for partition in partitions if partition.topic == topic]
        topic_lags = [lag for lag in lags if lag.topic == topic]
        largest = max(
            [
                *(partition.records for partition in topic_partitions),
                *(lag.lag for lag in topic_lags),
                1,
            ]
        )
        yield f"{topic}: records of each partition", 0, "", ""
        for partition in topic_partitions:
            details = [f"{partition.records:,}"]
            details += [f"{partition.gaps:,} gaps"] if partition.gaps else []
            details += [f"{partition.resent:,} resent"] if partition.resent else []
            colour = _BAD if partition.resent else _GOOD
            yield (
                f"partition {partition.partition}",
                partition.records / largest,
                colour,
                ", ".join(details),
            )
        for lag in topic_lags:
            label = f"{lag.group}, {lag.partition}"
            yield _cut(label), lag.lag / largest, _LAG, f"{lag.lag:,} behind"


def _cut(label: str) -> str:
    return label if len(label) <= 20 else f"…{label[-19:]}"
