"""The steps of a search by timestamp: time index, then batch headers, then the records of a batch.

Each step is short (a few headers, 1,000 records, or one decompressed piece), so that other work can
run in between; `is_brief` bounds an uninterrupted search. A batch is read only up to the result.

Source: Kafka's LogSegment.findOffsetByTimestamp, FileRecords.searchForTimestamp.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.codecs.records.codec import Codec
from wirebroker.codecs.records.compression import unpack
from wirebroker.codecs.records.layout import HEADER_BYTES, OVERHEAD_BYTES
from wirebroker.codecs.records.search import RecordSearch
from wirebroker.storage.log.segment.batch_scan import scan_headers
from wirebroker.storage.long_work import TakesLongError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from wirebroker.base.clock import Steps
    from wirebroker.codecs.records.batch import BatchHeader
    from wirebroker.storage.files import DataFile
    from wirebroker.storage.log.segment.segment import Segment

# Covers most batches.
_READ_BYTES: Final = 16 << 10
_HEADERS_AT_ONCE: Final = 100
# A brief search takes a millisecond.
_BRIEF_RECORDS: Final = 1_000
_BRIEF_BYTES: Final = 64 << 10


class TimestampedOffset(NamedTuple):
    """A record found by its timestamp."""

    timestamp: int
    offset: int
    leader_epoch: int


def first_at_or_after(
    segments: Iterable[Segment], timestamp: int, *, start_offset: int, is_brief: bool = False
) -> Steps[TimestampedOffset | None]:
    """Find the first record at or after `start_offset` whose timestamp is at least `timestamp`.

    Segments before the given ones must have none.

    Raises:
        KafkaError: INVALID_RECORD or CORRUPT_MESSAGE: a batch cannot be read.
        TakesLongError, ColdPagesError: `is_brief`, but the search is long or needs the disk.
    """
    for segment in segments:
        entry = segment.time_index.lookup(timestamp)
        offset_entry = segment.offset_index.lookup(max(entry.offset, start_offset))
        headers = scan_headers(
            segment.log, offset_entry.position, segment.size, may_block=not is_brief
        )
        for count, (position, header) in enumerate(headers, start=1):
            if header.max_timestamp >= timestamp and header.last_offset >= start_offset:
                match = yield from first_in_batch(
                    segment.log, position, header, timestamp, start_offset, is_brief
                )
                if match is not None:
                    return match
            if count % _HEADERS_AT_ONCE == 0:
                if is_brief:
                    raise TakesLongError
                yield
        yield
    return None


def first_with_max_timestamp(
    segment: Segment, *, is_brief: bool = False
) -> Steps[TimestampedOffset | None]:
    """Find the first record with a segment's largest timestamp; None if there is no record.

    Without timestamps the largest is -1, and the first record matches, as in Kafka.

    Raises:
        KafkaError, TakesLongError: As first_at_or_after.
    """
    timestamp = segment.max_timestamp
    offset_entry = segment.offset_index.lookup(segment.offset_of_max_timestamp)
    headers = scan_headers(segment.log, offset_entry.position, segment.size, may_block=not is_brief)
    for count, (position, header) in enumerate(headers, start=1):
        if header.max_timestamp == timestamp:
            return (
                yield from first_in_batch(
                    segment.log, position, header, timestamp, header.base_offset, is_brief
                )
            )
        if count % _HEADERS_AT_ONCE == 0:
            if is_brief:
                raise TakesLongError
            yield
    return None


def first_in_batch(  # noqa: PLR0917 - steps are given no keywords
    file: DataFile,
    position: int,
    header: BatchHeader,
    timestamp: int,
    start_offset: int,
    is_brief: bool,
) -> Steps[TimestampedOffset | None]:
    """Find the first matching record in the batch at `position`."""
    size = header.length + OVERHEAD_BYTES
    if is_brief and (header.record_count > _BRIEF_RECORDS or size > _BRIEF_BYTES):
        raise TakesLongError
    search = RecordSearch(header, timestamp, start_offset)
    if header.codec is Codec.NONE:
        start = position + HEADER_BYTES
        yield from _walk_plain(search, file, start, position + size, is_brief=is_brief)
    else:
        data = _read(file, position + HEADER_BYTES, size - HEADER_BYTES, is_brief=is_brief)
        has_begun = False
        for piece in unpack(header.codec, data):
            if is_brief and has_begun:
                raise TakesLongError
            has_begun = True
            yield from search.walk(piece)
            if search.found is not None:
                break
            yield
    if search.found is None:
        yield from search.walk(b"", is_last=True)
    if search.found is None:
        return None
    return TimestampedOffset(search.found[0], search.found[1], header.leader_epoch)


def _read(file: DataFile, position: int, length: int, *, is_brief: bool) -> bytes | bytearray:
    return (
        file.read_now(position, length, least=length)
        if is_brief
        else file.read_at(position, length)
    )


def _walk_plain(
    search: RecordSearch, file: DataFile, position: int, end: int, *, is_brief: bool
) -> Steps[None]:
    """Scan uncompressed records; large values are not read."""
    while position < end:
        piece = _read(file, position, min(_READ_BYTES, end - position), is_brief=is_brief)
        if not piece:
            raise KafkaError(ErrorCode.CORRUPT_MESSAGE, f"{file.path} ends within a batch")
        position += len(piece)
        yield from search.walk(piece)
        if search.found is not None:
            return
        skipped = min(search.skip_bytes, end - position)
        search.skip_bytes -= skipped
        position += skipped
        yield
