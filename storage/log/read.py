"""A log as its readers see it: the slice that answers a Fetch, the transactions in it (hot path).

Nothing here changes the log. Source: Kafka's LocalLog.read, LocalLog.collectAbortedTransactions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.storage.files import FAR_BYTES
from wirebroker.storage.log.bounds import LogBounds

if TYPE_CHECKING:
    from collections.abc import Sequence

    from wirebroker.storage.files import FileSlice
    from wirebroker.storage.log.index.transaction_index import AbortedTransaction
    from wirebroker.storage.log.segment.segment import Segment
    from wirebroker.storage.log.segment.segments import Segments


class LogRead:
    """What read() found.

    Attributes:
        slice: None: nothing to see at this offset (yet), or it does not fit.
        fetch_offset: As it was asked for.
        segment: That the slice is of.
    """

    __slots__ = ("fetch_offset", "segment", "slice")

    def __init__(
        self, found: FileSlice | None, fetch_offset: int, segment: Segment | None = None
    ) -> None:
        self.slice = found
        self.fetch_offset = fetch_offset
        self.segment = segment


class ReadableLog(LogBounds):
    """A log and what may be asked of its records."""

    __slots__ = ()

    def read(
        self,
        offset: int,
        max_bytes: int,
        *,
        up_to_offset: int,
        min_one: bool = False,
        may_block: bool = True,
    ) -> LogRead:
        """Find the bytes that answer a Fetch; reads no payload.

        Args:
            offset: Where to begin: the batch that holds it comes whole.
            max_bytes: At most so many.
            up_to_offset: Batches at or above it stay hidden (high watermark, last stable offset).
            min_one: Give the first batch whole even if it exceeds max_bytes.
            may_block: Whether to wait for the disk where a batch's header is not in memory.

        Raises:
            KafkaError: OFFSET_OUT_OF_RANGE below log_start_offset or above log_end_offset.
            ColdPagesError: The disk may not be waited for.
        """
        end_offset = self.log_end_offset
        if not self.log_start_offset <= offset <= end_offset:
            raise KafkaError(
                ErrorCode.OFFSET_OUT_OF_RANGE,
                f"offset {offset} is outside of {self.log_start_offset} to {end_offset}",
            )
        if offset >= up_to_offset or offset == end_offset:
            return LogRead(None, offset)
        segments = self.segments
        index = segments.floor_index(offset)
        assert index >= 0, "the first segment begins at or before log_start_offset"
        last = len(segments) - 1
        while index <= last:
            segment = segments[index]
            end_position = segment.size
            if up_to_offset < end_offset:
                end_position = _visible_end(segment, up_to_offset)
            found = segment.read_slice(
                offset,
                max_bytes,
                end_position=end_position,
                min_one=min_one,
                may_block=may_block,
            )
            if found is not None:
                if not found.length or _is_cut_batch(segment, offset, found, min_one=min_one):
                    return LogRead(None, offset)
                if index < last and not segment.log.is_old:
                    segment.log.is_old = _is_far_behind(segments, index)
                return LogRead(found, offset, segment)
            # Compaction has removed the rest of this segment: the next batch is in a later one.
            index += 1
        return LogRead(None, offset)

    def aborted_transactions(
        self, fetch_offset: int, up_to_offset: int
    ) -> list[AbortedTransaction]:
        """Return the transactions that records in [fetch_offset, up_to_offset) may belong to.

        Raises:
            KafkaError: UNKNOWN_SERVER_ERROR: an index is of another version. OSError: the disk.
        """
        found: list[AbortedTransaction] = []
        segments = self.segments
        # An abort marker is behind its transaction, perhaps in a later segment.
        for index in range(max(0, segments.floor_index(fetch_offset)), len(segments)):
            transactions, is_complete = segments[index].transaction_index.collect(
                fetch_offset, up_to_offset
            )
            found += transactions
            if is_complete:
                break
        return found


def aborted_in(log: ReadableLog, read: LogRead) -> Sequence[AbortedTransaction]:
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
    return log.aborted_transactions(read.fetch_offset, up_to_offset)


def _is_far_behind(segments: Segments, index: int) -> bool:
    """Say whether there are FAR_BYTES behind a segment."""
    behind = 0
    for later in range(len(segments) - 1, index, -1):
        behind += segments[later].size
        if behind >= FAR_BYTES:
            return True
    return False


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
