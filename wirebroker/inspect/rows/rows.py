"""Files as rows: dicts with `type` first, then fields with the protocol's names.

A row of type `damage` describes unreadable bytes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from wirebroker.codecs.errors import KafkaError
from wirebroker.codecs.records.batch import NO_SEQUENCE, iterate_records
from wirebroker.codecs.records.codec import CODECS
from wirebroker.codecs.records.layout import DELETE_HORIZON_FLAG
from wirebroker.inspect.rows import decoded_records
from wirebroker.inspect.rows.batch_walk import BatchWalk, Damage
from wirebroker.storage.log.producers.producer_entry import MAX_SEQUENCE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from wirebroker.codecs.records.batch import BatchHeader
    from wirebroker.codecs.records.record import Record
    from wirebroker.inspect.rows.batch_walk import WalkedBatch
    from wirebroker.inspect.rows.decoded_records import Decoder
    from wirebroker.storage.files import DataFile

    Row = dict[str, Any]


class OffsetRange(NamedTuple):
    """A range of offsets, both ends included."""

    first: int = 0
    last: int = (1 << 63) - 1

    def has(self, offset: int) -> bool:
        """Return whether an offset is in the range."""
        return self.first <= offset <= self.last


class LogRows:
    """The rows of a file of batches, without batches outside of `offset_range`.

    `shows_records` adds a row for each record, of compressed batches only with `opens_compressed`.
    """

    __slots__ = ("_decoder", "_offset_range", "_opens_compressed", "_shows_records")

    def __init__(
        self,
        *,
        offset_range: OffsetRange,
        shows_records: bool,
        opens_compressed: bool,
        decoder: Decoder | None,
    ) -> None:
        self._offset_range = offset_range
        self._shows_records = shows_records
        self._opens_compressed = opens_compressed
        self._decoder = decoder

    def read(self, file: DataFile, position: int, on_bytes: Callable[[int], None]) -> Iterator[Row]:
        """Yield the rows of the batches from `position`, where one starts."""
        for walked in BatchWalk(file, on_bytes=on_bytes).walk(position):
            if isinstance(walked, Damage):
                yield damage(walked.message, walked.position, length=walked.length)
                continue
            header = walked.header
            if header.base_offset > self._offset_range.last:
                return
            if header.last_offset < self._offset_range.first:
                continue
            yield batch_row(walked)
            if not walked.is_valid_crc:
                yield damage(
                    "the CRC-32C does not match", walked.position, offset=header.base_offset
                )
            elif self._shows_records and self._opens(header):
                yield from self._records(walked)

    def _opens(self, header: BatchHeader) -> bool:
        return self._opens_compressed or not header.attributes & 0x07

    def _records(self, walked: WalkedBatch) -> Iterator[Row]:
        header = walked.header
        decoder = decoded_records.control if header.is_control else self._decoder
        try:
            for record in iterate_records(walked.batch, header):
                if not self._offset_range.has(record.offset):
                    continue
                row = record_row(record, header)
                row["headers"] = [
                    {"key": key.encode("utf-8", "surrogateescape"), "value": value}
                    for key, value in record.headers
                ]
                decoded = decoder and decoded_records.decoded(decoder, record)
                row["decoded"] = decoded
                if decoded is not None and decoded_records.is_hidden_in(decoded):
                    row["value"] = decoded_records.HIDDEN.encode()
                yield row
        except KafkaError as error:
            yield damage(
                f"its records cannot be read: {error.message}",
                walked.position,
                offset=header.base_offset,
            )


def record_row(record: Record, header: BatchHeader) -> Row:
    """Return the row of a record, without headers and decoded contents.

    As in Kafka's tool, the size of null and the sequence without idempotence are -1.
    """
    sequence = header.base_sequence
    if sequence != NO_SEQUENCE:
        sequence = (sequence + record.offset - header.base_offset) & MAX_SEQUENCE
    return {
        "type": "record",
        "offset": record.offset,
        "timestamp": record.timestamp,
        "sequence": sequence,
        "key_size": -1 if record.key is None else len(record.key),
        "value_size": -1 if record.value is None else len(record.value),
        "key": record.key,
        "value": record.value,
    }


def batch_row(walked: WalkedBatch) -> Row:
    """Return the row of a batch."""
    header = walked.header
    codec = header.attributes & 0x07
    return {
        "type": "batch",
        "position": walked.position,
        "size": header.size,
        "base_offset": header.base_offset,
        "last_offset": header.last_offset,
        "record_count": header.record_count,
        "leader_epoch": header.leader_epoch,
        "magic": header.magic,
        "crc": header.crc,
        "is_valid_crc": walked.is_valid_crc,
        "compression_type": _CODEC_NAMES.get(codec, str(codec)),
        "timestamp_type": "LogAppendTime" if header.uses_log_append_time else "CreateTime",
        "is_transactional": header.is_transactional,
        "is_control": header.is_control,
        "has_delete_horizon": bool(header.attributes & DELETE_HORIZON_FLAG),
        "base_timestamp": header.base_timestamp,
        "max_timestamp": header.max_timestamp,
        "producer_id": header.producer_id,
        "producer_epoch": header.producer_epoch,
        "base_sequence": header.base_sequence,
        "last_sequence": header.last_sequence,
    }


def damage(
    message: str, position: int | None = None, *, offset: int | None = None, length: int = 0
) -> Row:
    """Return a row for unreadable bytes, with their position."""
    row: Row = {"type": "damage", "position": position, "message": message}
    if offset is not None:
        row["offset"] = offset
    if length:
        row["length"] = length
    return row


_CODEC_NAMES = {int(codec): name for name, codec in CODECS.items()}
