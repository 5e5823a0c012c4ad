"""Record batches for Produce requests."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from wirebroker.codecs.records.batch import build_batch, iterate_batches, iterate_records
from wirebroker.codecs.records.compression import Codec
from wirebroker.codecs.records.record import Record

if TYPE_CHECKING:
    from collections.abc import Iterator

    from wirebroker.codecs.records.batch import BatchHeader

# What batches say unless a test cares: some time in 2023.
TIMESTAMP_MS = 1_700_000_000_000


def batch(
    *values: bytes,
    key: bytes | None = b"k",
    timestamp_ms: int = TIMESTAMP_MS,
    codec: Codec = Codec.NONE,
    **header: Any,
) -> bytes:
    """Return a batch with one record per value, each a millisecond later than the one before.

    Args:
        values: Of the records.
        key: Of each record.
        timestamp_ms: Of the first record.
        codec: The compression.
        header: What build_batch takes: producer_id, producer_epoch, base_sequence, …
    """
    records = [
        Record(number, timestamp_ms + number, key, value, ()) for number, value in enumerate(values)
    ]
    return bytes(build_batch(records, codec=codec, **header))


def values_in(records: bytes) -> list[bytes | None]:
    """Return the values of all whole batches, as a Fetch answered them."""
    return [record.value for _, record in records_in(records)]


def records_in(records: bytes) -> Iterator[tuple[BatchHeader, Record]]:
    """Walk the records of all whole batches, each with its batch's header."""
    view = memoryview(records)
    for position, header in iterate_batches(view):
        batch = view[position : position + header.size]
        for record in iterate_records(batch, header, max_bytes=1 << 30):
            yield header, record
