"""Looking things up in a log: the slice that answers a Fetch, records by timestamp.

Source: Kafka's LocalLog.read, UnifiedLog.fetchOffsetByTimestamp.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from wirebroker.codecs.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from wirebroker.storage.files import FileSlice
    from wirebroker.storage.log import Log
    from wirebroker.storage.segment import Segment, TimestampedOffset
    from wirebroker.storage.transaction_index import AbortedTransaction


class DetachedLog(NamedTuple):
    """A log as it was at some moment: a thread may search it while the log goes on.

    Searching by timestamp reads files, unpacks and walks a whole batch in the end, and moves the
    small memories of indexes and segments, which only one thread may do.
    """

    closed: Sequence[Segment]  # the log's own, of which the thread makes twins
    active: Segment
    log_start_offset: int

    @classmethod
    def of(cls, log: Log) -> DetachedLog:
        """Take what a search needs; of all segments only the active one is looked at."""
        *closed, active = log.segments
        return cls(closed, active.detached(), log.log_start_offset)

    @property
    def segments(self) -> Iterator[Segment]:
        """Its segments, oldest first."""
        for segment in self.closed:
            yield segment.detached_closed()
        yield self.active

    def offset_for_timestamp(
        self, timestamp_ms: int, *, up_to_offset: int
    ) -> TimestampedOffset | None:
        """Do what Log.offset_for_timestamp does."""
        return find_offset_for_timestamp(self, timestamp_ms, up_to_offset=up_to_offset)

    def offset_of_max_timestamp(self, *, up_to_offset: int) -> TimestampedOffset | None:
        """Do what Log.offset_of_max_timestamp does."""
        return find_max_timestamp(self, up_to_offset=up_to_offset)


class LogRead(NamedTuple):
    """What read() found."""

    slice: FileSlice | None  # None: nothing to see at this offset (yet), or it does not fit
    fetch_offset: int
    segment: Segment | None = None  # that the slice is of


def read_log(log: Log, offset: int, max_bytes: int, *, up_to_offset: int, min_one: bool) -> LogRead:
    """Do what Log.read says."""
    end_offset = log.log_end_offset
    if not log.log_start_offset <= offset <= end_offset:
        raise KafkaError(
            ErrorCode.OFFSET_OUT_OF_RANGE,
            f"offset {offset} is outside of {log.log_start_offset} to {end_offset}",
        )
    if offset >= up_to_offset or offset == end_offset:
        return LogRead(None, offset)
    segments = log.segments
    index = segments.floor_index(offset)
    assert index >= 0, "the first segment begins at or before log_start_offset"
    while index < len(segments):
        segment = segments[index]
        end_position = segment.size
        if up_to_offset < end_offset:
            end_position = _visible_end(segment, up_to_offset)
        found = segment.read_slice(offset, max_bytes, end_position=end_position, min_one=min_one)
        if found is not None:
            if not found.length or _is_cut_batch(segment, offset, found, min_one=min_one):
                return LogRead(None, offset)
            return LogRead(found, offset, segment)
        # Compaction has removed the rest of this segment: the next batch is in a later one.
        index += 1
    return LogRead(None, offset)


def find_aborted(log: Log, fetch_offset: int, up_to_offset: int) -> list[AbortedTransaction]:
    """Do what Log.aborted_transactions says."""
    found: list[AbortedTransaction] = []
    segments = log.segments
    # An abort marker is behind its transaction, perhaps in a later segment.
    for index in range(max(0, segments.floor_index(fetch_offset)), len(segments)):
        transactions, is_complete = segments[index].transaction_index.collect(
            fetch_offset, up_to_offset
        )
        found += transactions
        if is_complete:
            break
    return found


def aborted_in(log: Log, read: LogRead) -> Sequence[AbortedTransaction]:
    """Return the aborted transactions that a reader of `read` must know of.

    A few more than that: the bound is the next entry of the offset index behind the slice.

    Source: Kafka's LocalLog.addAbortedTransactions.
    """
    segment, found = read.segment, read.slice
    if segment is None or found is None:
        return ()
    segments = log.segments
    first = segments.floor_index(segment.base_offset)
    if not any(
        segments[index].transaction_index.entry_count for index in range(first, len(segments))
    ):
        return ()
    end_position = found.position + found.length
    up_to_offset = segment.offset_index.offset_from_position(end_position)
    if up_to_offset is None:
        is_last = first + 1 == len(segments)
        up_to_offset = log.log_end_offset if is_last else segments[first + 1].base_offset
    return find_aborted(log, read.fetch_offset, up_to_offset)


def _visible_end(segment: Segment, up_to_offset: int) -> int:
    """Return the position of the batch that `up_to_offset` is in, or where the segment ends."""
    if up_to_offset <= segment.base_offset:
        return 0
    found = segment.position_for_offset(up_to_offset)
    return segment.size if found is None else found[0]


def _is_cut_batch(segment: Segment, offset: int, found: FileSlice, *, min_one: bool) -> bool:
    """Say whether the slice holds less than its first batch, which Kafka answers with nothing."""
    if min_one or found.position + found.length >= segment.size:
        return False
    batch = segment.position_for_offset(offset)
    return batch is not None and found.length < batch[1].size


def find_offset_for_timestamp(
    log: Log | DetachedLog, timestamp_ms: int, *, up_to_offset: int
) -> TimestampedOffset | None:
    """Do what Log.offset_for_timestamp says."""
    for segment in log.segments:
        if segment.max_timestamp < timestamp_ms:
            continue
        found = segment.first_record_at_or_after_timestamp(
            timestamp_ms, start_offset=log.log_start_offset
        )
        if found is not None:
            return found if found.offset < up_to_offset else None
    return None


def find_max_timestamp(log: Log | DetachedLog, *, up_to_offset: int) -> TimestampedOffset | None:
    """Do what Log.offset_of_max_timestamp says."""
    latest = max(log.segments, key=lambda segment: segment.max_timestamp)
    found = latest.first_record_with_max_timestamp()
    return found if found is not None and found.offset < up_to_offset else None
