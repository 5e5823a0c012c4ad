"""Searches by timestamp while the log goes on: at once on the event loop, or in a thread.

Source: Kafka's UnifiedLog.fetchOffsetByTimestamp.
"""

from __future__ import annotations

from collections.abc import Sequence  # noqa: TC003 - compiled tuples look for it
from typing import TYPE_CHECKING, NamedTuple

from wirebroker.base.clock import in_one_go
from wirebroker.storage.brief_work import TakesLongError
from wirebroker.storage.log.segment.segment import Segment  # noqa: TC001 - compiled tuples look for it
from wirebroker.storage.log.time_search import first_at_or_after, first_with_max_timestamp

if TYPE_CHECKING:
    from collections.abc import Iterator

    from wirebroker.base.clock import Steps
    from wirebroker.storage.log.bounds import LogBounds
    from wirebroker.storage.log.time_search import TimestampedOffset


class DetachedLog(NamedTuple):
    """What a thread may search.

    Searching by timestamp reads files, unpacks and walks a batch in the end, and moves the small
    memories of indexes and segments, which only one thread may do at a time. What it learns of
    closed segments is kept (`note_learned`): the next search opens only the one with the hit.
    """

    closed: Sequence[Segment]  # the log's own, of which the thread makes twins
    active: Segment
    log_start_offset: int
    learned: list[tuple[Segment, int]]  # largest timestamps that were not known before

    @classmethod
    def of(cls, log: LogBounds) -> DetachedLog:
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
    ) -> Steps[TimestampedOffset | None]:
        """Find the first record not earlier than a timestamp, in steps."""
        found = yield from first_at_or_after(
            self._reaching(timestamp_ms), timestamp_ms, start_offset=self.log_start_offset
        )
        return _below(up_to_offset, found)

    # One after the other as they are wanted: each that is looked at for the first time costs an
    # open file (why it is no generator expression: compiling/README.md).
    def _reaching(self, timestamp_ms: int) -> Iterator[Segment]:
        for segment, largest, twin in self._largest_timestamps():
            if largest >= timestamp_ms:
                yield twin or segment.detached_closed()

    def offset_of_max_timestamp(self, *, up_to_offset: int) -> Steps[TimestampedOffset | None]:
        """Find the first record with the largest timestamp, in steps."""
        newest: tuple[Segment, int, Segment | None] | None = None
        for each in self._largest_timestamps():
            if newest is None or each[1] > newest[1]:
                newest = each
            yield
        assert newest is not None, "a log has a segment"
        segment, _, twin = newest
        found = yield from first_with_max_timestamp(twin or segment.detached_closed())
        return _below(up_to_offset, found)

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


def find_quickly(
    log: LogBounds, timestamp_ms: int, *, up_to_offset: int
) -> TimestampedOffset | None:
    """Find the first record not earlier than a timestamp, if it is below `up_to_offset`.

    Only if that takes no time worth mentioning: on the event loop.

    Raises:
        TakesLongError: It may, or the disk is needed: have a thread search a DetachedLog.
        KafkaError: INVALID_RECORD or CORRUPT_MESSAGE if a batch on the way cannot be read.
        OSError: The disk failed.
    """
    active = log.segments.active
    for segment in log.segments:
        largest = active.max_timestamp if segment is active else segment.known_max_timestamp
        if largest is None:
            raise TakesLongError
        if largest >= timestamp_ms:
            if segment is not active and not segment.is_searched:
                raise TakesLongError
            found = in_one_go(
                first_at_or_after(
                    (segment,), timestamp_ms, start_offset=log.log_start_offset, is_brief=True
                )
            )
            if found is None:
                raise TakesLongError  # it is in another segment, if anywhere
            return _below(up_to_offset, found)
    return None


def note_searched(log: LogBounds, offset: int) -> None:
    """Remember that a search has found something in the segment of `offset`."""
    index = log.segments.floor_index(offset)
    if index >= 0:
        log.segments[index].is_searched = True


def _below(up_to_offset: int, found: TimestampedOffset | None) -> TimestampedOffset | None:
    """Return what was found if readers may see it."""
    return found if found is not None and found.offset < up_to_offset else None
