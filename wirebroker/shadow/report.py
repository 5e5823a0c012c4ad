"""The final report of a shadow: a row for each partition, and remarks about faults."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from wirebroker.base.text import counted
from wirebroker.shadow.copied_partition import DONE, FOLLOWED

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from wirebroker.shadow.copied_partition import CopiedPartition

# Columns of the printed table.
COLUMNS: Final = (
    "topic",
    "partition",
    "log_start_offset",
    "log_end_offset",
    "high_watermark",
    "copied_records",
    "copied_bytes",
    "gap_count",
    "fault_count",
)


def summary(partitions: Iterable[CopiedPartition], *, cluster_id: str) -> dict[str, Any]:
    """Return the report as JSON."""
    rows = [
        partition.report()
        for partition in sorted(partitions, key=lambda partition: partition.place)
    ]
    return {
        "cluster_id": cluster_id,
        "partitions": rows,
        "copied_records": sum(row["copied_records"] for row in rows),
        "copied_bytes": sum(row["copied_bytes"] for row in rows),
        "gap_count": sum(row["gap_count"] for row in rows),
        "fault_count": sum(row["fault_count"] for row in rows),
        "ended_count": sum(not _is_fine(row["state"]) for row in rows),
    }


def remarks(report: dict[str, Any]) -> Iterator[str]:
    """Yield sentences about gaps, faults and totals."""
    for row in report["partitions"]:
        partition = f"{row['topic']}-{row['partition']}"
        if not _is_fine(row["state"]):
            yield f"{partition} stopped: {row['state']}"
        for first, end in row["gaps"]:
            yield f"{partition}: no records from {first} to {end - 1}"
        for fault in row["faults"]:
            yield f"{partition}: {fault}"
    yield (
        f"{counted(report['copied_records'], 'record')},"
        f" {counted(report['copied_bytes'], 'byte')} copied;"
        f" {counted(report['gap_count'], 'gap')}, {counted(report['fault_count'], 'fault')}"
    )


def is_fine(report: dict[str, Any]) -> bool:
    """Return whether everything was copied without faults; gaps do not count."""
    return not report["fault_count"] and not report["ended_count"]


def _is_fine(state: str) -> bool:
    return state in {FOLLOWED, DONE}
