"""The choice of a log's expired segments.

Only the oldest segments expire, and none that reaches beyond the high watermark. In this order:

    below the start    the next segment begins at or below log_start_offset
    retention.bytes    the rest would still be as large without it
    retention.ms       its newest record is older

The last two apply only if cleanup.policy contains delete. As in Kafka, the largest timestamp
determines the age, but wrong clocks must neither delete fresh records nor keep old ones forever:

- If the wall clock has jumped since the start, earlier clocks count as well (wall_clocks.py).
- If the largest timestamp is in the future by every clock, and later than the file's last change by
  more than message.timestamp.after.max.ms, the last change determines the age. If the change is in
  the future as well, the age is the process's uptime.

Source: Kafka's UnifiedLog.deleteOldSegments, deletableSegments.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol

# Per call, because reading a segment's age may open a file.
MOST_SEGMENTS: Final = 64

if TYPE_CHECKING:
    from collections.abc import Sequence

    from wirebroker.config.rows.topic import TopicSettings
    from wirebroker.storage.log.wall_clocks import ClockReading


class RetainedSegment(Protocol):
    """The properties of a segment that retention uses."""

    @property
    def base_offset(self) -> int:
        """The lower bound of its offsets."""
        ...

    @property
    def size(self) -> int:
        """See Segment."""
        ...

    def largest_timestamp(self) -> int:
        """See Segment."""
        ...

    def modified_ms(self) -> int:
        """See Segment."""
        ...


def expired_count(
    segments: Sequence[RetainedSegment],
    settings: TopicSettings,
    clocks: ClockReading,
    *,
    log_start_offset: int,
    high_watermark: int,
    log_end_offset: int,
) -> int:
    """Return the number of oldest segments that have expired, at most MOST_SEGMENTS.

    If all have, the last one is not empty and must be rolled first.
    """
    ends = [segment.base_offset for segment in segments[1:]] + [log_end_offset]
    max_count = sum(end <= high_watermark for end in ends)
    if max_count == len(ends) and not segments[-1].size:
        max_count -= 1
    max_count = min(max_count, MOST_SEGMENTS)
    count = min(max_count, sum(end <= log_start_offset for end in ends[:-1]))
    if not settings.is_deleted_by_retention:
        return count
    if settings.retention_bytes >= 0:
        sizes = [segment.size for segment in segments[count:]]
        excess = sum(sizes) - settings.retention_bytes
        for size in sizes[: max_count - count]:
            excess -= size
            if excess < 0:
                break
            count += 1
    if settings.retention_ms >= 0:
        while count < max_count and _is_old(segments[count], settings, clocks):
            count += 1
    return count


def _is_old(segment: RetainedSegment, settings: TopicSettings, clocks: ClockReading) -> bool:
    retention_ms = settings.retention_ms
    timestamp = segment.largest_timestamp()
    age = clocks.age_ms(timestamp, kept_ms=retention_ms)
    if age < 0:
        modified_ms = segment.modified_ms()
        if timestamp - modified_ms > settings.message_timestamp_after_max_ms:
            age = clocks.age_ms(modified_ms, kept_ms=retention_ms)
            if age < 0:
                age = clocks.uptime_ms
    return age > retention_ms
