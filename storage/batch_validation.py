"""What a leader checks of a client's batch before it goes to the log, and what it changes in it.

The records are opaque: header, size, CRC and count are checked for each batch; records are walked
only to find keys on compacted topics, to name the records whose timestamps are refused, and to
recompress. In this order, as observed from Apache Kafka 4.3.1:

1. The request's shape: exactly one whole batch of magic 2 (bytes of a cut-off second one are
   dropped), no zstd before Produce v7. `RefusedBatchError.is_request_fault`.
2. base_offset 0, max.message.bytes, CRC-32C, a known codec.
3. Offsets and count agree, no control batch, a sequence if there is a producer id.
4. Keys on compacted topics; timestamps within message.timestamp.{before,after}.max.ms.
5. The topic's own compression.type and LogAppendTime.

Differences from Kafka, which walks all records: a batch whose records contradict its header is
stored as it is, and a max_timestamp that is not the records' maximum is believed unless it is out
of bounds (then the records decide, and it is corrected).

Source: Kafka's ProduceRequest.validateRecords, UnifiedLog.analyzeAndValidateRecords, LogValidator.
"""

from __future__ import annotations

from struct import Struct
from typing import TYPE_CHECKING, Final, NamedTuple

from wirebroker.codecs.compression import Codec
from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.codecs.plain_batch import SMALLEST_RECORD_BYTES, checked_header
from wirebroker.codecs.record_batch import (
    CODEC_MASK,
    CONTROL_FLAG,
    HEADER_BYTES,
    LOG_APPEND_TIME_FLAG,
    MAGIC,
    NO_TIMESTAMP,
    OVERHEAD_BYTES,
    BatchHeader,
    batch_crc,
    iterate_records,
    read_batch_header,
    write_crc,
)
from wirebroker.storage.recompression import MAX_DECOMPRESSED_BYTES, Compression, recompress

if TYPE_CHECKING:
    from wirebroker.config_topic import TopicSettings

# The lengths at which Kafka gives up reading a batch: without its length, without its magic.
_MAGIC_END: Final = 17
# The smallest length field any message format has had.
_SMALLEST_LENGTH: Final = 14
_ATTRIBUTES: Final = Struct(">h")
_ATTRIBUTES_POSITION: Final = 21
_MAX_TIMESTAMP: Final = Struct(">q")
_MAX_TIMESTAMP_POSITION: Final = 35


class RecordError(NamedTuple):
    """Why one record of a refused batch was refused."""

    batch_index: int
    message: str


class RefusedBatchError(KafkaError):
    """A batch is not accepted.

    Attributes:
        record_errors: The records at fault, where it was single ones.
        is_request_fault: The request itself is malformed: Kafka answers before it looks at the
            partition, so without a log start offset.
    """

    __slots__ = ("is_request_fault", "record_errors")

    def __init__(
        self,
        code: ErrorCode,
        message: str,
        *,
        record_errors: tuple[RecordError, ...] = (),
        is_request_fault: bool = False,
    ) -> None:
        super().__init__(code, message)
        self.record_errors = record_errors
        self.is_request_fault = is_request_fault


class BatchValidator:
    """The checks, for one topic's settings."""

    __slots__ = (
        "_after_max_ms",
        "_before_max_ms",
        "_is_compacted",
        "_log_append_time",
        "_target",
        "max_message_bytes",
    )

    def __init__(self, settings: TopicSettings) -> None:
        self.max_message_bytes = settings.max_message_bytes
        self._is_compacted = settings.is_compacted
        self._log_append_time = settings.message_timestamp_type == "LogAppendTime"
        self._before_max_ms = settings.message_timestamp_before_max_ms
        self._after_max_ms = settings.message_timestamp_after_max_ms
        self._target: Compression | None = Compression.of(settings)  # None: as the producer chose

    def validate(
        self, records: memoryview, *, now_ms: int, request_version: int
    ) -> tuple[memoryview, BatchHeader]:
        """Check the one batch of a partition in a Produce request. On the hot path: 2.5 us.

        Args:
            records: The partition's bytes, writable. Where the topic asks for LogAppendTime they
                are changed in place.
            now_ms: The broker's time.
            request_version: Of the Produce request.

        Returns:
            The bytes to store (a part of `records`, or new ones if recompressed) and their header,
            which still has base_offset 0.

        Raises:
            RefusedBatchError: The batch is not accepted.
        """
        header = checked_header(records)
        if header is None:
            records, header = self._look_closely(records, request_version)
        else:
            if request_version < 7:
                _check_codec(header, request_version)
            if len(records) > self.max_message_bytes:
                raise self._too_large(len(records))
        if self._log_append_time or self._is_compacted or self._target is not None:
            return self._adapt(records, header, now_ms)
        if (
            header.max_timestamp - now_ms > self._after_max_ms
            or now_ms - header.base_timestamp > self._before_max_ms
            or header.attributes & LOG_APPEND_TIME_FLAG
        ):
            return self._settle_timestamps(records, header, now_ms)
        return records, header

    def _look_closely(
        self, records: memoryview, request_version: int
    ) -> tuple[memoryview, BatchHeader]:
        """Do steps 1 to 3 one after the other: find what is at fault, or that nothing is."""
        if len(records) < _MAGIC_END or records[16] != MAGIC:
            raise _explain_shape(records)
        try:
            header = read_batch_header(records)
        except KafkaError as error:
            raise _refuse_shape(error, records) from None
        size = header.length + OVERHEAD_BYTES
        if size != len(records):
            records = _only_batch(records, size)
        _check_codec(header, request_version)
        if header.base_offset != 0:
            raise RefusedBatchError(
                ErrorCode.INVALID_RECORD, f"base_offset is {header.base_offset}, it must be 0"
            )
        if size > self.max_message_bytes:
            raise self._too_large(size)
        if batch_crc(records, 0, size) != header.crc:
            raise RefusedBatchError(ErrorCode.CORRUPT_MESSAGE, "the CRC differs")
        _check_fields(header)
        return records, header

    def _adapt(
        self, records: memoryview, header: BatchHeader, now_ms: int
    ) -> tuple[memoryview, BatchHeader]:
        """Take a batch for a topic with compaction, LogAppendTime or its own compression."""
        if self._is_compacted:
            self._check_records(records, header, now_ms)
        if self._log_append_time:
            if header.attributes & LOG_APPEND_TIME_FLAG:
                raise self._refused_log_append_time(header)
        else:
            records, header = self._settle_timestamps(records, header, now_ms)
        if self._target is not None and self._target.codec != header.attributes & CODEC_MASK:
            records = recompress(records, header, self._target)
            if len(records) > self.max_message_bytes:
                raise self._too_large(len(records))
            header = read_batch_header(records)
        if self._log_append_time:
            header = _stamp(records, max_timestamp=now_ms, is_log_append_time=True)
        return records, header

    def _settle_timestamps(
        self, records: memoryview, header: BatchHeader, now_ms: int
    ) -> tuple[memoryview, BatchHeader]:
        """Let the records decide where the header's timestamps cannot be right."""
        is_stamped = bool(header.attributes & LOG_APPEND_TIME_FLAG)
        if (
            not is_stamped
            and header.max_timestamp - now_ms <= self._after_max_ms
            and now_ms - header.base_timestamp <= self._before_max_ms
        ):
            return records, header
        max_timestamp = self._check_records(records, header, now_ms)
        if is_stamped or max_timestamp != header.max_timestamp:
            header = _stamp(records, max_timestamp=max_timestamp, is_log_append_time=False)
        return records, header

    def _check_records(self, records: memoryview, header: BatchHeader, now_ms: int) -> int:
        """Walk the records; raise with those at fault, or return the largest timestamp."""
        errors: list[RecordError] = []
        is_time_refused = False
        max_timestamp = NO_TIMESTAMP
        earliest, latest = now_ms - self._before_max_ms, now_ms + self._after_max_ms
        walk = iterate_records(records, header, max_bytes=MAX_DECOMPRESSED_BYTES)
        for index, record in enumerate(walk):
            timestamp = record.timestamp
            if self._is_compacted and record.key is None:
                errors.append(RecordError(index, "A compacted topic takes no record without a key"))
            elif (
                not self._log_append_time
                and timestamp != NO_TIMESTAMP
                and not earliest <= timestamp <= latest
            ):
                is_time_refused = True
                bounds = f"[{earliest}, {latest}]"
                errors.append(RecordError(index, f"Timestamp {timestamp} is not within {bounds}"))
            max_timestamp = max(max_timestamp, timestamp)
        if errors:
            raise _refused_records(errors, is_time_refused=is_time_refused)
        return max_timestamp

    def _refused_log_append_time(self, header: BatchHeader) -> RefusedBatchError:
        reason = "A producer must not set the timestamp type LogAppendTime"
        errors = [RecordError(index, reason) for index in range(header.record_count)]
        return _refused_records(errors, is_time_refused=True)

    def _too_large(self, size: int) -> RefusedBatchError:
        return RefusedBatchError(
            ErrorCode.MESSAGE_TOO_LARGE,
            f"the batch has {size} bytes, max.message.bytes is {self.max_message_bytes}",
        )


def _refused_records(errors: list[RecordError], *, is_time_refused: bool) -> RefusedBatchError:
    if is_time_refused:
        code, reason = ErrorCode.INVALID_TIMESTAMP, "their timestamps"
    else:
        code, reason = ErrorCode.INVALID_RECORD, f"for example: {errors[0].message}"
    return RefusedBatchError(
        code, f"{len(errors)} records were refused for {reason}", record_errors=tuple(errors)
    )


def _stamp(records: memoryview, *, max_timestamp: int, is_log_append_time: bool) -> BatchHeader:
    """Set timestamp type and max_timestamp of the batch in place, and its CRC."""
    (attributes,) = _ATTRIBUTES.unpack_from(records, _ATTRIBUTES_POSITION)
    attributes &= ~LOG_APPEND_TIME_FLAG
    if is_log_append_time:
        attributes |= LOG_APPEND_TIME_FLAG
    _ATTRIBUTES.pack_into(records, _ATTRIBUTES_POSITION, attributes)
    _MAX_TIMESTAMP.pack_into(records, _MAX_TIMESTAMP_POSITION, max_timestamp)
    write_crc(records, 0)
    return read_batch_header(records)


def _check_codec(header: BatchHeader, request_version: int) -> None:
    if request_version < 7 and header.attributes & CODEC_MASK == Codec.ZSTD:
        raise RefusedBatchError(
            ErrorCode.UNSUPPORTED_COMPRESSION_TYPE,
            f"zstd needs Produce v7, this is v{request_version}",
            is_request_fault=True,
        )


def _check_fields(header: BatchHeader) -> None:
    """Check step 3 field by field; bits that have no meaning are let through, as Kafka does."""
    count = header.record_count
    reason = None
    if header.attributes & CODEC_MASK > Codec.ZSTD:
        # Kafka runs into an internal error here; a client must see the same.
        raise RefusedBatchError(ErrorCode.UNKNOWN_SERVER_ERROR, "the compression type is not known")
    if header.last_offset_delta < 0:
        reason = f"last_offset_delta is {header.last_offset_delta}"
    elif count <= 0:
        reason = f"the batch declares {count} records"
    elif header.last_offset_delta + 1 != count:
        reason = f"the batch declares {count} records, its offsets {header.last_offset_delta + 1}"
    elif header.attributes & CONTROL_FLAG:
        reason = "clients don't write control batches"
    elif not header.attributes & CODEC_MASK and (
        count * SMALLEST_RECORD_BYTES > header.size - HEADER_BYTES
    ):
        # Compressed ones are believed: their records are not looked at.
        reason = f"{count} records don't fit {header.size - HEADER_BYTES} bytes"
    elif header.producer_id >= 0 and header.base_sequence < 0:
        reason = f"producer {header.producer_id} sent the sequence {header.base_sequence}"
    if reason is not None:
        raise RefusedBatchError(ErrorCode.INVALID_RECORD, reason)


def _explain_shape(records: memoryview) -> RefusedBatchError:
    """Say why the bytes don't begin with a batch of magic 2."""
    available = len(records)
    length = int.from_bytes(records[8:12], "big", signed=True) if available >= 12 else None
    if length is not None and length < _SMALLEST_LENGTH:
        code, reason = ErrorCode.CORRUPT_MESSAGE, f"a batch has the length {length}"
    elif length is None or available < _MAGIC_END:
        code, reason = ErrorCode.INVALID_RECORD, "there is no record batch"
    elif records[16] > MAGIC:
        code, reason = ErrorCode.CORRUPT_MESSAGE, f"a batch has the magic {records[16]}"
    elif length + OVERHEAD_BYTES > available:
        code, reason = ErrorCode.INVALID_RECORD, "there is no whole record batch"
    else:
        code, reason = ErrorCode.INVALID_RECORD, f"message format {records[16]} is not accepted"
    return RefusedBatchError(code, reason, is_request_fault=True)


def _refuse_shape(error: KafkaError, records: memoryview) -> RefusedBatchError:
    """Turn the header reader's complaint into Kafka's answer: a cut-off batch is no batch."""
    length = int.from_bytes(records[8:12], "big", signed=True)
    if length + OVERHEAD_BYTES > len(records):
        return RefusedBatchError(
            ErrorCode.INVALID_RECORD, "there is no whole record batch", is_request_fault=True
        )
    return RefusedBatchError(ErrorCode.CORRUPT_MESSAGE, error.message or "", is_request_fault=True)


def _only_batch(records: memoryview, size: int) -> memoryview:
    """Cut what follows the first batch, if it is no second one.

    Raises:
        RefusedBatchError: The first batch is not whole, or more follows than the start of another.
    """
    rest = records[size:]
    if size > len(records):
        refusal = (ErrorCode.INVALID_RECORD, "there is no whole record batch")
    elif len(rest) < OVERHEAD_BYTES:
        return records[:size]
    else:
        length = int.from_bytes(rest[8:12], "big", signed=True)
        has_magic = len(rest) >= _MAGIC_END
        if length < _SMALLEST_LENGTH or (has_magic and rest[16] > MAGIC):
            refusal = (ErrorCode.CORRUPT_MESSAGE, "what follows the first batch is no batch")
        elif not has_magic or len(rest) < length + OVERHEAD_BYTES:
            return records[:size]
        else:
            refusal = (ErrorCode.INVALID_RECORD, "a partition takes exactly one batch per request")
    raise RefusedBatchError(*refusal, is_request_fault=True)
