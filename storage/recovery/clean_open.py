"""The opening of a log that was closed cleanly: hardly anything is read."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from wirebroker.codecs.errors import KafkaError
from wirebroker.storage.log.producer_rebuild import (
    rebuild_producer_state,
    replay_producers,
)
from wirebroker.storage.log.producers.producer_snapshot import SUFFIX as SNAPSHOT_SUFFIX
from wirebroker.storage.log.segment.segment_files import (
    INDEX_SUFFIX,
    TIME_INDEX_SUFFIX,
)

if TYPE_CHECKING:
    from wirebroker.storage.log.log import Log
    from wirebroker.storage.log.segment.segment import Segment

_log = logging.getLogger(__name__)


def open_clean(
    log: Log, names: set[str], *, recovery_point: int, start: int, now_ms: int
) -> int | None:
    """Open a log that was closed cleanly; return None if a clean stop would leave another state.

    Its end is known without reading if it is empty, or if there is a snapshot at the recovery
    point. The snapshot is written after the last batch, so a younger log file was changed by
    another program and is checked: nothing may be appended after unknown data.

    Producers in a snapshot at the log's start are forgotten, because their records are deleted, as
    in Kafka's ProducerStateManager.truncateAndReload.
    """
    active = log.segments.active
    state = log.producer_state
    for segment in log.segments:
        if lacks_index(segment, names):
            return None
    snapshots = state.snapshots.offsets
    if recovery_point in snapshots and recovery_point >= max(active.base_offset, start + 1):
        if snapshots[-1] == recovery_point:
            end = recovery_point
            if _is_younger_than_its_end(log, end) and _has_more(active, end):
                _log.warning(
                    "%s was changed after the clean stop at offset %d", active.log.path, end
                )
                return None

            def rebuild() -> None:
                rebuild_producer_state(log, end_offset=log.log_end_offset, now_ms=now_ms)

            state.open_at(end, rebuild, now_ms=now_ms)
            return end
    elif active.size == 0 and active.base_offset == 0:
        state.reset(0)
        return 0
    try:
        end = _next_offset(active)
    except KafkaError as error:
        _log.warning("%s is corrupt despite the clean stop: %s", active.log.path, error)
        return None
    state.reload(log_start_offset=start, end_offset=end, now_ms=now_ms)
    replay_producers(log, end)
    state.end_offset = end
    state.take_snapshot()
    return end


def _is_younger_than_its_end(log: Log, end_offset: int) -> bool:
    snapshot = f"{log.directory}/{end_offset:020d}{SNAPSHOT_SUFFIX}"
    return log.segments.active.modified_ms() >= log.files.modified_ms(snapshot)


def _has_more(segment: Segment, end_offset: int) -> bool:
    """Return whether anything, even damaged, follows the batch that ends at `end_offset`."""
    next_offset = segment.base_offset
    try:
        for _, header in segment.iterate_headers(segment.offset_index.last_entry().position):
            next_offset = header.last_offset + 1
    except KafkaError:
        return next_offset >= end_offset
    return next_offset > end_offset


def lacks_index(segment: Segment, names: set[str]) -> bool:
    """Return whether a segment with batches has no offset or time index among `names`."""
    name = f"{segment.base_offset:020d}"
    has_both = f"{name}{INDEX_SUFFIX}" in names and f"{name}{TIME_INDEX_SUFFIX}" in names
    return not has_both and segment.size > 0


def _next_offset(segment: Segment) -> int:
    next_offset = segment.base_offset
    for _, header in segment.iterate_headers(segment.offset_index.last_entry().position):
        next_offset = header.last_offset + 1
    return next_offset
