"""The removal of the files of segments that have left a log.

The caller renames the files oldest segment first, and calls `Segment.remove` after
file.delete.delay.ms. Before the renames a crash brings the segments back, unless the new log start
is in its checkpoint.

Source: Kafka's UnifiedLog.deleteSegments, LocalLog.removeAndDeleteSegments.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from wirebroker.storage.log.log import Log
    from wirebroker.storage.log.segment.segment import Segment


def set_aside_segment(log: Log, segment: Segment) -> None:
    """Rename the files of a removed segment to `….deleted`.

    Raises:
        OSError: The disk failed; a restart may find the segment again.
    """
    log.producer_state.snapshots.set_aside(segment.base_offset)
    segment.mark_deleted()
