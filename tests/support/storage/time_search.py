"""Timestamp searches in a log, run at once; the broker runs them stepwise in a thread."""

from __future__ import annotations

from typing import TYPE_CHECKING

from wirebroker.base.clock import in_one_go
from wirebroker.storage.log.search_by_time import DetachedLog

if TYPE_CHECKING:
    from wirebroker.storage.log.log import Log
    from wirebroker.storage.log.time_search import TimestampedOffset


def offset_for_timestamp(
    log: Log, timestamp_ms: int, *, up_to_offset: int
) -> TimestampedOffset | None:
    """Find the first record at or after `timestamp_ms` below `up_to_offset`."""
    steps = DetachedLog.of(log).offset_for_timestamp(timestamp_ms, up_to_offset=up_to_offset)
    return in_one_go(steps)


def offset_of_max_timestamp(log: Log, *, up_to_offset: int) -> TimestampedOffset | None:
    """Find the first record with the largest timestamp, if it is below `up_to_offset`."""
    return in_one_go(DetachedLog.of(log).offset_of_max_timestamp(up_to_offset=up_to_offset))
