"""A partition on this node: appends as the leader or as a follower, and flushes.

Invariant: while the directory is offline, or once the partition is retired, nothing is appended; as
the leader, also once another broker leads. An append that is then in progress is not acknowledged.
So methods check again after each wait.

Source: Kafka's Partition (appendRecordsToLeader, appendRecordsToFollowerOrFutureReplica).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from wirebroker.base.threads import Work, in_thread
from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.codecs.records.walk import IS_QUICK
from wirebroker.disks.data_directory import Checkpoint
from wirebroker.replica.replica_role import UNKNOWN_EPOCH
from wirebroker.replica.replica_state import ReplicaState
from wirebroker.storage.log.append import AppendOrigin
from wirebroker.storage.log.markers import append_end_marker
from wirebroker.storage.long_work import TakesLongError

if TYPE_CHECKING:
    from wirebroker.base.clock import Clock, Slices
    from wirebroker.storage.files import Buffer
    from wirebroker.storage.log.append import AppendPlan, AppendResult
    from wirebroker.storage.log.log import Log
    from wirebroker.storage.log.producers.verification import VerificationGuard
    from wirebroker.storage.log.validation.record_validation import Walked


class Partition(ReplicaState):
    """A partition that has a replica on this node."""

    __slots__ = ()

    # -- epochs ----------------------------------------------------------------------------------

    def end_offset_for_epoch(self, leader_epoch: int) -> tuple[int, int]:
        """Return (epoch, end offset) for OffsetForLeaderEpoch, or (-1, -1) if unknown.

        The leader's epoch begins at the log end offset of its election, even without records.
        """
        return self.log.end_offset_for_epoch(leader_epoch)

    def earliest(self) -> tuple[int, int]:
        """Return (log start offset, its leader epoch or -1) for ListOffsets -2."""
        offset, epoch = self.log.earliest()
        return offset, UNKNOWN_EPOCH if epoch is None else epoch

    # -- as the leader ---------------------------------------------------------------------------

    def append(
        self,
        records: memoryview,
        *,
        now_ms: int,
        request_version: int,
        origin: AppendOrigin = AppendOrigin.CLIENT,
        guard: VerificationGuard | None = None,
        walked: Walked | None = None,
    ) -> AppendResult:
        """Append as the leader, immediately.

        Call check_leader before; no thread may be working on the log. A transaction's first batch
        needs a guard (log.producer_state.begin_verification). `walked` is the result of an earlier
        walk of the records.

        Raises:
            TakesLongError: It would block the loop; nothing has happened. Use append_in_turn.
            KafkaError: Validation failed.
            OSError: The disk failed; the log is unchanged.
        """
        result = self.log.append_as_leader(
            records,
            leader_epoch=self.role.leader_epoch,
            now_ms=now_ms,
            request_version=request_version,
            origin=origin,
            guard=guard,
            is_brief=True,
            walked=walked,
        )
        self.traffic.produce_requests += 1
        self._advance()
        if self._append_watchers:
            self._tell_append()
        return result

    def append_marker(
        self,
        *,
        producer_id: int,
        producer_epoch: int,
        coordinator_epoch: int,
        is_commit: bool,
        transaction_version: int,
        now_ms: int,
    ) -> AppendResult:
        """Append the marker that ends a producer's transaction here (markers.py).

        No thread may be working on the log.

        Raises:
            KafkaError: INVALID_PRODUCER_EPOCH, TRANSACTION_COORDINATOR_FENCED, or from
                check_leader.
            OSError: The disk failed; the log is unchanged.
        """
        assert not self.is_appending
        self.check_leader()
        result = append_end_marker(
            self.log,
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            coordinator_epoch=coordinator_epoch,
            is_commit=is_commit,
            transaction_version=transaction_version,
            leader_epoch=self.role.leader_epoch,
            now_ms=now_ms,
        )
        self._advance()
        self._tell_append()
        return result

    async def append_in_turn(
        self,
        records: memoryview,
        *,
        now_ms: int,
        request_version: int,
        slices: Slices,
        guard: VerificationGuard | None = None,
    ) -> AppendResult:
        """Append as the leader, in a thread if it takes long; `records` must stay valid meanwhile.

        Raises:
            KafkaError: Validation failed, or the partition was lost meanwhile.
            OSError: The disk failed; the log is unchanged.
        """
        async with self.append_lock:
            self.check_leader()
            if not self.takes_long(records):
                try:
                    return self.append(
                        records, now_ms=now_ms, request_version=request_version, guard=guard
                    )
                except TakesLongError:
                    await slices.turn()
            log = self.log
            walked = None
            walked_for = None if IS_QUICK else log.settings
            while walked_for is not None:
                # Without compiled code a thread would block the loop as well, so the loop walks in
                # slices.
                walked = await slices.run(log.walk(records, now_ms))
                # The walk is valid only for these settings.
                walked_for = log.settings if log.settings is not walked_for else None
            self.check_leader()
            leader_epoch = self.role.leader_epoch
            # Load the epochs here: while a thread loads them, other requests would find an empty
            # cache.
            log.leader_epochs.load()
            arguments = (log, records, leader_epoch, now_ms, request_version, guard, walked)
            plan = await in_thread(Work.APPENDS, _prepare_and_write, *arguments)
            # If another partition has found the disk broken, this append must not be acknowledged.
            self.directory.check_online()
            result = log.commit(plan)
            self.traffic.produce_requests += 1
            if self._leading is not None:  # otherwise waiters notice the new role
                self._advance()
                self._tell_append()
            return result

    # -- as a follower ---------------------------------------------------------------------------

    def append_as_follower(
        self,
        records: Buffer,
        *,
        leader_epoch: int,
        high_watermark: int,
        log_start_offset: int,
        now_ms: int,
    ) -> int:
        """Append the leader's records unchanged, and adopt its high watermark and log start offset.

        A partial batch at the end is ignored. Return the log end offset.

        Raises:
            KafkaError: From check_follower; NOT_LEADER_OR_FOLLOWER while the producers are
                replayed; CORRUPT_MESSAGE; UNKNOWN_SERVER_ERROR if the records do not continue the
                log.
            OSError: The disk failed; the log is unchanged.
        """
        assert not self.is_appending
        self.check_follower(leader_epoch)
        log, traffic = self.log, self.traffic
        if not log.producer_state.is_read:
            self.read_producers()
        bytes_before, records_before = log.appended_bytes, log.appended_records
        log.append_as_follower(records, now_ms=now_ms, leader_epoch=leader_epoch)
        traffic.replicated_bytes += log.appended_bytes - bytes_before
        traffic.replicated_records += log.appended_records - records_before
        if self._commits.is_always or log.unflushed_count >= log.settings.flush_messages:
            self._commits.add(self)
        committed = min(high_watermark, log.log_end_offset)
        # A new leader may report a lower one than its predecessor.
        if committed > log.high_watermark:
            log.set_high_watermark(committed)
            self._tell_growth()
        log.increment_log_start_offset(min(log_start_offset, log.high_watermark))
        return log.log_end_offset

    def truncate(self, offset: int, *, leader_epoch: int, now_ms: int) -> None:
        """Truncate the log to `offset`.

        Raises:
            KafkaError: From check_follower.
            OSError: The disk failed.
        """
        self.check_follower(leader_epoch)
        self.log.truncate_to(offset, now_ms=now_ms)

    async def truncate_in_turn(self, offset: int, *, leader_epoch: int, clock: Clock) -> None:
        """Truncate so that a power failure cannot mix truncated records with later ones.

        It raises the errors of `truncate`.
        """
        async with self.append_lock:
            await self._expose(offset, leader_epoch, clock)
            self.truncate(offset, leader_epoch=leader_epoch, now_ms=clock.now_ms())
            await self._flush_cut()

    async def restart_at(self, offset: int, *, leader_epoch: int, clock: Clock) -> None:
        """Delete all records and continue at the leader's log start offset.

        It raises the errors of `truncate`.
        """
        async with self.append_lock:
            await self._expose(0, leader_epoch, clock)
            self.check_follower(leader_epoch)
            self.log.truncate_fully(offset, now_ms=clock.now_ms())
            await self._flush_cut()

    async def _expose(self, offset: int, leader_epoch: int, clock: Clock) -> None:
        """Lower the checkpointed recovery point to `offset`."""
        self.check_follower(leader_epoch)
        if self.log.expose(offset):
            await self.directory.checkpoint(clock, Checkpoint.RECOVERY_POINTS)

    async def _flush_cut(self) -> None:
        target = self.log.flush_target()
        if target is not None:
            await in_thread(Work.SYNCS, target.sync)
            self.log.mark_flushed(target.offset, cuts=target.cuts)

    # -- flush -----------------------------------------------------------------------------------

    async def flush(self) -> None:
        """Wait until everything appended so far is on disk.

        Raises:
            KafkaError: The partition was deleted, or its directory is offline.
        """
        log = self.log
        end_offset = log.log_end_offset
        while log.recovery_point < min(end_offset, log.log_end_offset):
            self.directory.check_online()
            if self.is_retired:
                raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
            self._commits.add(self)
            await self._next_news()

    async def until_deleted(self, offset: int) -> None:
        """Wait until no live replica has records below `offset`.

        Raises:
            KafkaError: From check_leader.
        """
        self.check_leader()
        while self.low_watermark < offset:
            await self._next_news()
            self.check_leader()

    async def until_committed(self, end_offset: int) -> None:
        """Wait until everything below `end_offset` is committed.

        Raises:
            KafkaError: From check_leader.
        """
        log = self.log
        while log.high_watermark < end_offset:
            self.check_leader()
            await self._next_news()


def _prepare_and_write(  # noqa: PLR0917 - a thread is given no keywords
    log: Log,
    records: memoryview,
    leader_epoch: int,
    now_ms: int,
    request_version: int,
    guard: VerificationGuard | None,
    walked: Walked | None,
) -> AppendPlan:
    plan = log.prepare_append(
        records,
        leader_epoch=leader_epoch,
        now_ms=now_ms,
        request_version=request_version,
        guard=guard,
        walked=walked,
    )
    log.write(plan)
    return plan
