"""Acquisition: gives the records of a read to a member.

Records that are in flight and available are acquired again; records after them for the first time.
In batch mode whole record batches are acquired, so that more than the wanted records may be; in
record mode (KIP-1206) exactly as many as wanted.

Source: Kafka's SharePartition.acquire.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from wirebroker.coordinator.share_partitions.archiving import archive_stale
from wirebroker.coordinator.share_partitions.in_flight_batch import InFlightBatch
from wirebroker.coordinator.share_partitions.lock_timers import LockTimer
from wirebroker.coordinator.share_partitions.record_state import InFlightState, RecordState
from wirebroker.coordinator.share_partitions.redelivery import (
    acquire_states,
    is_throttled,
)
from wirebroker.coordinator.share_partitions.share_partition import SharePhase

if TYPE_CHECKING:
    from collections.abc import Sequence

    from wirebroker.coordinator.share_partitions.share_partition import ShareLimits, SharePartition


class RecordBatch(NamedTuple):
    """A record batch of the log: its offsets, and some fields of its header."""

    base_offset: int
    last_offset: int
    size: int
    producer_id: int = -1
    is_transactional: bool = False
    is_abort_marker: bool = False


class AcquiredRecords(NamedTuple):
    """Consecutive acquired records with the same delivery count."""

    first_offset: int
    last_offset: int
    delivery_count: int


class Acquiring(NamedTuple):
    """The limits of one acquisition, as a member requests them."""

    member_id: str
    max_records: int
    # The wanted number of records in a batch of acquired records.
    batch_size: int
    # The offset of the read.
    fetch_offset: int
    # Never acquire more records than `max_records`.
    is_record_mode: bool = False


class Acquired(NamedTuple):
    """The acquired records and their number."""

    records: list[AcquiredRecords]
    record_count: int


NOTHING = Acquired([], 0)

# Ranges of one acquisition: some 5 us each. Members of a group get the others next time.
MOST_RANGES: Final = 1_000


def acquire(
    partition: SharePartition,
    wish: Acquiring,
    batches: Sequence[RecordBatch],
    limits: ShareLimits,
    now_ms: float,
) -> Acquired:
    """Acquire records of `batches`, which a read from the wanted offset has found."""
    if partition.phase is not SharePhase.ACTIVE or wish.max_records <= 0 or not batches:
        return NOTHING
    last_offset = batches[-1].last_offset
    if last_offset < partition.start_offset:
        return NOTHING
    last_offset, max_records = _bounds(partition, wish, last_offset, limits)
    if max_records <= 0:
        return NOTHING
    work = _Acquisition(partition, wish, batches, limits, now_ms)
    work.run(last_offset, max_records)
    return Acquired(work.result, work.count)


def _bounds(
    partition: SharePartition, wish: Acquiring, last_offset: int, limits: ShareLimits
) -> tuple[int, int]:
    """Return the last offset and the number of records that may be acquired."""
    free_count = limits.max_record_locks - partition.in_flight_count
    max_records = min(wish.max_records, free_count)
    if max_records <= 0 and wish.fetch_offset <= partition.end_offset:
        # Records in flight need no further lock.
        max_records = min(wish.max_records, partition.end_offset - wish.fetch_offset + 1)
        last_offset = min(last_offset, partition.end_offset)
    return last_offset, max_records


class _Acquisition:
    """One acquisition in progress."""

    __slots__ = (
        "_batches",
        "_deadline_ms",
        "_limits",
        "_partition",
        "_wish",
        "count",
        "result",
    )

    def __init__(
        self,
        partition: SharePartition,
        wish: Acquiring,
        batches: Sequence[RecordBatch],
        limits: ShareLimits,
        now_ms: float,
    ) -> None:
        self._partition = partition
        self._wish = wish
        self._batches = batches
        self._limits = limits
        self._deadline_ms = now_ms + limits.lock_duration_ms
        self.result: list[AcquiredRecords] = []
        self.count = 0

    def run(self, last_offset: int, max_records: int) -> None:
        """Acquire up to `max_records`, with offsets up to `last_offset`."""
        partition = self._partition
        first_base = base_offset = self._batches[0].base_offset
        archive_stale(partition, self._wish.fetch_offset, base_offset)
        floor = partition.records.floor(base_offset)
        if floor is None:
            base_offset = max(base_offset, partition.start_offset)
        elif floor.last_offset >= base_offset:
            base_offset = floor.first_offset
        if base_offset > last_offset:
            return
        in_flight = partition.records.between(min(first_base, base_offset), last_offset)
        if not in_flight:
            self._acquire_new(base_offset, last_offset, max_records)
            return
        max_records = self._acquire_in_flight(in_flight, base_offset, last_offset, max_records)
        end_offset = in_flight[-1].last_offset
        if self.count < max_records and end_offset < last_offset:
            self._acquire_new(end_offset + 1, last_offset, max_records - self.count)
        if self.result:
            partition.advance_gap(self.result[-1].last_offset + 1)

    def _acquire_in_flight(
        self, in_flight: Sequence[InFlightBatch], gap_start: int, last_offset: int, max_records: int
    ) -> int:
        """Acquire available records, and those in gaps; return the records to stop at."""
        first_offset = self._batches[0].base_offset
        for batch in in_flight:
            if self.count >= max_records:
                break
            if self._partition.has_gap:
                if gap_start < batch.first_offset:
                    remaining = max_records - self.count
                    self._acquire_new(gap_start, batch.first_offset - 1, remaining)
                gap_start = batch.last_offset + 1
                if self.count >= max_records:
                    break
            throttles = is_throttled(
                batch, first_offset, last_offset, self._limits.delivery_count_limit
            )
            if len(self.result) >= MOST_RANGES or (throttles and self.count > 0):
                return 0
            acquired_count = self._acquire_batch(
                batch, first_offset, last_offset, max_records - self.count, throttles=throttles
            )
            self.count += acquired_count
            if len(self.result) >= MOST_RANGES or (throttles and acquired_count > 0):
                return 0
        return max_records

    def _acquire_batch(
        self,
        batch: InFlightBatch,
        first_offset: int,
        last_offset: int,
        remaining: int,
        *,
        throttles: bool,
    ) -> int:
        is_record_mode = self._wish.is_record_mode
        if not batch.tracks_offsets and not batch.state.is_available:
            return 0
        takes_whole = (
            batch.is_within(first_offset, last_offset)
            and not batch.tracks_offsets
            and not (is_record_mode and batch.count > remaining)
            and not throttles
        )
        if takes_whole:
            batch.state.acquire(self._wish.member_id, self._deadline_ms)
            self._add_timer(batch.first_offset, batch.last_offset)
            acquired = AcquiredRecords(
                batch.first_offset, batch.last_offset, batch.state.delivery_count
            )
            self.result.append(acquired)
            return batch.count
        batch.track_offsets()
        states = acquire_states(
            batch,
            first_offset,
            last_offset,
            member_id=self._wish.member_id,
            deadline_ms=self._deadline_ms,
            delivery_count_limit=self._limits.delivery_count_limit,
            max_records=remaining if is_record_mode else None,
            most_states=MOST_RANGES - len(self.result),
        )
        return self._add_states(states)

    def _add_states(self, states: Sequence[InFlightState]) -> int:
        """Add the acquired parts of a batch to the result, neighbors together."""
        start = len(self.result)
        count = 0
        for state in states:
            first_offset = state.first_offset
            last = self.result[-1] if len(self.result) > start else None
            if (
                last is not None
                and last.last_offset + 1 == first_offset
                and last.delivery_count == state.delivery_count
            ):
                first_offset = self.result.pop().first_offset
            self.result.append(
                AcquiredRecords(first_offset, state.last_offset, state.delivery_count)
            )
            count += state.count
        for acquired in self.result[start:]:
            self._add_timer(acquired.first_offset, acquired.last_offset)
        return count

    def _add_timer(self, first_offset: int, last_offset: int) -> None:
        timer = LockTimer(self._deadline_ms, first_offset, last_offset)
        self._partition.timers.add(timer, self._partition.records)

    # -- records that were never acquired --------------------------------------------------------

    def _acquire_new(self, first_offset: int, last_offset: int, max_records: int) -> None:
        partition = self._partition
        if not partition.records and partition.end_offset > first_offset:
            first_offset = partition.end_offset
        if max_records < last_offset - first_offset + 1:
            wanted_last = first_offset + max_records - 1
            batch_end = self._end_of_batch_with(wanted_last)
            last_offset = min(batch_end, last_offset) if partition.has_gap else batch_end
        new = self._new_records(first_offset, last_offset)
        if self._wish.is_record_mode:
            acquired_end = self._add_limited(new[0], max_records)
        else:
            for acquired in new:
                self._add_new(acquired)
            acquired_end = last_offset = new[-1].last_offset
        if partition.records.first.first_offset == first_offset:
            partition.start_offset = first_offset
        partition.end_offset = max(partition.end_offset, last_offset)
        partition.advance_gap(acquired_end + 1)
        self.count += acquired_end - first_offset + 1

    def _end_of_batch_with(self, offset: int) -> int:
        """Return the last offset of the record batch that holds `offset`; else `offset`."""
        found: RecordBatch | None = None
        for batch in self._batches:
            if offset < batch.base_offset:
                break
            found = batch
        return found.last_offset if found is not None and offset <= found.last_offset else offset

    def _new_records(self, first_offset: int, last_offset: int) -> list[AcquiredRecords]:
        """Divide new records between record batches, into batches of about the wanted size."""
        result: list[AcquiredRecords] = []
        batch_size = self._wish.batch_size
        if not self._wish.is_record_mode and last_offset - first_offset + 1 > batch_size:
            for batch in self._batches:
                base_offset = batch.base_offset
                if base_offset > last_offset:
                    break
                if base_offset - first_offset >= batch_size:
                    result.append(AcquiredRecords(first_offset, base_offset - 1, 1))
                    first_offset = base_offset
                    if len(self.result) + len(result) >= MOST_RANGES:
                        return result
        result.append(AcquiredRecords(first_offset, last_offset, 1))
        return result

    def _add_new(self, acquired: AcquiredRecords) -> None:
        state = InFlightState(
            acquired.first_offset,
            acquired.last_offset,
            RecordState.ACQUIRED,
            1,
            self._wish.member_id,
            self._deadline_ms,
        )
        self._partition.records.add(InFlightBatch(state))
        self.result.append(acquired)
        self._add_timer(acquired.first_offset, acquired.last_offset)

    def _add_limited(self, acquired: AcquiredRecords, max_records: int) -> int:
        """Acquire at most `max_records` of a batch; the others are in flight and available."""
        first_offset, last_offset, _ = acquired
        limited_end = min(last_offset, first_offset + max_records - 1)
        self._add_new(AcquiredRecords(first_offset, limited_end, 1))
        if limited_end < last_offset:
            batch = self._partition.records.floor(first_offset)
            assert batch is not None
            batch.extend(InFlightState(limited_end + 1, last_offset, RecordState.AVAILABLE, 0))
            self._partition.may_have_available = True
        return limited_end
