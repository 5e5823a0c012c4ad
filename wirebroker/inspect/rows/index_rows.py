"""The three indexes of a segment and the producer snapshot as rows, read page by page."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any, NamedTuple

from wirebroker.inspect.rows.rows import damage
from wirebroker.storage.log.index.offset_index import OFFSET_ENTRY
from wirebroker.storage.log.index.time_index import TIME_ENTRY
from wirebroker.storage.log.producers.producer_snapshot import CorruptSnapshotError, decode_snapshot

if TYPE_CHECKING:
    from collections.abc import Iterator

    from wirebroker.inspect.rows.rows import OffsetRange, Row
    from wirebroker.storage.files import DataFile

# Entries have 8 to 34 bytes.
_PAGE_ENTRIES = 4096
# int16 version, int64 producer id, first offset, last offset, last stable offset (KIP-98).
ABORTED_ENTRY = struct.Struct(">hqqqq")


class Entry(NamedTuple):
    """An entry of an index and its position."""

    position: int
    values: tuple[Any, ...]


def entries(file: DataFile, layout: struct.Struct) -> Iterator[Entry]:
    """Yield complete entries, including Kafka's preallocated zeros."""
    size = file.size() // layout.size * layout.size
    page_bytes = layout.size * _PAGE_ENTRIES
    for start in range(0, size, page_bytes):
        page = file.read_at(start, min(page_bytes, size - start))
        for number, values in enumerate(layout.iter_unpack(page)):
            yield Entry(start + number * layout.size, values)


def filled_entries(file: DataFile, layout: struct.Struct) -> Iterator[Entry]:
    """Yield the entries before preallocated zeros."""
    zeros = (0,) * len(layout.unpack(bytes(layout.size)))
    for entry in entries(file, layout):
        if entry.values == zeros:
            return
        yield entry


def filler(file: DataFile, layout: struct.Struct, end: int) -> Iterator[Row]:
    """Check for zeros only from `end` on, and for complete entries."""
    size = file.size()
    complete_size = size - size % layout.size
    for start in range(end, complete_size, 1 << 20):
        data = file.read_at(start, min(1 << 20, complete_size - start))
        stripped = data.lstrip(b"\0")
        if stripped:
            yield damage("an entry of zeros precedes others", start + len(data) - len(stripped))
            return
    if complete_size < size:
        yield damage(f"{size} bytes are not a multiple of {layout.size}", complete_size)


def offset_index_rows(file: DataFile, base_offset: int, offset_range: OffsetRange) -> Iterator[Row]:
    """Yield `.index` entries."""
    end = 0
    for position, (relative, log_position) in filled_entries(file, OFFSET_ENTRY):
        end = position + OFFSET_ENTRY.size
        if offset_range.has(base_offset + relative):
            yield {
                "type": "offset_index_entry",
                "offset": base_offset + relative,
                "position": log_position,
            }
    yield from filler(file, OFFSET_ENTRY, end)


def time_index_rows(file: DataFile, base_offset: int, offset_range: OffsetRange) -> Iterator[Row]:
    """Yield `.timeindex` entries."""
    end = 0
    for position, (timestamp, relative) in filled_entries(file, TIME_ENTRY):
        end = position + TIME_ENTRY.size
        if offset_range.has(base_offset + relative):
            yield {
                "type": "time_index_entry",
                "timestamp": timestamp,
                "offset": base_offset + relative,
            }
    yield from filler(file, TIME_ENTRY, end)


def transaction_index_rows(file: DataFile, offset_range: OffsetRange) -> Iterator[Row]:
    """Yield `.txnindex` entries."""
    for _, (version, producer_id, first, last, stable) in entries(file, ABORTED_ENTRY):
        if offset_range.has(last):
            yield {
                "type": "aborted_transaction",
                "version": version,
                "producer_id": producer_id,
                "first_offset": first,
                "last_offset": last,
                "last_stable_offset": stable,
            }
    size = file.size()
    if size % ABORTED_ENTRY.size:
        position = size - size % ABORTED_ENTRY.size
        yield damage(f"{size} bytes are not a multiple of {ABORTED_ENTRY.size}", position)


def producer_snapshot_rows(content: bytes) -> Iterator[Row]:
    """Yield `.snapshot` producers."""
    try:
        for row in decode_snapshot(content):
            yield {"type": "producer", **row._asdict()}
    except CorruptSnapshotError as error:
        yield damage(str(error), 0)
