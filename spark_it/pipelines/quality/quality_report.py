"""The quality report as a table with bars and as JSON lines."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from wirebroker.pipelines.quality.group_lag import PartitionLag
    from wirebroker.pipelines.quality.quality import PartitionQuality

_BAR_CHARACTERS: Final = 30
_TITLES: Final = (
    *("partition", "records", "bytes", "offsets", "gaps", "resent", "keys", "again", "rate/s"),
    "share of records",
)


def table_of_quality(
    found: Sequence[PartitionQuality], lags: Sequence[PartitionLag]
) -> Iterator[str]:
    """Return the report's lines: each topic's skew, table and lag."""
    for topic in dict.fromkeys(each.topic for each in found):
        mine = [each for each in found if each.topic == topic]
        yield f"{topic}: {sum(each.records for each in mine)} records, skew {skew_of(mine):.2f}"
        yield from _aligned([_TITLES, *(_cells(each, mine) for each in mine)])
        for behind in lags:
            if behind.topic == topic:
                yield f"  group {behind.group}, partition {behind.partition}: lag {behind.lag}"
        yield ""


def lines_of_quality(
    found: Sequence[PartitionQuality], lags: Sequence[PartitionLag]
) -> Iterator[str]:
    """Return a line of JSON for each partition, topic and lag."""
    for each in found:
        more = {"gaps": each.gaps, "repeated_keys": each.keyed - each.keys, "rate": each.rate}
        yield json.dumps({"kind": "partition", **each._asdict(), **more})
    for topic in dict.fromkeys(each.topic for each in found):
        skew = skew_of([each for each in found if each.topic == topic])
        yield json.dumps({"kind": "topic", "topic": topic, "skew": skew})
    for behind in lags:
        yield json.dumps({"kind": "lag", **behind._asdict(), "lag": behind.lag})


def skew_of(partitions: Sequence[PartitionQuality]) -> float:
    """Return the largest partition's records divided by the mean; 0 without records."""
    total = sum(each.records for each in partitions)
    return max(each.records for each in partitions) * len(partitions) / total if total else 0.0


def _cells(one: PartitionQuality, all_of_topic: Sequence[PartitionQuality]) -> tuple[str, ...]:
    most = max(each.records for each in all_of_topic) or 1
    return (
        f"{one.partition}",
        f"{one.records}",
        f"{one.value_bytes}",
        f"{one.first_offset}-{one.last_offset}" if one.records else "-",
        f"{one.gaps}",
        f"{one.resent}",
        f"{one.keys}",
        f"{one.keyed - one.keys}",
        f"{one.rate:,.1f}",
        "#" * round(one.records * _BAR_CHARACTERS / most),
    )


def _aligned(rows: Sequence[tuple[str, ...]]) -> Iterator[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for *numbers, bar in rows:
        cells = (cell.rjust(width) for cell, width in zip(numbers, widths, strict=False))
        yield "  " + "  ".join((*cells, bar)).rstrip()
