"""The records of dead-letter topics: headers that describe a record, and perhaps its key and value.

Source: Kafka's ShareGroupDLQStateManager.ProduceRequestHandler, ShareGroupDLQRecordFetcher;
KIP-1191.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from wirebroker.base.dead_letter_headers import dead_letter_headers
from wirebroker.codecs.errors import KafkaError
from wirebroker.codecs.records.batch import build_batch, iterate_records, read_batch_header
from wirebroker.codecs.records.layout import HEADER_BYTES
from wirebroker.codecs.records.record import encode_record

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from wirebroker.codecs.records.batch import BareRecord
    from wirebroker.codecs.records.record import Headers
    from wirebroker.coordinator.share_partitions.state_change import DeadRecords

    # Key and value of a record.
    Original = tuple[bytes | None, bytes | None]

_NO_ORIGINAL: Final[Original] = (None, None)


class DeadRecord(NamedTuple):
    """One record that a share group could not process."""

    offset: int
    delivery_count: int
    cause: str


class Origin(NamedTuple):
    """Where dead records come from."""

    group_id: str
    topic: str
    partition: int


def each_record(dead: Sequence[DeadRecords]) -> Iterator[DeadRecord]:
    """Yield the records of ranges, which do not overlap, by offset."""
    for state, cause in sorted(dead, key=_first_offset):
        for offset in range(state.first_offset, state.last_offset + 1):
            yield DeadRecord(offset, state.delivery_count, cause)


def _first_offset(dead: DeadRecords) -> int:
    return dead.state.first_offset


def dead_letter_batch(
    origin: Origin,
    records: Sequence[DeadRecord],
    originals: Mapping[int, Original],
    now_ms: int,
    max_bytes: int,
) -> tuple[bytearray, int]:
    """Return a batch of dead letters, and the number of records in it.

    It exceeds `max_bytes` only with a single record.
    """
    letters: list[BareRecord] = []
    size = HEADER_BYTES
    for record in records:
        key, value = originals.get(record.offset, _NO_ORIGINAL)
        headers = _headers(origin, record)
        count = len(letters)
        size += len(encode_record(key, value, headers, offset_delta=count, timestamp_delta=0))
        if size > max_bytes and letters:
            break
        letters.append((key, value, headers))
    return build_batch(letters, timestamp_ms=now_ms), len(letters)


def _headers(origin: Origin, record: DeadRecord) -> Headers:
    return dead_letter_headers(
        topic=origin.topic,
        partition=origin.partition,
        offset=record.offset,
        group=origin.group_id,
        delivery_count=record.delivery_count,
        message=record.cause,
    )


class Originals(NamedTuple):
    """Keys and values of records by offset, as far as the records were read."""

    records: dict[int, Original]
    # Dead letters of later records are written with the next batch.
    last_offset: int


def originals_in(data: bytes, first_offset: int, last_offset: int, max_bytes: int) -> Originals:
    """Return keys and values of the records of a range.

    Batches that cannot be read, or are larger than `max_bytes`, are left out; `data` may end with a
    part of a batch.
    """
    found: dict[int, Original] = {}
    total = 0
    position = 0
    last_read = first_offset - 1
    while position + HEADER_BYTES <= len(data):
        header = read_batch_header(data, position)
        batch = memoryview(data)[position : position + header.size]
        if len(batch) < header.size or header.base_offset > last_offset:
            break
        position += header.size
        try:
            for record in iterate_records(batch, header, max_bytes=max_bytes):
                if not first_offset <= record.offset <= last_offset:
                    continue
                total += len(record.key or b"") + len(record.value or b"")
                if total > max_bytes and found:
                    return Originals(found, record.offset - 1)
                found[record.offset] = record.key, record.value
        except KafkaError:
            pass  # left out: its dead letters have headers alone
        last_read = header.last_offset
    return Originals(found, last_read)
