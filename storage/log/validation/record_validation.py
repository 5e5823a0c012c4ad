"""The validation of the records in a client's batch, decompressed in pieces.

The scan runs in steps, because a small batch may decompress to a large one. With the pure Python
walker, a long one runs in slices instead of a thread.

Kafka stores some batches that stop readers, or that have other offsets than the log. They are
refused here: compressed records whose length differs from that of their parts, offset deltas other
than 0, 1, 2, ..., numbers with too many bits, bytes after a gzip, snappy or LZ4 stream, and a wrong
LZ4 content checksum.

Source: Kafka's LogValidator, DefaultRecordBatch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from wirebroker.codecs.errors import ErrorCode, KafkaError, TooLargeError
from wirebroker.codecs.records.batch import NO_TIMESTAMP
from wirebroker.codecs.records.compression import unpack
from wirebroker.codecs.records.decompression_limits import MAX_DECOMPRESSED_BYTES
from wirebroker.codecs.records.layout import HEADER_BYTES, LOG_APPEND_TIME_FLAG
from wirebroker.codecs.records.walk import IS_QUICK, MAX_REFUSED, RecordWalker, Refused
from wirebroker.codecs.records.whole_records import LONG_MAX, LONG_MIN
from wirebroker.storage.log.validation.batch_shape import RecordError, RefusedBatchError
from wirebroker.storage.long_work import TakesLongError

if TYPE_CHECKING:
    from collections.abc import Generator

    from wirebroker.codecs.records.batch import BatchHeader
    from wirebroker.codecs.records.codec import Codec
    from wirebroker.config.rows.topic import TopicSettings

# Covers a client's default batch (1 MiB); 5 ms with gzip.
BRIEF_BYTES: Final = 5 << 18
# Pure Python takes a millisecond for 1,000.
BRIEF_RECORDS: Final = (1 << 31) - 1 if IS_QUICK else 3000
# For pure Python: a few records may have very many headers.
_BRIEF_EFFORT: Final = 4000
# Very many pieces decompress slowly.
_BRIEF_STEPS: Final = 512
# Pure Python takes 4 ms for 4 KiB in an incomplete record.
_STEP_BYTES: Final = 1 << 20 if IS_QUICK else 1 << 12
# Quoted in the message of a refused batch, as in Kafka.
_MOST_SHOWN: Final = 3


class Walked(NamedTuple):
    """The result of a scan of a batch's records."""

    fault: KafkaError | None  # of the whole batch
    max_timestamp: int
    refused: list[Refused]  # the first invalid records
    refused_count: int  # of all invalid records
    is_time_refused: bool  # one of them has an invalid timestamp
    unpacked_bytes: int


class RecordValidator:
    """The rules for records under one topic's settings."""

    __slots__ = (
        "_after_max_ms",
        "_before_max_ms",
        "_codec",
        "_directory",
        "_log_append_time",
        "_most_bytes",
        "_needs_key",
    )

    def __init__(self, settings: TopicSettings, codec: Codec | None, directory: str) -> None:
        """Create a validator; stored batches get `codec`, or keep the producer's."""
        self._directory = directory
        self._codec = codec
        self._needs_key = settings.is_compacted
        self._log_append_time = settings.message_timestamp_type == "LogAppendTime"
        self._before_max_ms = settings.message_timestamp_before_max_ms
        self._after_max_ms = settings.message_timestamp_after_max_ms
        self._most_bytes = settings.max_decompressed_message_bytes

    def is_within_bounds(self, header: BatchHeader, now_ms: int) -> bool:
        """Return whether the header's timestamps are within the topic's bounds."""
        return (
            header.max_timestamp - now_ms <= self._after_max_ms
            and now_ms - header.base_timestamp <= self._before_max_ms
        )

    def walk(
        self,
        records: memoryview,
        header: BatchHeader,
        *,
        now_ms: int,
        max_bytes: int = MAX_DECOMPRESSED_BYTES,
        most_effort: int = LONG_MAX,
    ) -> Generator[None, None, Walked]:
        """Scan the records of a batch with a valid header, in steps.

        `records` is the whole batch, `max_bytes` the maximum uncompressed size, `most_effort` the
        maximum effort of the pure Python walker.

        Raises:
            TooLargeError: The records exceed a `max_bytes` below the general maximum.
            TakesLongError: The scan exceeds `most_effort`.
        """
        is_stamped = bool(header.attributes & LOG_APPEND_TIME_FLAG)
        earliest, latest = self._bounds(header, now_ms)
        codec = header.codec
        if self._is_recompressed(codec) and not is_stamped:
            earliest = max(earliest, NO_TIMESTAMP)  # `judge` distinguishes the two causes
        walker = RecordWalker(
            header.record_count,
            header.base_timestamp,
            earliest,
            latest,
            self._needs_key,
            self._most_bytes if codec else LONG_MAX,
        )
        data = records[HEADER_BYTES : header.size]
        fault: KafkaError | None = None
        unpacked_bytes = 0
        try:
            for piece in unpack(codec, data, max_bytes=max_bytes if codec else len(data)):
                unpacked_bytes += len(piece)
                is_well = yield from _feed(walker, piece, most_effort)
                if not is_well:
                    break
        except TooLargeError as error:
            if max_bytes < MAX_DECOMPRESSED_BYTES:
                raise
            # Kafka has no such limit.
            fault = RefusedBatchError(ErrorCode.MESSAGE_TOO_LARGE, error.message or "")
        except KafkaError as refusal:
            code = refusal.code
            if code == ErrorCode.CORRUPT_MESSAGE:
                code = ErrorCode.UNKNOWN_SERVER_ERROR  # Kafka has no better error code for it
            fault = RefusedBatchError(code, refusal.message or "")
        if fault is None and walker.fault is not None:
            fault = RefusedBatchError(ErrorCode.INVALID_RECORD, walker.fault)
        return Walked(
            fault,
            header.max_timestamp if is_stamped else walker.max_timestamp,
            walker.refused,
            walker.refused_count,
            walker.is_time_refused,
            unpacked_bytes,
        )

    def briefly(self, records: memoryview, header: BatchHeader, *, now_ms: int) -> Walked:
        """Scan a batch on the event loop; raise TakesLongError instead of blocking it for long."""
        if header.record_count > BRIEF_RECORDS:
            raise TakesLongError
        steps = self.walk(
            records, header, now_ms=now_ms, max_bytes=BRIEF_BYTES, most_effort=_BRIEF_EFFORT
        )
        try:
            for _ in range(_BRIEF_STEPS):
                next(steps)
        except StopIteration as end:
            walked: Walked = end.value
            return walked
        except TooLargeError:
            pass
        raise TakesLongError

    def at_length(self, records: memoryview, header: BatchHeader, *, now_ms: int) -> Walked:
        """Scan a batch in a thread, or inline where latency does not matter."""
        steps = self.walk(records, header, now_ms=now_ms)
        while True:
            try:
                next(steps)
            except StopIteration as end:
                walked: Walked = end.value
                return walked

    def judge(self, header: BatchHeader, walked: Walked, *, now_ms: int) -> None:
        """Raise RefusedBatchError if the batch, or a record, is invalid."""
        if walked.fault is not None:
            raise walked.fault
        if header.attributes & LOG_APPEND_TIME_FLAG:
            self._judge_stamped(header, now_ms)
        if walked.refused_count:
            if self._is_recompressed(header.codec):
                walked = self._within_bounds(header, walked, now_ms)
            errors = [
                RecordError(index, self._reason(index, timestamp, now_ms))
                for index, timestamp in walked.refused
            ]
            raise _refused_records(
                errors, walked.refused_count, is_time_refused=walked.is_time_refused
            )

    def _bounds(self, header: BatchHeader, now_ms: int) -> tuple[int, int]:
        if self._log_append_time or header.attributes & LOG_APPEND_TIME_FLAG:
            return LONG_MIN, LONG_MAX
        earliest = max(now_ms - self._before_max_ms, LONG_MIN)
        return earliest, min(now_ms + self._after_max_ms, LONG_MAX)

    def _is_recompressed(self, codec: Codec) -> bool:
        return self._codec is not None and self._codec is not codec

    def _within_bounds(self, header: BatchHeader, walked: Walked, now_ms: int) -> Walked:
        """Drop the refused records whose only fault is a timestamp below -1.

        Raises:
            RefusedBatchError: UNKNOWN_SERVER_ERROR if none is left: Kafka's MemoryRecordsBuilder
                fails on such records, after the validation of single records.
        """
        earliest, _ = self._bounds(header, now_ms)
        faulty = [
            refusal for refusal in walked.refused if not _is_before_all_time(refusal[1], earliest)
        ]
        if not faulty:
            raise _before_all_time()
        return walked._replace(
            refused=faulty,
            refused_count=walked.refused_count - (len(walked.refused) - len(faulty)),
            is_time_refused=any(timestamp is not None for _, timestamp in faulty),
        )

    def _judge_stamped(self, header: BatchHeader, now_ms: int) -> None:
        stamp = header.max_timestamp
        if self._log_append_time or stamp == NO_TIMESTAMP:
            reason = (
                "Invalid timestamp type in message: Producer should not set timestamp type to"
                " LogAppendTime."
            )
        elif stamp - now_ms > self._after_max_ms or now_ms - stamp > self._before_max_ms:
            reason = None
        elif stamp < NO_TIMESTAMP and self._is_recompressed(header.codec):
            raise _before_all_time()
        else:
            return
        count = header.record_count
        errors = [
            RecordError(index, reason or self._reason(index, stamp, now_ms))
            for index in range(min(count, MAX_REFUSED))
        ]
        raise _refused_records(errors, count, is_time_refused=True)

    def _reason(self, index: int, timestamp: int | None, now_ms: int) -> str:
        if timestamp is None:
            partition = self._directory.rpartition("/")[2]
            return (
                f"Compacted topic cannot accept message without key in topic partition {partition}"
            )
        earliest, latest = now_ms - self._before_max_ms, now_ms + self._after_max_ms
        return (
            f"Timestamp {timestamp} of message with offset {index} is out of range. The timestamp"
            f" should be within [{earliest}, {latest}]"
        )


def _feed(
    walker: RecordWalker, piece: bytes | bytearray | memoryview, most_effort: int
) -> Generator[None, None, bool]:
    """Scan a piece, yielding after each step; return False to stop."""
    if len(piece) <= _STEP_BYTES:
        is_well = walker.feed(piece)
        if not IS_QUICK and walker.effort > most_effort:
            raise TakesLongError
        yield
        return is_well
    view = memoryview(piece)
    for start in range(0, len(view), _STEP_BYTES):
        if not walker.feed(view[start : start + _STEP_BYTES]):
            return False
        if not IS_QUICK and walker.effort > most_effort:
            raise TakesLongError
        yield
    return True


def _is_before_all_time(timestamp: int | None, earliest: int) -> bool:
    return timestamp is not None and earliest <= timestamp < NO_TIMESTAMP


def _before_all_time() -> RefusedBatchError:
    return RefusedBatchError(ErrorCode.UNKNOWN_SERVER_ERROR, "a record's timestamp is below -1")


def _refused_records(
    errors: list[RecordError], count: int, *, is_time_refused: bool
) -> RefusedBatchError:
    if is_time_refused:
        code = ErrorCode.INVALID_TIMESTAMP
        text = "One or more records have been rejected due to invalid timestamp"
    else:
        code = ErrorCode.INVALID_RECORD
        shown_errors = ", ".join(
            f"RecordError(batchIndex={error.batch_index}, message='{error.message}')"
            for error in errors[:_MOST_SHOWN]
        )
        text = (
            f"One or more records have been rejected due to {count} record errors in total, and"
            f" only showing the first three errors at most: [{shown_errors}]"
        )
    return RefusedBatchError(code, text, record_errors=tuple(errors))
