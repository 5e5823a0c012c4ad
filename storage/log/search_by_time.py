"""Searches by timestamp in a log in use: brief ones on the event loop, others in a thread.

Source: Kafka's UnifiedLog.fetchOffsetByTimestamp.
"""

from __future__ import annotations

from collections.abc import Sequence  # noqa: TC003 - compiled tuples need it
from typing import TYPE_CHECKING, NamedTuple

from wirebroker.base.clock import in_one_go
from wirebroker.storage.log.segment.segment import Segment  # noqa: TC001 - compiled tuples need it
from wirebroker.storage.log.time_search import first_at_or_after, first_with_max_timestamp
from wirebroker.storage.long_work import TakesLongError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from wirebroker.base.clock import Steps
    from wirebroker.storage.log.bounds import LogBounds
    from wirebroker.storage.log.time_search import TimestampedOffset


class DetachedLog(NamedTuple):
    """A view of a log that a thread may search, without changing the caches of the log's segments.

    Timestamps that it learns of closed segments are kept (`note_learned`), so the next search opens
    only one segment.
    """

    closed: Sequence[Segment]  # the log's own, to be copied by the thread
    active: Segment
    log_start_offset: int
    learned: list[tuple[Segment, int]]  # newly learned

    @classmethod
    def of(cls, log: LogBounds) -> DetachedLog:
        """Return a view of a log."""
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
        """Find the first record at or after a timestamp, in steps."""
        match = yield from first_at_or_after(
            self._reaching(timestamp_ms), timestamp_ms, start_offset=self.log_start_offset
        )
        return _below(up_to_offset, match)

    # Lazy, because the first access to a segment opens a file. A compiled generator expression
    # would not be lazy (compiling/README.md).
    def _reaching(self, timestamp_ms: int) -> Iterator[Segment]:
        for segment, largest, twin in self._largest_timestamps():
            if largest >= timestamp_ms:
                yield twin or segment.detached_closed()

    def offset_of_max_timestamp(self, *, up_to_offset: int) -> Steps[TimestampedOffset | None]:
        """Find the first record with the largest timestamp, in steps."""
        newest: tuple[Segment, int, Segment | None] | None = None
        for candidate in self._largest_timestamps():
            if newest is None or candidate[1] > newest[1]:
                newest = candidate
            yield
        assert newest is not None, "a log has a segment"
        segment, _, twin = newest
        match = yield from first_with_max_timestamp(twin or segment.detached_closed())
        return _below(up_to_offset, match)

    def note_learned(self) -> None:
        """Store the learned timestamps, after the search and outside of its thread."""
        for segment, largest in self.learned:
            segment.note_max_timestamp(largest)

    def _largest_timestamps(self) -> Iterator[tuple[Segment, int, Segment | None]]:
        """Yield each segment, its largest timestamp, and its copy if made."""
        for segment in self.closed:
            max_timestamp = segment.known_max_timestamp
            twin = None
            if max_timestamp is None:
                twin = segment.detached_closed()
                max_timestamp = twin.max_timestamp
                self.learned.append((segment, max_timestamp))
            yield segment, max_timestamp, twin
        yield self.active, self.active.max_timestamp, self.active


def find_quickly(
    log: LogBounds, timestamp_ms: int, *, up_to_offset: int
) -> TimestampedOffset | None:
    """Find the first record at or after a timestamp and below `up_to_offset`, on the event loop.

    Raises:
        TakesLongError: It may take long or need the disk: search a DetachedLog in a thread.
        KafkaError, ColdPagesError: As first_at_or_after.
    """
    active = log.segments.active
    for segment in log.segments:
        largest = active.max_timestamp if segment is active else segment.known_max_timestamp
        if largest is None:
            raise TakesLongError
        if largest >= timestamp_ms:
            if segment is not active and not segment.is_searched:
                raise TakesLongError
            match = in_one_go(
                first_at_or_after(
                    (segment,), timestamp_ms, start_offset=log.log_start_offset, is_brief=True
                )
            )
            if match is None:
                raise TakesLongError  # it can only be in another segment
            return _below(up_to_offset, match)
    return None


def note_searched(log: LogBounds, offset: int) -> None:
    """Mark the segment of `offset` as recently searched."""
    index = log.segments.floor_index(offset)
    if index >= 0:
        log.segments[index].is_searched = True


def _below(up_to_offset: int, match: TimestampedOffset | None) -> TimestampedOffset | None:
    return match if match is not None and match.offset < up_to_offset else None
