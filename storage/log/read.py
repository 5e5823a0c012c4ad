"""The read path of a log (hot path): the file slice for a Fetch and its aborted transactions.

Source: Kafka's LocalLog.read, LocalLog.collectAbortedTransactions.
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
    """The result of read().

    Attributes:
        slice: None if no batch is visible or fits.
    """

    __slots__ = ("fetch_offset", "segment", "slice")

    def __init__(
        self, file_slice: FileSlice | None, fetch_offset: int, segment: Segment | None = None
    ) -> None:
        self.slice = file_slice
        self.fetch_offset = fetch_offset
        self.segment = segment


class ReadableLog(LogBounds):
    """A log and its read methods."""

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
        """Return the file slice for a Fetch, from the batch that holds `offset`; reads no records.

        Batches from `up_to_offset` on (high watermark, last stable offset) are hidden. With
        `min_one` the first batch is returned whole even if it exceeds `max_bytes`.

        Raises:
            KafkaError: OFFSET_OUT_OF_RANGE below log_start_offset or above log_end_offset.
            ColdPagesError: A batch header is not in memory, and may_block is False.
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
            file_slice = segment.read_slice(
                offset,
                max_bytes,
                end_position=end_position,
                min_one=min_one,
                may_block=may_block,
            )
            if file_slice is not None:
                if not file_slice.length or _is_cut_batch(
                    segment, offset, file_slice, min_one=min_one
                ):
                    return LogRead(None, offset)
                if index < last and not segment.log.is_old:
                    segment.log.is_old = _is_far_behind(segments, index)
                return LogRead(file_slice, offset, segment)
            # Compaction has removed the segment's rest.
            index += 1
        return LogRead(None, offset)

    def aborted_transactions(
        self, fetch_offset: int, up_to_offset: int
    ) -> list[AbortedTransaction]:
        """Return the transactions that records in [fetch_offset, up_to_offset) may belong to.

        Raises:
            KafkaError: As TransactionIndex.collect.
        """
        aborted: list[AbortedTransaction] = []
        segments = self.segments
        # An abort marker may be in a later segment than its transaction.
        for index in range(max(0, segments.floor_index(fetch_offset)), len(segments)):
            transactions, is_complete = segments[index].transaction_index.collect(
                fetch_offset, up_to_offset
            )
            aborted += transactions
            if is_complete:
                break
        return aborted


def aborted_in(log: ReadableLog, read: LogRead) -> Sequence[AbortedTransaction]:
    """Return the aborted transactions that a client needs for a read.

    There may be a few more: their bound is the next offset index entry after the slice, as in
    Kafka's LocalLog.addAbortedTransactions.
    """
    segment, file_slice = read.segment, read.slice
    if segment is None or file_slice is None:
        return ()
    segments = log.segments
    first = segments.floor_index(segment.base_offset)
    if not any(
        segments[index].transaction_index.entry_count for index in range(first, len(segments))
    ):
        return ()
    end_position = file_slice.position + file_slice.length
    up_to_offset = segment.offset_index.offset_from_position(end_position)
    if up_to_offset is None:
        is_last = first + 1 == len(segments)
        up_to_offset = log.log_end_offset if is_last else segments[first + 1].base_offset
    return log.aborted_transactions(read.fetch_offset, up_to_offset)


def _is_far_behind(segments: Segments, index: int) -> bool:
    later_bytes = 0
    for later_index in range(len(segments) - 1, index, -1):
        later_bytes += segments[later_index].size
        if later_bytes >= FAR_BYTES:
            return True
    return False


def _visible_end(segment: Segment, up_to_offset: int) -> int:
    if up_to_offset <= segment.base_offset:
        return 0
    first_hidden = segment.position_for_offset(up_to_offset)
    return segment.size if first_hidden is None else first_hidden[0]


def _is_cut_batch(segment: Segment, offset: int, file_slice: FileSlice, *, min_one: bool) -> bool:
    """Return whether the slice is shorter than its first batch; Kafka then returns nothing."""
    if min_one or file_slice.position + file_slice.length >= segment.size:
        return False
    first_batch = segment.position_for_offset(offset)
    return first_batch is not None and file_slice.length < first_batch[1].size
