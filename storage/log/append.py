"""The plan and the result of an append, and the checks of batches from brokers."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Final

from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.codecs.records.batch import (
    BatchHeader,
    batch_crc,
    iterate_batches,
    read_batch_header,
    set_base_offset_and_epoch,
)
from wirebroker.codecs.records.checksum import crc32c
from wirebroker.codecs.records.layout import HEADER_BYTES
from wirebroker.storage.log.segment.segment_recovery import MAX_RELATIVE_OFFSET

if TYPE_CHECKING:
    from wirebroker.config.rows.topic import TopicSettings
    from wirebroker.storage.log.producers.producer_entry import ProducedBatch
    from wirebroker.storage.log.segment.segment import Segment
    from wirebroker.storage.log.segment.segment_write import SegmentWrite


class AppendOrigin(Enum):
    """The source of batches, which decides what is validated (Kafka's AppendOrigin)."""

    CLIENT = "client"
    COORDINATOR = "coordinator"  # this broker


class AppendResult:
    """The fields of a Produce response for one partition.

    Attributes:
        log_append_time_ms: -1 with CreateTime; for a retry the first attempt's timestamp, as in
            Kafka.
        is_duplicate: Whether it was a retry; nothing was appended.
    """

    __slots__ = (
        "base_offset",
        "is_duplicate",
        "last_offset",
        "log_append_time_ms",
        "log_start_offset",
    )

    def __init__(
        self,
        base_offset: int,
        last_offset: int,
        log_append_time_ms: int,
        log_start_offset: int,
        *,
        is_duplicate: bool,
    ) -> None:
        self.base_offset = base_offset
        self.last_offset = last_offset
        self.log_append_time_ms = log_append_time_ms
        self.log_start_offset = log_start_offset
        self.is_duplicate = is_duplicate


class AppendPlan:
    """A validated append that may be written."""

    __slots__ = (
        "base_offset",
        "duplicate_of",
        "headers",
        "last_offset",
        "log_append_time_ms",
        "max_timestamp",
        "now_ms",
        "records",
        "segment",
        "segment_write",
    )

    def __init__(
        self,
        records: memoryview,
        headers: tuple[BatchHeader, ...],
        *,
        now_ms: int,
        log_append_time_ms: int = -1,
        duplicate_of: ProducedBatch | None = None,
    ) -> None:
        self.records = records  # whole batches
        self.headers = headers  # with final offsets, as in the records
        first, last = headers[0], headers[-1]
        self.base_offset = first.base_offset
        self.last_offset = last.base_offset + last.last_offset_delta
        self.max_timestamp = first.max_timestamp
        if first is not last:
            self.max_timestamp = max(header.max_timestamp for header in headers)
        self.now_ms = now_ms
        self.log_append_time_ms = log_append_time_ms
        self.duplicate_of = duplicate_of  # set for a retry
        self.segment: Segment | None = None  # set by write
        self.segment_write: SegmentWrite | None = None


def must_roll(segment: Segment, plan: AppendPlan, settings: TopicSettings) -> bool:
    """Return whether a plan's batches require a new segment (Kafka's LogSegment.shouldRoll).

    A segment's age is measured between record timestamps, if there are any. The caller checks
    whether an index is full.
    """
    size = segment.size
    if size + len(plan.records) > settings.segment_bytes:
        return True
    if plan.last_offset - segment.base_offset > MAX_RELATIVE_OFFSET:
        return True
    if size == 0:
        return False
    first_timestamp = segment.first_batch_timestamp
    if first_timestamp is not None and first_timestamp >= 0:
        waited_ms = plan.max_timestamp - first_timestamp
    else:
        waited_ms = plan.now_ms - segment.created_ms
    if (
        waited_ms <= settings.segment_ms
        and waited_ms <= settings.max_compaction_lag_ms
        and not settings.segment_jitter_ms
    ):
        return False
    limit_ms = settings.max_segment_ms
    if settings.segment_jitter_ms:
        limit_ms -= _jitter_ms(segment, min(settings.segment_jitter_ms, limit_ms))
    return waited_ms > limit_ms


def _jitter_ms(segment: Segment, bound_ms: int) -> int:
    return crc32c(segment.log.path.encode()) % bound_ms if bound_ms else 0


# The last offset of the longest batch must still be an int64.
_LAST_BASE_OFFSET: Final = (1 << 63) - (1 << 31) - 2


def check_room(base_offset: int) -> None:
    """Refuse an append to a log without free offsets, which only a damaged directory can have."""
    if base_offset > _LAST_BASE_OFFSET:
        raise KafkaError(
            ErrorCode.UNKNOWN_SERVER_ERROR, f"the log ends at {base_offset}: no offsets are left"
        )


def number_batches(
    records: memoryview, base_offset: int, leader_epoch: int
) -> tuple[BatchHeader, ...]:
    """Assign offsets to this broker's own batches, in place."""
    headers: list[BatchHeader] = []
    for position, header in iterate_batches(records):
        assert header.last_offset_delta >= 0, header
        set_base_offset_and_epoch(records, position, base_offset, leader_epoch)
        headers.append(read_batch_header(records, position))
        base_offset += header.last_offset_delta + 1
    assert headers, "there is nothing to append"
    return tuple(headers)


def check_fetched(
    view: memoryview, next_offset: int, leader_epoch: int | None
) -> list[BatchHeader]:
    """Return the headers of the whole batches that continue the log at `next_offset`."""
    headers: list[BatchHeader] = []
    position = 0
    while len(view) - position >= HEADER_BYTES:
        header = read_batch_header(view, position)
        size = header.size
        if size > len(view) - position:
            break
        if leader_epoch is not None and header.leader_epoch > leader_epoch:
            break
        if batch_crc(view, position, size) != header.crc or header.last_offset_delta < 0:
            raise KafkaError(
                ErrorCode.CORRUPT_MESSAGE, f"the batch at {header.base_offset} is corrupt"
            )
        check_room(header.base_offset)
        if header.base_offset < next_offset:
            raise KafkaError(
                ErrorCode.UNKNOWN_SERVER_ERROR,
                f"a batch at {header.base_offset} cannot follow, the log ends at {next_offset}",
            )
        headers.append(header)
        next_offset = header.last_offset + 1
        position += size
    return headers
