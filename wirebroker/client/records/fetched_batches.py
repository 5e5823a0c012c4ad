"""The batches in a Fetch response."""

from __future__ import annotations

from typing import TYPE_CHECKING

from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.codecs.records.batch import batch_crc, read_batch_header
from wirebroker.codecs.records.layout import HEADER_BYTES

if TYPE_CHECKING:
    from collections.abc import Iterator

    from wirebroker.codecs.records.batch import BatchHeader


def fetched_batches(data: memoryview) -> Iterator[tuple[BatchHeader, memoryview]]:
    """Yield whole batches, also control batches; skip a truncated last one.

    Raises:
        KafkaError: As `read_batch_header`; CORRUPT_MESSAGE for a wrong checksum.
    """
    position = 0
    while len(data) - position >= HEADER_BYTES:
        header = read_batch_header(data, position)
        end = position + header.size
        if end > len(data):
            return
        if batch_crc(data, position, header.size) != header.crc:
            raise KafkaError(ErrorCode.CORRUPT_MESSAGE, "a batch has a wrong checksum")
        yield header, data[position:end]
        position = end
