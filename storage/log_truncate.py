"""Cutting a log at its end: a follower that diverged, a log that starts anew elsewhere.

A power loss must not mix what was cut off with what comes after it. So whoever cuts below the
recovery point writes the lower one into its checkpoint before, and flushes the log afterwards,
before it appends anything.

Source: Kafka's UnifiedLog.truncateTo and truncateFullyAndStartAt.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from wirebroker.storage.log_recovery import rebuild_producer_state
from wirebroker.storage.segment import Segment

if TYPE_CHECKING:
    from wirebroker.storage.files import Files
    from wirebroker.storage.log import Log


def truncate_log(log: Log, offset: int, *, now_ms: int) -> bool:
    """Do what Log.truncate_to says."""
    assert offset >= 0, offset
    if offset >= log.log_end_offset:
        log.leader_epochs.truncate_from_end(log.log_end_offset)
        return False
    if offset < log.segments[0].base_offset:
        log.truncate_fully(offset, now_ms=now_ms)
        return True
    # The segment that begins exactly at `offset` stays, empty, unless it is not the first.
    _drop_segments(log, log.segments.remove_from(offset + 1))
    active = log.segments.active
    active.truncate_to(offset)
    if active.size == 0:
        active.created_ms = now_ms
    log.mark_touched()
    log.leader_epochs.truncate_from_end(offset)
    log.log_end_offset = offset
    log.log_start_offset = min(log.log_start_offset, offset)
    log.recovery_point = min(log.recovery_point, offset)
    log.set_high_watermark(log.high_watermark)
    rebuild_producer_state(log, end_offset=offset, now_ms=now_ms)
    return True


def truncate_log_fully(log: Log, files: Files, offset: int, *, now_ms: int) -> None:
    """Do what Log.truncate_fully says."""
    _drop_segments(log, log.segments.remove_from(0))
    segment = Segment(files, log.directory, offset, created_ms=now_ms)
    segment.create()
    log.segments.add(segment)
    log.mark_touched()
    log.leader_epochs.clear()
    for snapshot_offset in list(log.producer_state.snapshots):
        log.producer_state.delete_snapshot(snapshot_offset)
    log.producer_state.reset(offset)
    log.log_start_offset = log.log_end_offset = log.high_watermark = offset
    log.recovery_point = min(log.recovery_point, offset)


def _drop_segments(log: Log, segments: list[Segment]) -> None:
    # From the end, so that a crash in between leaves a prefix.
    for segment in reversed(segments):
        log.producer_state.delete_snapshot(segment.base_offset)
        segment.delete()
