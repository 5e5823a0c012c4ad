"""Letting go of a log's oldest segments.

    the log's start moves, the segments leave the list     at once; nobody finds them any more
    files and snapshot are renamed to `.deleted`           segment by segment, oldest first
    files are removed                                      after file.delete.delay.ms

A crash before the renames brings the segments back, one after them leaves names that the next start
removes (log_recovery.py). Slices in flight stay readable to their end.

Source: Kafka's UnifiedLog.deleteSegments, LocalLog.removeAndDeleteSegments.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from wirebroker.storage.retention import expired_count

if TYPE_CHECKING:
    from wirebroker.storage.log import Log
    from wirebroker.storage.segment import Segment
    from wirebroker.storage.wall_clocks import Moment


def delete_old_segments(log: Log, moment: Moment) -> list[Segment]:
    """Do what Log.delete_old_segments says."""
    segments = log.segments
    count = expired_count(
        list(segments),
        log.settings,
        moment,
        log_start_offset=log.log_start_offset,
        high_watermark=log.high_watermark,
        log_end_offset=log.log_end_offset,
    )
    if not count:
        return []
    if count == len(segments):
        log.roll(now_ms=moment.now_ms)
    new_start = segments[count].base_offset
    if new_start > log.log_start_offset:
        log.increment_log_start_offset(new_start)
    log.mark_flushed(new_start)  # what is gone need not be flushed any more
    log.mark_touched()
    return segments.remove_before(new_start)


def set_aside_segment(log: Log, segment: Segment) -> None:
    """Give the files of a segment that has left the log their last names, `….deleted`.

    Raises:
        OSError: The disk failed; a restart may find the segment again.
    """
    log.producer_state.set_aside_snapshot(segment.base_offset)
    segment.mark_deleted()
