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
    partitions: Sequence[PartitionQuality], lags: Sequence[PartitionLag]
) -> Iterator[str]:
    """Return the report's lines: each topic's skew, table and lag."""
    for topic in dict.fromkeys(partition.topic for partition in partitions):
        topic_partitions = [partition for partition in partitions if partition.topic == topic]
        records = sum(partition.records for partition in topic_partitions)
        yield f"{topic}: {records} records, skew {skew_of(topic_partitions):.2f}"
        yield from _aligned(
            [_TITLES, *(_cells(partition, topic_partitions) for partition in topic_partitions)]
        )
        for lag in lags:
            if lag.topic == topic:
                yield f"  group {lag.group}, partition {lag.partition}: lag {lag.lag}"
        yield ""


def lines_of_quality(
    partitions: Sequence[PartitionQuality], lags: Sequence[PartitionLag]
) -> Iterator[str]:
    """Return a line of JSON for each partition, topic and lag."""
    for partition in partitions:
        derived = {
            "gaps": partition.gaps,
            "repeated_keys": partition.keyed - partition.keys,
            "rate": partition.rate,
        }
        yield json.dumps({"kind": "partition", **partition._asdict(), **derived})
    for topic in dict.fromkeys(partition.topic for partition in partitions):
        skew = skew_of([partition for partition in partitions if partition.topic == topic])
        yield json.dumps({"kind": "topic", "topic": topic, "skew": skew})
    for lag in lags:
        yield json.dumps({"kind": "lag", **lag._asdict(), "lag": lag.lag})


def skew_of(partitions: Sequence[PartitionQuality]) -> float:
    """Return the largest partition's records divided by the mean; 0 without records."""
    total = sum(partition.records for partition in partitions)
    return (
        max(partition.records for partition in partitions) * len(partitions) / total
        if total
        else 0.0
    )


def _cells(
    partition: PartitionQuality, all_of_topic: Sequence[PartitionQuality]
) -> tuple[str, ...]:
    largest = max(other.records for other in all_of_topic) or 1
    return (
        f"{partition.partition}",
        f"{partition.records}",
        f"{partition.value_bytes}",
        f"{partition.first_offset}-{partition.last_offset}" if partition.records else "-",
        f"{partition.gaps}",
        f"{partition.resent}",
        f"{partition.keys}",
        f"{partition.keyed - partition.keys}",
        f"{partition.rate:,.1f}",
        "#" * round(partition.records * _BAR_CHARACTERS / largest),
    )


def _aligned(rows: Sequence[tuple[str, ...]]) -> Iterator[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for *numbers, bar in rows:
        cells = (cell.rjust(width) for cell, width in zip(numbers, widths, strict=False))
        yield "  " + "  ".join((*cells, bar)).rstrip()
