"""A share partition with a log, a persister and members, and what the members may rely on."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from wirebroker.base.clock import finish, in_one_go
from wirebroker.codecs.errors import KafkaError
from wirebroker.coordinator.share_partitions.acknowledgement import (
    Acknowledgement,
    AckType,
    acknowledge,
)
from wirebroker.coordinator.share_partitions.acquisition import Acquiring, RecordBatch, acquire
from wirebroker.coordinator.share_partitions.archiving import follow_log_start
from wirebroker.coordinator.share_partitions.loading import load
from wirebroker.coordinator.share_partitions.record_state import RecordState
from wirebroker.coordinator.share_partitions.release import Expired, release_expired, release_member
from wirebroker.coordinator.share_partitions.share_partition import ShareLimits, SharePartition
from wirebroker.coordinator.share_partitions.state_change import archive_dead
from wirebroker.coordinator.share_state.state import PersistedState, SharePartitionKey, StateBatch

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from wirebroker.coordinator.share_partitions.state_change import DeadRecords, StateChange

KEY = SharePartitionKey("g", bytes(15) + b"\x01", 0)
LIMITS = ShareLimits(delivery_count_limit=5, max_record_locks=200, lock_duration_ms=1_000)


class Grant(NamedTuple):
    """A record that a member has."""

    member: str
    deadline_ms: float


class Pending(NamedTuple):
    """A write that the persister has not answered, with the grants that it ends."""

    change: StateChange
    start_offset: int
    grants: dict[int, Grant]


class ShareKit:
    """One share partition, and all that is known about it from outside.

    Attributes:
        grants: The records that members have, by offset.
        counts: The highest delivery count that was seen, by offset.
        stored: What the persister has, by offset.
        outcomes: The last persisted state, by offset.
        dead_letters: Records that were handed to the dead letters, with the cause.
    """

    def __init__(self, limits: ShareLimits = LIMITS, *, start_offset: int = 0) -> None:
        self.limits = limits
        self.now_ms = 1_000.0
        self.batches: list[RecordBatch] = []
        self.log_start = start_offset
        self.end = start_offset
        self.grants: dict[int, Grant] = {}
        self.counts: dict[int, int] = {}
        self.stored: dict[int, tuple[RecordState, int]] = {}
        self.stored_start = start_offset
        self.accepted: set[int] = set()
        self.dead: list[DeadRecords] = []
        self.dead_letters: dict[int, str] = {}
        self.pending: list[Pending] = []
        self.partition = SharePartition(KEY, 0)
        empty = PersistedState(0, start_offset, 0, ())
        in_one_go(load(self.partition, empty, start_offset, limits))

    # -- the log ---------------------------------------------------------------------------------

    def append(self, *sizes: int, producer_id: int = -1) -> None:
        """Append record batches with numbers of records."""
        for size in sizes:
            batch = RecordBatch(
                self.end, self.end + size - 1, 70, producer_id, is_transactional=producer_id >= 0
            )
            self.batches.append(batch)
            self.end += size

    def move_log_start(self, offset: int) -> None:
        """Delete records of the log."""
        self.log_start = max(self.log_start, min(offset, self.end))
        self.batches = [batch for batch in self.batches if batch.last_offset >= self.log_start]

    def compact(self, index: int) -> None:
        """Remove a record batch of the log."""
        if self.batches:
            del self.batches[index % len(self.batches)]

    # -- members ---------------------------------------------------------------------------------

    def fetch(
        self, member: str, max_records: int = 500, *, batch_size: int = 500, exactly: bool = False
    ) -> list[tuple[int, int, int]]:
        """Read and acquire records; return (first offset, last offset, delivery count) of them."""
        partition = self.partition
        if not partition.can_acquire(self.limits):
            return []
        offset = partition.next_fetch_offset()
        if offset < self.log_start or offset > self.end:
            follow_log_start(partition, self.log_start)
            return []
        batches = [batch for batch in self.batches if batch.last_offset >= offset]
        wish = Acquiring(member, max_records, batch_size, offset, is_record_mode=exactly)
        acquired = acquire(partition, wish, batches, self.limits, self.now_ms)
        assert acquired.record_count == sum(last - first + 1 for first, last, _ in acquired.records)
        assert not exactly or acquired.record_count <= max_records
        for first, last, count in acquired.records:
            for number in range(first, last + 1):
                self._grant(number, member, count)
        return [(first, last, count) for first, last, count in acquired.records]

    def _grant(self, offset: int, member: str, count: int) -> None:
        assert offset not in self.grants, f"{offset} is granted to two members"
        assert count > self.counts.get(offset, 0), f"the delivery count of {offset} falls"
        assert offset not in self.accepted, f"{offset} is granted after it was accepted"
        assert count <= self.limits.delivery_count_limit, f"{offset} is delivered too often"
        self.counts[offset] = count
        self.grants[offset] = Grant(member, self.now_ms + self.limits.lock_duration_ms)

    def acknowledge(self, member: str, *batches: tuple[int, int, Sequence[int]]) -> None:
        """Acknowledge (first offset, last offset, types); the persister answers later.

        Raises:
            KafkaError: It is refused.
        """
        partition = self.partition
        requested = [Acknowledgement(*batch) for batch in batches]
        steps = acknowledge(partition, member, requested, self.limits, self.now)
        change = in_one_go(steps)
        for batch in requested:
            for first, last, ack_type in batch.segments():
                for offset in range(max(first, partition.start_offset), last + 1):
                    assert self.grants[offset].member == member, f"{offset} is not owned"
                    if ack_type == AckType.RENEW:
                        deadline_ms = self.now_ms + self.limits.lock_duration_ms
                        self.grants[offset] = Grant(member, deadline_ms)
        self._await_persister(change)

    def leave(self, member: str) -> None:
        """Release the records of a member; the persister answers later."""
        self._await_persister(
            in_one_go(release_member(self.partition, member, self.limits, self.now))
        )

    def _await_persister(self, change: StateChange) -> None:
        if change.batches:
            offsets = [offset for batch in change.batches for offset in _offsets(batch)]
            ended = {offset: self.grants.pop(offset) for offset in offsets if offset in self.grants}
            self.pending.append(Pending(change, self.partition.start_offset, ended))

    # -- the persister ---------------------------------------------------------------------------

    def answer(self, index: int = 0, *, fails: bool = False) -> None:
        """Let the persister answer a write."""
        change, start_offset, ended = self.pending.pop(index % len(self.pending))
        if not fails:
            self._store(change.batches, start_offset)
            self.accepted |= {
                offset
                for batch in change.batches
                if batch.delivery_state == RecordState.ACKNOWLEDGED
                for offset in _offsets(batch)
            }
            self.dead += in_one_go(change.commit())
            self.partition.move_start()
            return
        finish(change.roll_back(self.now))
        for offset, grant in ended.items():
            if grant.deadline_ms > self.now_ms and offset >= self.partition.start_offset:
                assert offset not in self.grants
                self.grants[offset] = grant

    def _store(self, batches: Iterable[StateBatch], start_offset: int) -> None:
        for batch in batches:
            state = RecordState(batch.delivery_state)
            for offset in _offsets(batch):
                count = self.stored.get(offset, (state, 0))[1]
                assert batch.delivery_count >= count, f"the stored count of {offset} falls"
                self.stored[offset] = state, batch.delivery_count
        self.stored_start = max(self.stored_start, start_offset)

    def bury(self, index: int = 0) -> None:
        """Write dead letters, and archive their records."""
        dead = self.dead.pop(index % len(self.dead))
        batch = archive_dead(self.partition, dead)
        for offset in _offsets(batch):
            assert offset not in self.dead_letters, f"{offset} is a dead letter twice"
            self.dead_letters[offset] = dead.cause
        self._store([batch], self.partition.start_offset)
        self.partition.move_start()

    # -- time ------------------------------------------------------------------------------------

    def now(self) -> float:
        """Return the time of locks."""
        return self.now_ms

    def advance(self, ms: float) -> None:
        """Let time pass; locks expire."""
        self.now_ms += ms
        expired = Expired()
        finish(release_expired(self.partition, self.limits, self.now_ms, expired))
        for batch in expired.batches:
            for offset in _offsets(batch):
                grant = self.grants.pop(offset)
                assert grant.deadline_ms <= self.now_ms, f"the lock of {offset} ends early"
        self._store(expired.batches, self.partition.start_offset)
        self.dead += expired.dead
        self.partition.move_start()
        late = [offset for offset, grant in self.grants.items() if grant.deadline_ms <= self.now_ms]
        assert not late, f"locks do not expire: {late}"

    def restart(self) -> None:
        """Load the persisted state, as a new leader does; writes in flight are lost."""
        self.pending.clear()
        self.grants.clear()
        self.dead.clear()
        batches = [
            StateBatch(offset, offset, state, count)
            for offset, (state, count) in sorted(self.stored.items())
            if offset >= self.stored_start
        ]
        self.partition = SharePartition(KEY, self.partition.leader_epoch + 1)
        persisted = PersistedState(0, self.stored_start, 0, tuple(batches))
        # A delivery that was not persisted may be repeated.
        self.counts = {offset: count for offset, (_, count) in self.stored.items()}
        self.dead = in_one_go(load(self.partition, persisted, self.stored_start, self.limits))

    # -- checks ----------------------------------------------------------------------------------

    def owned(self, member: str) -> list[int]:
        """Return the offsets that a member has."""
        return sorted(offset for offset, grant in self.grants.items() if grant.member == member)

    def check(self) -> None:
        """Assert that the partition agrees with what is known from outside."""
        self.partition.check()
        owned = {
            offset: state.member_id
            for batch in self.partition.records
            for state in batch.states
            if state.state is RecordState.ACQUIRED
            for offset in range(state.first_offset, state.last_offset + 1)
        }
        assert owned == {offset: grant.member for offset, grant in self.grants.items()}

    def is_refused(self, member: str, *batches: tuple[int, int, Sequence[int]]) -> bool:
        """Acknowledge; return whether that is refused."""
        try:
            self.acknowledge(member, *batches)
        except KafkaError:
            return True
        return False


def _offsets(batch: StateBatch) -> range:
    return range(batch.first_offset, batch.last_offset + 1)
