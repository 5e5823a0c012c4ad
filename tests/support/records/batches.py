"""Record batches for Produce requests."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from wirebroker.codecs.records.batch import build_batch, iterate_batches, iterate_records
from wirebroker.codecs.records.codec import Codec
from wirebroker.codecs.records.record import Record

if TYPE_CHECKING:
    from collections.abc import Iterator

    from wirebroker.codecs.records.batch import BatchHeader

# Default timestamp of batches, in 2023.
TIMESTAMP_MS = 1_700_000_000_000


def batch(
    *values: bytes,
    key: bytes | None = b"k",
    timestamp_ms: int = TIMESTAMP_MS,
    codec: Codec = Codec.NONE,
    **header: Any,
) -> bytes:
    """Return a batch with one record per value, with timestamps one millisecond apart.

    Args:
        values: The records' values.
        key: The key of each record.
        timestamp_ms: The first timestamp.
        codec: The compression.
        header: Arguments of build_batch: producer_id, producer_epoch, base_sequence, …
    """
    records = [
        Record(number, timestamp_ms + number, key, value, ()) for number, value in enumerate(values)
    ]
    return bytes(build_batch(records, codec=codec, **header))


def values_in(records: bytes) -> list[bytes | None]:
    """Return the values of all complete batches of a Fetch response."""
    return [record.value for _, record in records_in(records)]


def records_in(records: bytes) -> Iterator[tuple[BatchHeader, Record]]:
    """Yield the records of all complete batches with their batch's header."""
    view = memoryview(records)
    for position, header in iterate_batches(view):
        batch = view[position : position + header.size]
        for record in iterate_records(batch, header, max_bytes=1 << 30):
            yield header, record
