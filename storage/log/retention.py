"""Which segments of a log have had their time: a decision over segments that changes nothing.

Only the oldest segments go, and never one that reaches the high watermark or beyond. In this order:

    below the start    the next segment begins at or below log_start_offset
    retention.bytes    the rest would still be as large without it
    retention.ms       its newest record is older

The latter two only if cleanup.policy contains delete. The age is that of the largest timestamp, as
in Kafka, with two exceptions, so that clocks neither delete what is fresh nor keep all for ever:

- If the wall clock has jumped since the start, the clocks from before count too (wall_clocks.py).
- If the largest timestamp lies ahead of every clock, and ahead of the file's last change by more
  than message.timestamp.after.max.ms, it is the wrong one: the age is that of the last change. A
  change that itself lies ahead of every clock is taken for the start of the process.

Source: Kafka's UnifiedLog.deleteOldSegments and deletableSegments.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol

# At a time, since telling how old a segment is may open a file: 50 us each.
MOST_SEGMENTS: Final = 64

if TYPE_CHECKING:
    from collections.abc import Sequence

    from wirebroker.config.rows.topic import TopicSettings
    from wirebroker.storage.log.wall_clocks import ClockReading


class RetainedSegment(Protocol):
    """What is to be known of a segment."""

    @property
    def base_offset(self) -> int:
        """No record in it is below."""
        ...

    @property
    def size(self) -> int:
        """Bytes of batches."""
        ...

    def largest_timestamp(self) -> int:
        """Return the largest timestamp of a record, or when the file was changed if it has none."""
        ...

    def modified_ms(self) -> int:
        """Return when the file was changed, in milliseconds since 1970."""
        ...


def expired_count(
    segments: Sequence[RetainedSegment],
    settings: TopicSettings,
    moment: ClockReading,
    *,
    log_start_offset: int,
    high_watermark: int,
    log_end_offset: int,
) -> int:
    """Return how many segments from the oldest on may go, at most MOST_SEGMENTS.

    If it is all of them, the last one holds something and has to be rolled before.
    """
    ends = [segment.base_offset for segment in segments[1:]] + [log_end_offset]
    most = sum(end <= high_watermark for end in ends)
    if most == len(ends) and not segments[-1].size:
        most -= 1
    most = min(most, MOST_SEGMENTS)
    count = min(most, sum(end <= log_start_offset for end in ends[:-1]))
    if not settings.is_deleted_by_retention:
        return count
    if settings.retention_bytes >= 0:
        sizes = [segment.size for segment in segments[count:]]
        excess = sum(sizes) - settings.retention_bytes
        for size in sizes[: most - count]:
            excess -= size
            if excess < 0:
                break
            count += 1
    if settings.retention_ms >= 0:
        while count < most and _is_old(segments[count], settings, moment):
            count += 1
    return count


def _is_old(segment: RetainedSegment, settings: TopicSettings, moment: ClockReading) -> bool:
    kept_ms = settings.retention_ms
    timestamp = segment.largest_timestamp()
    age = moment.age_ms(timestamp, kept_ms=kept_ms)
    if age < 0:
        modified_ms = segment.modified_ms()
        if timestamp - modified_ms > settings.message_timestamp_after_max_ms:
            age = moment.age_ms(modified_ms, kept_ms=kept_ms)
            if age < 0:
                age = moment.uptime_ms
    return age > kept_ms
