"""The delivery state of one partition for one share group, on the partition's leader.

    start_offset                              end_offset
    ▼                                         ▼
    records that are not done, in batches     records that were never acquired

Source: Kafka's SharePartition; KIP-932.
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, NamedTuple

from wirebroker.coordinator.share_partitions.in_flight_records import InFlightRecords
from wirebroker.coordinator.share_partitions.lock_timers import LockTimers
from wirebroker.coordinator.share_partitions.record_state import TERMINAL

if TYPE_CHECKING:
    from wirebroker.coordinator.share_partitions.record_state import InFlightState
    from wirebroker.coordinator.share_state.state import SharePartitionKey

NO_OFFSET = -1


class SharePhase(Enum):
    """The life of a share partition."""

    EMPTY = "not loaded yet"
    INITIALIZING = "the persister reads its state"
    ACTIVE = "in use"
    FAILED = "its state could not be read"
    FENCED = "removed: another leader, another state, or no group"


class ShareLimits(NamedTuple):
    """The configs of a group that apply to an operation."""

    delivery_count_limit: int
    max_record_locks: int
    lock_duration_ms: int
    is_renew_enabled: bool = True
    # Whether rejected and used-up records become dead letters.
    has_dead_letters: bool = False


class _GapWindow:
    """Offsets between persisted batches, which are acquired before newer records."""

    __slots__ = ("end_offset", "start_offset")

    def __init__(self, start_offset: int, end_offset: int) -> None:
        self.start_offset = start_offset
        self.end_offset = end_offset


class SharePartition:
    """One share group's state of one partition, in one leader epoch.

    Attributes:
        start_offset: All records below it are done.
        end_offset: The last in-flight offset; without records in flight, the next one to acquire.
        delivery_complete_count: In-flight records from `start_offset` on that are done.
        may_have_available: Whether in-flight records may be available again.
    """

    __slots__ = (
        "_gap",
        "delivery_complete_count",
        "end_offset",
        "is_being_read",
        "key",
        "leader_epoch",
        "may_have_available",
        "phase",
        "records",
        "start_offset",
        "state_epoch",
        "timers",
    )

    def __init__(self, key: SharePartitionKey, leader_epoch: int) -> None:
        self.key = key
        self.leader_epoch = leader_epoch
        self.phase = SharePhase.EMPTY
        self.state_epoch = 0
        self.start_offset = 0
        self.end_offset = 0
        self.delivery_complete_count = 0
        self.records = InFlightRecords()
        self.timers = LockTimers()
        self.may_have_available = False
        # A fetch reads the log for it; the others wait (Kafka's fetch lock).
        self.is_being_read = False
        self._gap: _GapWindow | None = None

    # -- the gap window --------------------------------------------------------------------------

    @property
    def has_gap(self) -> bool:
        """Whether gaps between persisted batches may contain records."""
        return self._gap is not None and self._gap.end_offset == self.end_offset

    @property
    def gap_start(self) -> int:
        """The first offset that may be in a gap, or NO_OFFSET."""
        gap = self._gap
        return gap.start_offset if gap is not None and self.has_gap else NO_OFFSET

    def open_gap(self, start_offset: int) -> None:
        """Note that there are gaps between `start_offset` and the end offset."""
        self._gap = _GapWindow(start_offset, self.end_offset)

    def advance_gap(self, offset: int) -> None:
        """Note that everything below `offset` has been read."""
        gap = self._gap
        if gap is None:
            return
        if self.has_gap and offset <= gap.end_offset:
            gap.start_offset = offset
        else:
            self._gap = None

    # -- queries ---------------------------------------------------------------------------------

    @property
    def in_flight_count(self) -> int:
        """The number of in-flight offsets."""
        return self.end_offset - self.start_offset + 1 if self.records else 0

    @property
    def _has_in_flight(self) -> bool:
        return bool(self.records) and self.start_offset <= self.records.last.last_offset

    def count_in_flight(self, first_offset: int, last_offset: int) -> int:
        """Return how many offsets of a range are not below the start offset."""
        return max(0, last_offset - max(self.start_offset, first_offset) + 1)

    def count_done(self, state: InFlightState) -> None:
        """Count records whose state has just changed, if they are done."""
        if state.state in TERMINAL:
            self.delivery_complete_count += self.count_in_flight(
                state.first_offset, state.last_offset
            )

    def next_fetch_offset(self) -> int:
        """Return the first offset that can be acquired."""
        if not self._has_in_flight:
            self.may_have_available = False
            return self.end_offset
        if not self.may_have_available:
            return self.end_offset + 1
        gap_start = self.gap_start
        for batch in self.records:
            if gap_start != NO_OFFSET:
                if batch.first_offset > gap_start:
                    return gap_start
                gap_start = max(batch.last_offset + 1, gap_start)
            for state in batch.states:
                if state.is_available:
                    return state.first_offset
        self.may_have_available = False
        return self.end_offset + 1

    def can_acquire(self, limits: ShareLimits) -> bool:
        """Return whether records in flight are available, or more may be in flight."""
        return (
            self.next_fetch_offset() != self.end_offset + 1
            or self.in_flight_count < limits.max_record_locks
        )

    # -- the start offset ------------------------------------------------------------------------

    def move_start(self) -> bool:
        """Move the start offset behind the records that are done; return whether it could move."""
        if not self._can_move_start():
            return False
        last_done, done_count = self._last_done()
        if last_done == NO_OFFSET:
            return False
        records = self.records
        if last_done == records.last.last_offset:
            self.start_offset = self.end_offset = last_done + 1
            records.clear()
            self.delivery_complete_count = 0
            return True
        batch = records.floor(last_done)
        assert batch is not None
        if last_done == batch.last_offset:
            following = records.higher(last_done)
            assert following is not None
            self.start_offset = max(self.start_offset, following.first_offset)
            if self.has_gap:
                self.start_offset = min(self.gap_start, self.start_offset)
        else:
            self.start_offset = max(self.start_offset, last_done + 1)
        self.delivery_complete_count -= done_count
        records.remove_below(last_done + 1)
        return True

    def _can_move_start(self) -> bool:
        batch = self.records.floor(self.start_offset) if self.records else None
        # Without a batch, a gap that can be acquired is at the beginning.
        if batch is None:
            return False
        return batch.state_at(min(self.start_offset, batch.last_offset)).is_done

    def _last_done(self) -> tuple[int, int]:
        """Return the last offset before which all records are done, and the number of those."""
        last_done, count = NO_OFFSET, 0
        gap_start = self.gap_start
        for batch in self.records:
            if gap_start != NO_OFFSET and batch.last_offset >= gap_start:
                break
            for state in batch.states:
                if not state.is_done:
                    return last_done, count
                last_done = state.last_offset
                count += self.count_in_flight(state.first_offset, state.last_offset)
        return last_done, count

    def check(self) -> None:
        """Assert the invariants above."""
        previous_end = NO_OFFSET
        done_count = 0
        for batch in self.records:
            batch.check()
            assert batch.first_offset > previous_end
            previous_end = batch.last_offset
            for state in batch.states:
                if state.state in TERMINAL:
                    done_count += self.count_in_flight(state.first_offset, state.last_offset)
        if self.records:
            assert self.end_offset >= self.records.last.last_offset
        assert self.delivery_complete_count == done_count, (
            self.delivery_complete_count,
            done_count,
        )
