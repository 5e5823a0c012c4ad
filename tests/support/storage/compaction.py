"""Compaction without a scheduler, and logs to compact."""

from __future__ import annotations

from typing import TYPE_CHECKING

from wirebroker.codecs.records.batch import (
    build_batch,
    iterate_records,
    set_base_offset_and_epoch,
)
from wirebroker.codecs.records.control import EndTransactionMarker, encode_control_record
from wirebroker.storage.compaction.compaction import Compaction
from wirebroker.storage.compaction.map import OffsetMap
from wirebroker.storage.compaction.range import dirty_range, make_job
from wirebroker.storage.compaction.segment_swap import (
    begin_swap,
    enter_swapped,
    finish_swap,
    old_segments,
    set_aside_old,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from wirebroker.codecs.records.batch import BatchHeader
    from wirebroker.codecs.records.record import Record
    from wirebroker.storage.files import Files
    from wirebroker.storage.log.log import Log

MAP_BYTES = 1 << 20


def compact(
    log: Log,
    files: Files,
    checkpoint: int | None = None,
    *,
    now_ms: int,
    map_bytes: int = MAP_BYTES,
) -> int:
    """Run compaction with all swaps; return the new checkpoint."""
    dirty = dirty_range(log, checkpoint, now_ms=now_ms)
    job = make_job(log, dirty, now_ms=now_ms)
    offset_map = OffsetMap(map_bytes, load_factor=0.9, secret=bytes(16))
    compaction = Compaction(job, files, offset_map)
    for group in compaction.run():
        swap(log, files, group.base_offsets)
    return compaction.next_dirty_offset


def swap(log: Log, files: Files, base_offsets: tuple[int, ...]) -> None:
    old = old_segments(log, base_offsets)
    assert old is not None
    begin_swap(files, log.directory, base_offsets[0])
    files.sync_directory(log.directory)
    new = enter_swapped(log, files, old)
    for segment in old:
        set_aside_old(log, segment)
    files.sync_directory(log.directory)
    finish_swap(log, files, new)
    files.sync_directory(log.directory)
    for segment in old:
        segment.remove()


def batches_of(log: Log) -> Iterator[tuple[BatchHeader, bytes]]:
    for segment in log.segments:
        for _, header, batch in segment.iterate_batches():
            yield header, bytes(batch)


def records_of(log: Log) -> list[Record]:
    """Return all data records, aborted or not."""
    return [
        record
        for header, batch in batches_of(log)
        if not header.is_control
        for record in iterate_records(batch, header)
    ]


def committed_records_of(log: Log) -> list[Record]:
    """Return the records of a read_committed consumer from the log's start.

    As Kafka's consumer, it skips the listed aborted transactions, from their first offset to the
    producer's next abort marker.
    """
    aborted = [entry for segment in log.segments for entry in segment.transaction_index]
    aborted.sort(key=lambda entry: entry.first_offset)
    discarding: set[int] = set()
    records: list[Record] = []
    for header, batch in batches_of(log):
        while aborted and aborted[0].first_offset <= header.last_offset:
            discarding.add(aborted.pop(0).producer_id)
        if header.is_control:
            record = next(iter(iterate_records(batch, header)), None)
            if record is not None and record.key is not None and record.key[3] == 0:
                discarding.discard(header.producer_id)
        elif not (header.is_transactional and header.producer_id in discarding):
            records += iterate_records(batch, header)
    return records


def map_of(records: list[Record]) -> dict[bytes, tuple[int, bytes]]:
    """Return the result of a replay: offset and value of each live key."""
    latest: dict[bytes, tuple[int, bytes]] = {}
    for record in records:
        assert record.key is not None
        if record.value is None:
            latest.pop(record.key, None)
        else:
            latest[record.key] = (record.offset, record.value)
    return latest


def append(log: Log, batch: bytearray, *, now_ms: int) -> None:
    """Append and commit a batch unchanged except for its offset and epoch."""
    set_base_offset_and_epoch(batch, 0, log.log_end_offset, 0)
    log.append_as_follower(batch, now_ms=now_ms)
    log.set_high_watermark(log.log_end_offset)


def append_marker(
    log: Log, producer_id: int, *, is_commit: bool, now_ms: int, producer_epoch: int = 0
) -> None:
    key, value = encode_control_record(EndTransactionMarker(is_commit, 0))
    marker = build_batch(
        [(key, value, ())],
        timestamp_ms=now_ms,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        is_transactional=True,
        is_control=True,
    )
    append(log, marker, now_ms=now_ms)
