"""The rule for index entries (storage/README.md); segment_recovery.py repeats this code.

Source: Kafka's LogSegment.append and recover.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from wirebroker.codecs.records.batch import NO_TIMESTAMP
from wirebroker.codecs.records.layout import OVERHEAD_BYTES
from wirebroker.storage.log.index.offset_index import OFFSET_ENTRY
from wirebroker.storage.log.index.time_index import TIME_ENTRY

if TYPE_CHECKING:
    from collections.abc import Iterable

    from wirebroker.codecs.records.batch import BatchHeader


class IndexTail(NamedTuple):
    """A segment's indexing state after its last batch."""

    max_timestamp: int
    offset_of_max_timestamp: int  # of the first batch with it
    indexed_timestamp: int  # of the time index's last entry
    bytes_since_entry: int  # from the last indexed batch on


def empty_tail(base_offset: int) -> IndexTail:
    """Return the tail of a segment without batches."""
    return IndexTail(NO_TIMESTAMP, base_offset, NO_TIMESTAMP, 0)


def index_batches(
    tail: IndexTail,
    batches: Iterable[BatchHeader],
    *,
    position: int,
    base_offset: int,
    index_interval_bytes: int,
) -> tuple[IndexTail, int, bytes, bytes]:
    """Index batches; flat, because each append calls it.

    Returns:
        The tail, the position after the last batch, and entries for the offset and the time index.
    """
    max_timestamp, offset_of_max_timestamp, indexed_timestamp, bytes_since_entry = tail
    offset_entries = time_entries = b""
    for header in batches:
        if header.max_timestamp > max_timestamp:
            max_timestamp = header.max_timestamp
            offset_of_max_timestamp = header.base_offset + header.last_offset_delta
        if bytes_since_entry > index_interval_bytes:
            relative = header.base_offset + header.last_offset_delta - base_offset
            offset_entries += OFFSET_ENTRY.pack(relative, position)
            if max_timestamp > indexed_timestamp:
                relative = offset_of_max_timestamp - base_offset
                time_entries += TIME_ENTRY.pack(max_timestamp, relative)
                indexed_timestamp = max_timestamp
            bytes_since_entry = 0
        size = header.length + OVERHEAD_BYTES
        position += size
        bytes_since_entry += size
    fields = (max_timestamp, offset_of_max_timestamp, indexed_timestamp, bytes_since_entry)
    tail = tuple.__new__(IndexTail, fields)  # pyright: ignore[reportUnknownMemberType]
    return tail, position, offset_entries, time_entries
