"""The dirty part of a log that may be compacted, and the input of its compaction.

The segment with the first of the following, and all later segments, are out of reach:
    the last stable offset            (later records are undecided or uncommitted)
    the active segment
    a record younger than min.compaction.lag.ms

Source: Kafka's LogCleanerManager.cleanableOffsets and maxCompactionDelay, LogToClean.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from wirebroker.config.rows.topic import LONG_MAX
from wirebroker.storage.compaction.compaction import CompactionJob
from wirebroker.storage.compaction.filter import ActiveProducer

if TYPE_CHECKING:
    from wirebroker.storage.log.log import Log
    from wirebroker.storage.log.segment.segment import Segment


class DirtyRange(NamedTuple):
    """The extent of a log's dirty part."""

    first_dirty_offset: int
    end_offset: int  # the first segment out of reach
    clean_bytes: int
    dirty_bytes: int
    is_overdue: bool  # max.compaction.lag.ms has passed
    is_checkpoint_wrong: bool  # it was outside of the log

    @property
    def dirty_ratio(self) -> float:
        """The share of dirty bytes; 0 for an empty log."""
        total = self.clean_bytes + self.dirty_bytes
        return self.dirty_bytes / total if total else 0.0

    def is_worth_it(self, min_cleanable_dirty_ratio: float) -> bool:
        """Return whether the log needs compaction now."""
        is_forced = self.is_overdue and self.dirty_bytes > 0
        return is_forced or self.dirty_ratio > min_cleanable_dirty_ratio


def dirty_range(log: Log, checkpoint: int | None, *, now_ms: int) -> DirtyRange:
    """Return the dirty range of a log; `checkpoint` is the offset below which it is clean.

    Raises:
        KafkaError, OSError: The first batch of a segment cannot be read.
    """
    first_dirty = log.log_start_offset if checkpoint is None else checkpoint
    is_wrong = not log.log_start_offset <= first_dirty <= log.log_end_offset
    if is_wrong:
        first_dirty = log.log_start_offset
    dirty = _closed_since(log, first_dirty)
    bound = min(log.last_stable_offset, log.segments.active.base_offset)
    lag_ms = log.settings.min_compaction_lag_ms
    if lag_ms > 0:
        young = (s.base_offset for s in dirty if s.largest_timestamp() > now_ms - lag_ms)
        bound = min(bound, next(young, bound))
    bound = max(first_dirty, bound)
    end = log.segments[max(0, log.segments.floor_index(bound))].base_offset
    reach = log.segments.since(min(first_dirty, end))
    return DirtyRange(
        first_dirty,
        end,
        sum(segment.size for segment in log.segments if segment.base_offset < first_dirty),
        sum(segment.size for segment in reach if segment.base_offset < end),
        _is_overdue(log, dirty, now_ms),
        is_wrong,
    )


def make_job(log: Log, dirty: DirtyRange, *, now_ms: int) -> CompactionJob:
    """Return a compaction's input; the log's producer state must be loaded."""
    settings = log.settings
    producers = {
        producer_id: ActiveProducer(
            entry.batches[-1].last_offset if entry.batches else -1, entry.producer_epoch
        )
        for producer_id, entry in log.producer_state.producers.items()
    }
    return CompactionJob(
        directory=log.directory,
        base_offsets=tuple(log.segments.base_offsets),
        first_dirty_offset=dirty.first_dirty_offset,
        end_offset=dirty.end_offset,
        producers=producers,
        now_ms=now_ms,
        segment_bytes=settings.segment_bytes,
        segment_index_bytes=settings.segment_index_bytes,
        index_interval_bytes=settings.index_interval_bytes,
        delete_retention_ms=settings.delete_retention_ms,
    )


def _closed_since(log: Log, offset: int) -> list[Segment]:
    active = log.segments.active
    return [segment for segment in log.segments.since(offset) if segment is not active]


def _is_overdue(log: Log, dirty: list[Segment], now_ms: int) -> bool:
    lag_ms = log.settings.max_compaction_lag_ms
    if lag_ms >= LONG_MAX:
        return False
    first_timestamps = (segment.first_batch_timestamp or 0 for segment in dirty)
    return any(0 < timestamp < now_ms - max(lag_ms, 0) for timestamp in first_timestamps)
