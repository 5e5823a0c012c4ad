"""The checks of a client's batch before its records: shape and header.

Source: Kafka's ProduceRequest.validateRecords, ByteBufferLogInputStream, LogValidator.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.codecs.records.batch import BatchHeader, read_batch_header
from wirebroker.codecs.records.codec import Codec
from wirebroker.codecs.records.layout import (
    CODEC_MASK,
    CONTROL_FLAG,
    HEADER_BYTES,
    LENGTH,
    LENGTH_AT,
    MAGIC,
    MAGIC_AT,
    OVERHEAD_BYTES,
)
from wirebroker.codecs.records.plain_batch import SMALLEST_RECORD_BYTES

MAGIC_END: Final = MAGIC_AT + 1
# The smallest of any message format.
SMALLEST_LENGTH: Final = 14
# Kafka fails on batches whose size exceeds 31 bits.
LARGEST_LENGTH: Final = 2**31 - 1 - OVERHEAD_BYTES

# Older clients may be unable to read zstd (KIP-110).
ZSTD_VERSION: Final = 7


class RecordError(NamedTuple):
    """The error of one record."""

    batch_index: int
    message: str


class RefusedBatchError(KafkaError):
    """The batch is refused.

    Attributes:
        record_errors: The individual invalid records; empty if the whole batch is refused.
        is_request_fault: The request is malformed; Kafka then responds without a log start offset.
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


def check_start(records: memoryview) -> None:
    """Refuse bytes that cannot start a batch of any format.

    Raises:
        RefusedBatchError: CORRUPT_MESSAGE; UNKNOWN_SERVER_ERROR above LARGEST_LENGTH.
    """
    if len(records) < OVERHEAD_BYTES:
        return
    length = LENGTH.unpack_from(records, LENGTH_AT)[0]
    has_magic = len(records) >= MAGIC_END
    if length < SMALLEST_LENGTH or (has_magic and records[MAGIC_AT] > MAGIC):
        raise _explain_shape(records)
    if has_magic and length > LARGEST_LENGTH:
        raise _too_long(length)


def only_header(records: memoryview) -> tuple[memoryview, BatchHeader]:
    """Return the only batch and its header, without incomplete bytes after it.

    Raises:
        RefusedBatchError: The shape is invalid.
    """
    if len(records) < MAGIC_END or records[MAGIC_AT] != MAGIC:
        raise _explain_shape(records)
    try:
        header = read_batch_header(records)
    except KafkaError as error:
        raise _refuse_shape(error, records) from None
    size = header.length + OVERHEAD_BYTES
    if size != len(records):
        records = _only_batch(records, size)
    return records, header


def check_codec(header: BatchHeader, request_version: int) -> None:
    """Refuse zstd in a request version whose clients cannot read it."""
    if request_version < ZSTD_VERSION and header.attributes & CODEC_MASK == Codec.ZSTD:
        raise RefusedBatchError(
            ErrorCode.UNSUPPORTED_COMPRESSION_TYPE,
            f"zstd needs Produce v7, this is v{request_version}",
            is_request_fault=True,
        )


def check_fields(header: BatchHeader) -> None:
    """Check the header's fields; unknown attribute bits are accepted, as in Kafka."""
    count = header.record_count
    reason = None
    if header.attributes & CODEC_MASK > Codec.ZSTD:
        # Kafka fails with this internal error.
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
        # For compressed records, record_validation.py checks it.
        reason = f"{count} records don't fit {header.size - HEADER_BYTES} bytes"
    elif header.producer_id >= 0 and header.base_sequence < 0:
        reason = f"producer {header.producer_id} sent the sequence {header.base_sequence}"
    if reason is not None:
        raise RefusedBatchError(ErrorCode.INVALID_RECORD, reason)


def _explain_shape(records: memoryview) -> RefusedBatchError:
    available = len(records)
    length = LENGTH.unpack_from(records, LENGTH_AT)[0] if available >= OVERHEAD_BYTES else None
    if length is not None and length < SMALLEST_LENGTH:
        code, reason = ErrorCode.CORRUPT_MESSAGE, f"a batch has the length {length}"
    elif length is None or available < MAGIC_END:
        code, reason = ErrorCode.INVALID_RECORD, "there is no record batch"
    elif records[MAGIC_AT] > MAGIC:
        code, reason = ErrorCode.CORRUPT_MESSAGE, f"a batch has the magic {records[MAGIC_AT]}"
    elif length + OVERHEAD_BYTES > available:
        code, reason = ErrorCode.INVALID_RECORD, "there is no complete record batch"
    else:
        magic = records[MAGIC_AT]
        code, reason = ErrorCode.INVALID_RECORD, f"message format {magic} is not accepted"
    return RefusedBatchError(code, reason, is_request_fault=True)


def _too_long(length: int) -> RefusedBatchError:
    return RefusedBatchError(
        ErrorCode.UNKNOWN_SERVER_ERROR, f"a batch has the length {length}", is_request_fault=True
    )


def _refuse_shape(error: KafkaError, records: memoryview) -> RefusedBatchError:
    """Return Kafka's error: INVALID_RECORD for an incomplete batch, otherwise CORRUPT_MESSAGE."""
    length = LENGTH.unpack_from(records, LENGTH_AT)[0]
    if length + OVERHEAD_BYTES > len(records):
        return RefusedBatchError(
            ErrorCode.INVALID_RECORD, "there is no complete record batch", is_request_fault=True
        )
    return RefusedBatchError(ErrorCode.CORRUPT_MESSAGE, error.message or "", is_request_fault=True)


def _only_batch(records: memoryview, size: int) -> memoryview:
    """Remove an incomplete batch after the first one; refuse other data."""
    rest = records[size:]
    if size > len(records):
        refusal = (ErrorCode.INVALID_RECORD, "there is no complete record batch")
    elif len(rest) < OVERHEAD_BYTES:
        return records[:size]
    else:
        length = LENGTH.unpack_from(rest, LENGTH_AT)[0]
        has_magic = len(rest) >= MAGIC_END
        if length < SMALLEST_LENGTH or (has_magic and rest[MAGIC_AT] > MAGIC):
            refusal = (ErrorCode.CORRUPT_MESSAGE, "the bytes after the first batch are not a batch")
        elif has_magic and length > LARGEST_LENGTH:
            raise _too_long(length)
        elif not has_magic or len(rest) < length + OVERHEAD_BYTES:
            return records[:size]
        else:
            refusal = (ErrorCode.INVALID_RECORD, "a partition takes exactly one batch per request")
    raise RefusedBatchError(*refusal, is_request_fault=True)
