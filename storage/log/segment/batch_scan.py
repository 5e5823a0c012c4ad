"""Scans of the batches in a log file."""

from __future__ import annotations

from typing import TYPE_CHECKING

from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.codecs.records.batch import read_batch_header
from wirebroker.codecs.records.layout import HEADER_BYTES, OVERHEAD_BYTES

if TYPE_CHECKING:
    from collections.abc import Iterator

    from wirebroker.codecs.records.batch import BatchHeader
    from wirebroker.storage.files import DataFile

# Covers small batches between two index entries (index.interval.bytes = 4096).
_HEADER_CHUNK_BYTES = 8 * 1024
# Larger reads only cost memory.
_BULK_CHUNK_BYTES = 1024 * 1024


def scan_headers(
    file: DataFile, position: int, end: int, *, may_block: bool = True
) -> Iterator[tuple[int, BatchHeader]]:
    """Yield (position, header) of each batch from `position`, where one starts, up to `end`.

    Raises:
        KafkaError: CORRUPT_MESSAGE; UNSUPPORTED_FOR_MESSAGE_FORMAT for magic 0 and 1.
        OSError: The disk failed.
        ColdPagesError: The disk is needed, but may_block is False.
    """
    chunk: bytes | bytearray = b""
    chunk_position = position
    while position < end:
        start = position - chunk_position
        if start + HEADER_BYTES > len(chunk):
            length = min(_HEADER_CHUNK_BYTES, end - position)
            if may_block:
                chunk = file.read_at(position, length)
            else:
                chunk = file.read_now(position, length, least=min(length, HEADER_BYTES))
            chunk_position = position
            start = 0
        header = read_batch_header(chunk, start)
        next_position = position + header.length + OVERHEAD_BYTES
        if next_position > end:
            raise _beyond_end(position, header, end)
        yield position, header
        position = next_position


def scan_batches(
    file: DataFile, position: int, end: int
) -> Iterator[tuple[int, BatchHeader, memoryview]]:
    """Yield (position, header, whole batch), without verifying checksums; see scan_headers."""
    chunk = memoryview(b"")
    chunk_position = position
    while position < end:
        start = position - chunk_position
        if start + HEADER_BYTES > len(chunk):
            chunk = memoryview(file.read_at(position, min(_BULK_CHUNK_BYTES, end - position)))
            chunk_position = position
            start = 0
        header = read_batch_header(chunk, start)
        size = header.length + OVERHEAD_BYTES
        if position + size > end:
            raise _beyond_end(position, header, end)
        if start + size > len(chunk):
            chunk = memoryview(
                file.read_at(position, min(max(size, _BULK_CHUNK_BYTES), end - position))
            )
            chunk_position = position
            start = 0
        yield position, header, chunk[start : start + size]
        position += size


def _beyond_end(position: int, header: BatchHeader, end: int) -> KafkaError:
    return KafkaError(
        ErrorCode.CORRUPT_MESSAGE,
        f"the batch at position {position} claims {header.length + OVERHEAD_BYTES} bytes "
        f"where {end - position} are left",
    )
