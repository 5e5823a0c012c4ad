"""Walk over the batches of a possibly damaged file, which yields damage instead of raising.

After an invalid header, it continues at the next batch with a valid checksum. It holds a chunk of
1 MiB, or one larger batch whose checksum is valid.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.codecs.records.batch import BatchHeader, batch_crc, read_batch_header
from wirebroker.codecs.records.checksum import crc32c
from wirebroker.codecs.records.layout import CRC_START, HEADER_BYTES, MAGIC, MAGIC_AT

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from wirebroker.storage.files import DataFile

_CHUNK_BYTES = 1 << 20
_MAGIC_BYTE = bytes((MAGIC,))
# 2**48 records take 8,900 years at a million per second: higher offsets are invalid.
_MAX_OFFSET = 1 << 48


class WalkedBatch(NamedTuple):
    """A complete batch; its checksum may be wrong."""

    position: int
    header: BatchHeader
    batch: memoryview  # valid while it is referenced; empty if large with a wrong checksum
    is_valid_crc: bool


class Damage(NamedTuple):
    """Bytes that are not a batch."""

    position: int
    length: int
    message: str


class BatchWalk:
    """Walks contiguous batches up to `end`; a batch beyond it is damage."""

    def __init__(
        self, file: DataFile, *, end: int | None = None, on_bytes: Callable[[int], None]
    ) -> None:
        self._file = file
        self._end = file.size() if end is None else end
        self._on_bytes = on_bytes
        self._chunk = memoryview(b"")
        self._chunk_position = 0

    def walk(self, position: int = 0, *, checks_crc: bool = True) -> Iterator[WalkedBatch | Damage]:
        """Yield batches and damage without gaps, from a position where a batch starts."""
        while position < self._end:
            try:
                header = self._header_at(position)
            except KafkaError as error:
                end = self._next_good(position + 1)
                yield Damage(position, end - position, error.message or str(error))
            else:
                end = position + header.size
                yield self._batch_at(position, header, checks_crc=checks_crc)
            self._on_bytes(end - position)
            position = end

    def _header_at(self, position: int) -> BatchHeader:
        header = read_batch_header(self._bytes(position, HEADER_BYTES))
        remaining = self._end - position
        if header.size > remaining:
            raise KafkaError(
                ErrorCode.CORRUPT_MESSAGE,
                (f"a batch of {header.size} bytes, but only {remaining} are left"),
            )
        return header

    def _bytes(self, position: int, length: int) -> memoryview:
        """Return up to `length` bytes, fewer at the end; reads at most one chunk."""
        start = position - self._chunk_position
        if start < 0 or start + length > len(self._chunk):
            read_length = min(max(length, _CHUNK_BYTES), self._end - position)
            self._chunk = memoryview(self._file.read_at(position, read_length))
            self._chunk_position = position
            start = 0
        return self._chunk[start : start + length]

    def _batch_at(self, position: int, header: BatchHeader, *, checks_crc: bool) -> WalkedBatch:
        size = header.size
        if size > _CHUNK_BYTES and checks_crc and not self._large_crc_matches(position, header):
            return WalkedBatch(position, header, memoryview(b""), is_valid_crc=False)
        batch = self._bytes(position, size) if checks_crc else memoryview(b"")
        is_valid = not checks_crc or batch_crc(batch, 0, size) == header.crc
        return WalkedBatch(position, header, batch, is_valid)

    def _large_crc_matches(self, position: int, header: BatchHeader) -> bool:
        end = position + header.size
        checksum = 0
        for start in range(position + CRC_START, end, _CHUNK_BYTES):
            data = self._file.read_at(start, min(_CHUNK_BYTES, end - start))
            checksum = crc32c(data, checksum)
        return checksum == header.crc

    def _next_good(self, position: int) -> int:
        while position + HEADER_BYTES <= self._end:
            chunk = bytes(self._bytes(position, min(_CHUNK_BYTES, self._end - position)))
            index = chunk.find(_MAGIC_BYTE, MAGIC_AT)
            while index >= 0:
                candidate = position + index - MAGIC_AT
                if self._is_good(chunk, index - MAGIC_AT, candidate):
                    return candidate
                index = chunk.find(_MAGIC_BYTE, index + 1)
            # The next chunk contains headers that extend beyond this one.
            position += max(1, len(chunk) - HEADER_BYTES + 1)
        return self._end

    def _is_good(self, chunk: bytes, start: int, position: int) -> bool:
        if start + HEADER_BYTES > len(chunk):
            return False
        try:
            header = read_batch_header(chunk, start)
        except KafkaError:
            return False
        is_plausible = 0 <= header.base_offset < _MAX_OFFSET and header.size <= self._end - position
        return is_plausible and self._large_crc_matches(position, header)
