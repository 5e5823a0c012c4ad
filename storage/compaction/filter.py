"""The rules for what compaction keeps of one batch.

    record    kept if it is the last of its key, unless it is a tombstone whose horizon has passed;
              dropped if it has no key; always kept after the last mapped offset
    batch     keeps its base offset, last offset delta, sequence and producer; copied byte for byte
              if all records are kept; dropped if none are, except
                  the last batch of a producer that is still known (it holds the sequence)
                  the batch directly before the first offset out of reach
    horizon   set on a batch with a tombstone, and on a marker that is no longer needed, when
              compaction first reads it: now + delete.retention.ms; afterwards tombstone and marker
              are dropped (KIP-534)

Source: Kafka's MemoryRecords.filterTo, Cleaner.cleanInto, MemoryRecordsBuilder.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from wirebroker.codecs.records.batch import NO_TIMESTAMP, iterate_records, write_crc
from wirebroker.codecs.records.compression import compress
from wirebroker.codecs.records.layout import (
    ATTRIBUTES,
    ATTRIBUTES_AT,
    BASE_TIMESTAMP_AT,
    CODEC_MASK,
    CONTROL_FLAG,
    DELETE_HORIZON_FLAG,
    HEADER_BYTES,
    LENGTH,
    LENGTH_AT,
    LOG_APPEND_TIME_FLAG,
    OVERHEAD_BYTES,
    RECORD_COUNT,
    RECORD_COUNT_AT,
    TIMESTAMPS,
    TRANSACTIONAL_FLAG,
)
from wirebroker.codecs.records.record import encode_record

if TYPE_CHECKING:
    from collections.abc import Mapping

    from wirebroker.codecs.records.batch import BatchHeader
    from wirebroker.codecs.records.record import Record
    from wirebroker.storage.compaction.map import OffsetMap
    from wirebroker.storage.compaction.transactions import CleanedTransactions

_RETAINED_FLAGS: Final = LOG_APPEND_TIME_FLAG | TRANSACTIONAL_FLAG | CONTROL_FLAG


class ActiveProducer(NamedTuple):
    """A producer that the log still knows."""

    last_data_offset: int  # -1: no data batch in this epoch
    producer_epoch: int


class BatchFilter:
    """One compaction's decisions about batches, in log order.

    Attributes:
        last_records_count: Records so far that are the last of their key in the map.
    """

    __slots__ = (
        "_delete_retention_ms",
        "_end_offset",
        "_map",
        "_now_ms",
        "_producers",
        "_txns",
        "last_records_count",
    )

    def __init__(
        self,
        offset_map: OffsetMap,
        transactions: CleanedTransactions,
        *,
        producers: Mapping[int, ActiveProducer],
        end_offset: int,
        now_ms: int,
        delete_retention_ms: int,
    ) -> None:
        """Prepare a compaction up to `end_offset`, the first offset out of reach.

        `transactions` must know a segment's aborted transactions before its batches are filtered.
        """
        self._map = offset_map
        self._txns = transactions
        self._producers = producers
        self._end_offset = end_offset
        self._now_ms = now_ms
        self._delete_retention_ms = delete_retention_ms
        self.last_records_count = 0

    def filter(self, header: BatchHeader, batch: memoryview) -> memoryview | bytearray | None:
        """Return what remains of a batch: the batch itself, a new one, or None.

        Raises:
            KafkaError: INVALID_RECORD or CORRUPT_MESSAGE: its records cannot be read.
        """
        is_control = header.is_control
        horizon_ms = _horizon_of(header)
        if is_control:
            is_done = self._txns.add_control_batch(header, batch)
            discards = is_done and horizon_ms is not None and horizon_ms <= self._now_ms
        else:
            is_done = discards = self._txns.add_data_batch(header)
        may_be_empty = self._is_last_of_producer(header) or (
            header.last_offset + 1 == self._end_offset
        )
        if discards:
            return _empty_batch(header, batch) if may_be_empty else None
        records = iterate_records(batch, header)
        if is_control:
            retained = list(records)
        else:
            keeps_tombstones = horizon_ms is None or self._now_ms < horizon_ms
            retained = [record for record in records if self._keeps(record, keeps_tombstones)]
        if not retained:
            return _empty_batch(header, batch) if may_be_empty else None
        if horizon_ms is None and (
            (is_control and is_done) or any(record.value is None for record in retained)
        ):
            horizon_ms = self._now_ms + self._delete_retention_ms
        elif len(retained) == header.record_count:
            return batch
        return _rebuilt(header, batch, retained, horizon_ms)

    def _keeps(self, record: Record, keeps_tombstones: bool) -> bool:
        if record.offset > self._map.latest_offset:
            return True
        if record.key is None:
            return False
        last_offset = self._map.get(record.key)
        if record.offset < last_offset:
            return False
        if record.offset == last_offset:
            self.last_records_count += 1
        return keeps_tombstones or record.value is not None

    def _is_last_of_producer(self, header: BatchHeader) -> bool:
        producer = self._producers.get(header.producer_id) if header.producer_id >= 0 else None
        if producer is None:
            return False
        if producer.last_data_offset >= 0:
            return header.last_offset == producer.last_data_offset
        return header.is_control and header.producer_epoch == producer.producer_epoch


def _horizon_of(header: BatchHeader) -> int | None:
    return header.base_timestamp if header.attributes & DELETE_HORIZON_FLAG else None


def _empty_batch(header: BatchHeader, batch: memoryview) -> bytearray:
    result = bytearray(batch[:HEADER_BYTES])
    TIMESTAMPS.pack_into(result, BASE_TIMESTAMP_AT, NO_TIMESTAMP, header.max_timestamp)
    return _finish(result, header, flags=0, record_count=0)


def _rebuilt(
    header: BatchHeader, batch: memoryview, records: list[Record], horizon_ms: int | None
) -> bytearray:
    base_timestamp = records[0].timestamp if horizon_ms is None else horizon_ms
    payload = b"".join(
        encode_record(
            record.key,
            record.value,
            record.headers,
            offset_delta=record.offset - header.base_offset,
            timestamp_delta=record.timestamp - base_timestamp,
        )
        for record in records
    )
    if header.uses_log_append_time:
        max_timestamp = header.max_timestamp
    else:
        max_timestamp = max(record.timestamp for record in records)
    result = bytearray(batch[:HEADER_BYTES])
    result += compress(header.codec, payload)
    flags = header.attributes & CODEC_MASK
    if horizon_ms is not None:
        flags |= DELETE_HORIZON_FLAG
    TIMESTAMPS.pack_into(result, BASE_TIMESTAMP_AT, base_timestamp, max_timestamp)
    return _finish(result, header, flags=flags, record_count=len(records))


def _finish(result: bytearray, header: BatchHeader, *, flags: int, record_count: int) -> bytearray:
    LENGTH.pack_into(result, LENGTH_AT, len(result) - OVERHEAD_BYTES)
    attributes = header.attributes & _RETAINED_FLAGS | flags
    ATTRIBUTES.pack_into(result, ATTRIBUTES_AT, attributes)
    RECORD_COUNT.pack_into(result, RECORD_COUNT_AT, record_count)
    write_crc(result, 0)
    return result
