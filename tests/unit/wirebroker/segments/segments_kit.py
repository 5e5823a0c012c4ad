"""A log directory with one partition, and shortcuts to read it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.support.records.column_rows import rows_of
from wirebroker.segments.log_directories import LogDirectories
from wirebroker.segments.offset_ranges import RowRange, batch_ranges
from wirebroker.segments.options import parse_options
from wirebroker.segments.row_scan import ScanOptions, scan_rows

if TYPE_CHECKING:
    from pathlib import Path

    from wirebroker.segments.options import SegmentOptions


def options_for(directory: Path, **overrides: str) -> SegmentOptions:
    if "isolation" in overrides:
        overrides["kafka.isolation.level"] = overrides.pop("isolation")
    options = {"path": str(directory), "subscribe": "topic"} | overrides
    return parse_options(options, is_stream=False)


def ranges_for(options: SegmentOptions) -> list[RowRange]:
    return batch_ranges(LogDirectories(options.directories), options)


def wish_for(options: SegmentOptions, **overrides: Any) -> ScanOptions:
    fields = {
        "keys": True,
        "values": True,
        "headers": True,
        "includes_control": options.includes_control,
        "is_committed": options.is_committed,
        "fail_on_data_loss": options.fail_on_data_loss,
    }
    return ScanOptions(**fields | overrides)


def offsets_in(ranges: list[RowRange], scan_options: ScanOptions) -> list[int]:
    return [
        row[0]
        for row_range in ranges
        for rows in scan_rows(row_range, scan_options)
        for row in rows_of(rows.columns)
    ]


def offsets_of(directory: Path, **overrides: str) -> list[int]:
    options = options_for(directory, **overrides)
    return offsets_in(ranges_for(options), wish_for(options))
