"""The validation of a client's batch by the leader before it is appended.

The order is as observed from Apache Kafka 4.3.1:

1. The request's shape: exactly one whole batch of magic 2 (an incomplete second one is dropped), no
   zstd before Produce v7. Sets `RefusedBatchError.is_request_fault`.
2. base_offset 0, max.message.bytes, CRC-32C, a known codec.
3. Offsets and count agree, no control batch, a sequence if there is a producer id.
4. Every record, decompressed in pieces (record_validation.py): its encoding and offset; keys on
   compacted topics; timestamps within message.timestamp.{before,after}.max.ms.
5. A wrong max_timestamp is corrected; compression.type and LogAppendTime are applied.

With `wirebroker.record.validation=header` step 4 is skipped unless keys, recompression or header
timestamps out of bounds require it.

Source: Kafka's UnifiedLog.analyzeAndValidateRecords, and the sources of batch_shape.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.codecs.records.batch import BatchHeader, batch_crc, read_batch_header, write_crc
from wirebroker.codecs.records.layout import (
    ATTRIBUTES,
    ATTRIBUTES_AT,
    CODEC_MASK,
    KNOWN_ATTRIBUTES,
    LOG_APPEND_TIME_FLAG,
    MAX_TIMESTAMP,
    MAX_TIMESTAMP_AT,
)
from wirebroker.codecs.records.plain_batch import checked_header
from wirebroker.storage.log.validation.batch_shape import (
    RefusedBatchError,
    check_codec,
    check_fields,
    only_header,
)
from wirebroker.storage.log.validation.recompression import Compression, recompress
from wirebroker.storage.log.validation.record_validation import RecordValidator

if TYPE_CHECKING:
    from collections.abc import Generator

    from wirebroker.config.rows.topic import TopicSettings
    from wirebroker.storage.log.validation.record_validation import Walked


class BatchValidator:
    """The validation rules of one topic's settings."""

    __slots__ = (
        "_after_max_ms",
        "_before_max_ms",
        "_checked",
        "_checks_all_records",
        "_is_compacted",
        "_is_walked_at_once",
        "_log_append_time",
        "_records",
        "_target",
        "_walks_all",
        "max_message_bytes",
    )

    def __init__(self, settings: TopicSettings, *, directory: str, walks_all: bool = True) -> None:
        """Create a validator; `directory` is for error messages."""
        self.max_message_bytes = settings.max_message_bytes
        self._walks_all = walks_all
        self._is_compacted = settings.is_compacted
        self._log_append_time = settings.message_timestamp_type == "LogAppendTime"
        self._before_max_ms = settings.message_timestamp_before_max_ms
        self._after_max_ms = settings.message_timestamp_after_max_ms
        self._target: Compression | None = Compression.of(settings)  # None: the producer's codec
        codec = self._target and self._target.codec
        self._records = RecordValidator(settings, codec, directory)
        self._checks_all_records = (
            self._log_append_time or self._is_compacted or self._target is not None
        )
        self._is_walked_at_once = walks_all and not self._checks_all_records
        # A plain batch with these attributes needs record validation.
        self._checked = LOG_APPEND_TIME_FLAG | (CODEC_MASK if walks_all else 0)

    def validate(
        self,
        records: memoryview,
        *,
        now_ms: int,
        request_version: int,
        is_brief: bool = False,
        walked: Walked | None = None,
    ) -> tuple[memoryview, BatchHeader]:
        """Validate the batch of a partition in a Produce request (hot path).

        A wrong max_timestamp and LogAppendTime change `records` in place. `is_brief` limits the
        time; `walked` is the result of `walk`, if it was called.

        Returns:
            The bytes to store (a part of `records`, or new ones if recompressed) and their header,
            which still has base_offset 0.

        Raises:
            RefusedBatchError: The batch is invalid.
            TakesLongError: `is_brief`, but the validation takes long.
        """
        header = checked_header(records, self._is_walked_at_once and walked is None)
        if header is None:
            records, header = self._check_records(records, request_version)
            return self._walk_and_restamp(records, header, now_ms, is_brief=is_brief, walked=walked)
        if request_version < 7:
            check_codec(header, request_version)
        if len(records) > self.max_message_bytes:
            raise self._too_large(len(records))
        if (
            self._checks_all_records
            or header.attributes & self._checked
            or header.max_timestamp - now_ms > self._after_max_ms
            or now_ms - header.base_timestamp > self._before_max_ms
            or walked is not None
        ):
            return self._walk_and_restamp(records, header, now_ms, is_brief=is_brief, walked=walked)
        return records, header

    def walk(self, records: memoryview, now_ms: int) -> Generator[None, None, Walked | None]:
        """Validate a batch's records in steps, for `validate`.

        Returns:
            None if the records need no validation or the batch is invalid.
        """
        try:
            records, header = only_header(records)
            check_fields(header)
            if not self.must_walk(header, now_ms):
                return None
            walked = yield from self._records.walk(records, header, now_ms=now_ms)
        except KafkaError:
            return None
        return walked

    def must_walk(self, header: BatchHeader, now_ms: int) -> bool:
        """Return whether the records must be validated."""
        return (
            self._walks_all
            or self._is_compacted
            or bool(header.attributes & LOG_APPEND_TIME_FLAG)
            or self.is_recompressed(header.attributes)
            or not (self._log_append_time or self._records.is_within_bounds(header, now_ms))
        )

    def is_recompressed(self, attributes: int) -> bool:
        """Return whether a batch with these attributes is stored in another codec."""
        return self._target is not None and self._target.codec != attributes & CODEC_MASK

    def _check_records(
        self, records: memoryview, request_version: int
    ) -> tuple[memoryview, BatchHeader]:
        """Do steps 1 to 3 in order."""
        records, header = only_header(records)
        check_codec(header, request_version)
        if header.base_offset != 0:
            raise RefusedBatchError(
                ErrorCode.INVALID_RECORD, f"base_offset is {header.base_offset}, it must be 0"
            )
        size = len(records)
        if size > self.max_message_bytes:
            raise self._too_large(size)
        if batch_crc(records, 0, size) != header.crc:
            raise RefusedBatchError(ErrorCode.CORRUPT_MESSAGE, "the CRC differs")
        check_fields(header)
        return records, header

    def _walk_and_restamp(
        self,
        records: memoryview,
        header: BatchHeader,
        now_ms: int,
        *,
        is_brief: bool,
        walked: Walked | None,
    ) -> tuple[memoryview, BatchHeader]:
        """Do steps 4 and 5."""
        if not self.must_walk(header, now_ms):
            return records, self._stamped(records, header, header.max_timestamp, now_ms)
        if walked is None:
            walk = self._records.briefly if is_brief else self._records.at_length
            walked = walk(records, header, now_ms=now_ms)
        self._records.judge(header, walked, now_ms=now_ms)
        if self.is_recompressed(header.attributes):
            assert self._target is not None
            records = recompress(
                records,
                header,
                self._target,
                unpacked_bytes=walked.unpacked_bytes,
                max_bytes=self.max_message_bytes,
            )
            header = read_batch_header(records)
        return records, self._stamped(records, header, walked.max_timestamp, now_ms)

    def _stamped(
        self, records: memoryview, header: BatchHeader, max_timestamp: int, now_ms: int
    ) -> BatchHeader:
        if self._log_append_time:
            return _stamp(records, max_timestamp=now_ms, is_log_append_time=True)
        if header.attributes & LOG_APPEND_TIME_FLAG or max_timestamp != header.max_timestamp:
            return _stamp(records, max_timestamp=max_timestamp, is_log_append_time=False)
        return header

    def _too_large(self, size: int) -> RefusedBatchError:
        return RefusedBatchError(
            ErrorCode.MESSAGE_TOO_LARGE,
            f"the batch has {size} bytes, max.message.bytes is {self.max_message_bytes}",
        )


def _stamp(records: memoryview, *, max_timestamp: int, is_log_append_time: bool) -> BatchHeader:
    """Set the batch's timestamp type, max_timestamp and CRC in place.

    Unknown attribute bits are cleared, as in Kafka's DefaultRecordBatch.setMaxTimestamp.
    """
    (attributes,) = ATTRIBUTES.unpack_from(records, ATTRIBUTES_AT)
    attributes &= KNOWN_ATTRIBUTES & ~LOG_APPEND_TIME_FLAG
    if is_log_append_time:
        attributes |= LOG_APPEND_TIME_FLAG
    ATTRIBUTES.pack_into(records, ATTRIBUTES_AT, attributes)
    MAX_TIMESTAMP.pack_into(records, MAX_TIMESTAMP_AT, max_timestamp)
    write_crc(records, 0)
    return read_batch_header(records)
