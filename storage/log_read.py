"""Looking things up in a log: the slice that answers a Fetch, records by timestamp.

Source: Kafka's LocalLog.read, UnifiedLog.fetchOffsetByTimestamp.
"""

from __future__ import annotations

from collections.abc import Sequence  # noqa: TC003 - compiled tuples look for it
from typing import TYPE_CHECKING, NamedTuple

from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.storage.files import FileSlice  # noqa: TC001 - compiled tuples look for it
from wirebroker.storage.segment import Segment  # noqa: TC001 - compiled tuples look for it

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from wirebroker.storage.log import Log
    from wirebroker.storage.segment import TimestampedOffset
    from wirebroker.storage.transaction_index import AbortedTransaction


class DetachedLog(NamedTuple):
    """A log as it was at some moment: a thread may search it while the log goes on.

    Searching by timestamp reads files, unpacks and walks a whole batch in the end, and moves the
    small memories of indexes and segments, which only one thread may do. What it learns of closed
    segments is kept (`note_learned`), so that the next search opens only the segment with the hit.
    """

    closed: Sequence[Segment]  # the log's own, of which the thread makes twins
    active: Segment
    log_start_offset: int
    learned: list[tuple[Segment, int]]  # largest timestamps that were not known before

    @classmethod
    def of(cls, log: Log) -> DetachedLog:
        """Take what a search needs; of all segments only the active one is looked at."""
        *closed, active = log.segments
        return cls(closed, active.detached(), log.log_start_offset, [])

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
        segments = self._reaching(timestamp_ms)
        return _first_at_or_after(segments, timestamp_ms, self.log_start_offset, up_to_offset)

    # A function, as is `_reaching` below: compiled code runs a generator expression to its end,
    # and each segment that is looked at for the first time costs an open file.
    def _reaching(self, timestamp_ms: int) -> Iterator[Segment]:
        for segment, largest, twin in self._largest_timestamps():
            if largest >= timestamp_ms:
                yield twin or segment.detached_closed()

    def offset_of_max_timestamp(self, *, up_to_offset: int) -> TimestampedOffset | None:
        """Do what Log.offset_of_max_timestamp does."""
        segment, _, twin = max(self._largest_timestamps(), key=lambda each: each[1])
        return _newest(twin or segment.detached_closed(), up_to_offset)

    def note_learned(self) -> None:
        """Keep what was learned; not in the thread, whose search must have ended."""
        for segment, largest in self.learned:
            segment.note_max_timestamp(largest)

    def _largest_timestamps(self) -> Iterator[tuple[Segment, int, Segment | None]]:
        """Go over the segments, their largest timestamps and, if there is one already, a twin."""
        for segment in self.closed:
            known = segment.known_max_timestamp
            twin = None
            if known is None:
                twin = segment.detached_closed()
                known = twin.max_timestamp
                self.learned.append((segment, known))
            yield segment, known, twin
        yield self.active, self.active.max_timestamp, self.active


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
    log: Log, timestamp_ms: int, *, up_to_offset: int
) -> TimestampedOffset | None:
    """Do what Log.offset_for_timestamp says."""
    segments = _reaching(log.segments, timestamp_ms)
    return _first_at_or_after(segments, timestamp_ms, log.log_start_offset, up_to_offset)


def _reaching(segments: Iterable[Segment], timestamp_ms: int) -> Iterator[Segment]:
    for segment in segments:
        if segment.max_timestamp >= timestamp_ms:
            yield segment


def find_max_timestamp(log: Log, *, up_to_offset: int) -> TimestampedOffset | None:
    """Do what Log.offset_of_max_timestamp says."""
    return _newest(max(log.segments, key=lambda segment: segment.max_timestamp), up_to_offset)


def _first_at_or_after(
    segments: Iterable[Segment], timestamp_ms: int, start_offset: int, up_to_offset: int
) -> TimestampedOffset | None:
    for segment in segments:
        found = segment.first_record_at_or_after_timestamp(timestamp_ms, start_offset=start_offset)
        if found is not None:
            return found if found.offset < up_to_offset else None
    return None


def _newest(segment: Segment, up_to_offset: int) -> TimestampedOffset | None:
    found = segment.first_record_with_max_timestamp()
    return found if found is not None and found.offset < up_to_offset else None
