"""The last names of a segment that a log has let go of.

    the log's start moves, the segments leave the list     at once; nobody finds them any more
    files and snapshot are renamed to `.deleted`           segment by segment, oldest first
    files are removed                                      after file.delete.delay.ms

A crash before the renames brings the segments back, unless the log's new start is written down; one
after them leaves names. The next start removes both (recovery/log_recovery.py). Slices in flight
stay readable to their end.

Source: Kafka's UnifiedLog.deleteSegments, LocalLog.removeAndDeleteSegments.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from wirebroker.storage.log.log import Log
    from wirebroker.storage.log.segment.segment import Segment


def set_aside_segment(log: Log, segment: Segment) -> None:
    """Give the files of a segment that has left the log their last names, `….deleted`.

    Raises:
        OSError: The disk failed; a restart may find the segment again.
    """
    log.producer_state.snapshots.set_aside(segment.base_offset)
    segment.mark_deleted()
