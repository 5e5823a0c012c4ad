"""The last stable offset of a log on disk: below it, every transaction has ended.

The newest producer snapshot at or below the high watermark lists the transactions open there; later
ones are found in batch headers. Markers above the high watermark are ignored.

Source: KIP-98; Kafka's UnifiedLog.fetchLastStableOffsetMetadata.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from wirebroker.codecs.records.batch import iterate_records
from wirebroker.codecs.records.control import MAX_CONTROL_BYTES, ControlType, control_type
from wirebroker.storage.log.producers.producer_snapshot import CorruptSnapshotError, decode_snapshot

if TYPE_CHECKING:
    from wirebroker.segments.log_on_disk import LogOnDisk

_ENDS = frozenset({ControlType.ABORT, ControlType.COMMIT})


def last_stable_offset(log: LogOnDisk, high_watermark: int) -> int:
    """Return the last stable offset, at most the high watermark; raise as `LogOnDisk.headers`."""
    from_offset, ongoing = _at_snapshot(log, high_watermark)
    for segment, position, header in log.headers(from_offset, high_watermark):
        if header.last_offset < from_offset or header.producer_id < 0:
            continue
        if header.is_control:
            batch = segment.log.read_at(position, header.size)
            records = iterate_records(batch, header, max_bytes=MAX_CONTROL_BYTES)
            if any(control_type(record.key) in _ENDS for record in records):
                ongoing.pop(header.producer_id, None)
        elif header.is_transactional:
            ongoing.setdefault(header.producer_id, header.base_offset)
    return min(ongoing.values(), default=high_watermark)


def _at_snapshot(log: LogOnDisk, high_watermark: int) -> tuple[int, dict[int, int]]:
    """Return a snapshot's offset, and the first offsets of its open transactions by producer id."""
    for offset in reversed(log.snapshots):
        if log.start_offset <= offset <= high_watermark:
            content = log.snapshot(offset)
            try:
                rows = decode_snapshot(content) if content is not None else None
            except CorruptSnapshotError:
                rows = None
            if rows is not None:
                first_offsets = {row.producer_id: row.current_txn_first_offset for row in rows}
                return offset, {
                    producer_id: first for producer_id, first in first_offsets.items() if first >= 0
                }
    return log.start_offset, {}
