"""A ShareFetch: reads partitions, acquires records, and waits until there are enough.

    find or load share partitions -> read those with records to acquire -> enough? -> acquire
                                                 ^                        | no
                                                 +--- appends, releases --+

A partition is read for one fetch at a time. When the time is over, the records there are are
acquired.

Source: Kafka's DelayedShareFetch, ShareFetchUtils, PartitionMaxBytesStrategy.
"""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple

from wirebroker.base.clock import Slices
from wirebroker.base.threads import Work, in_thread
from wirebroker.codecs.errors import ErrorCode, KafkaError, without_frames
from wirebroker.codecs.hot.share_fetch_response import ShareFetchResult
from wirebroker.coordinator.share_partitions.aborted_records import without_aborted
from wirebroker.coordinator.share_partitions.acquisition import Acquiring, acquire
from wirebroker.coordinator.share_partitions.archiving import follow_log_start
from wirebroker.coordinator.share_partitions.release import take_back
from wirebroker.share.share_reads import batches_in, part_with, read_log
from wirebroker.storage.files import ColdPagesError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Sequence

    from wirebroker.base.clock import Clock, Steps
    from wirebroker.coordinator.share_partitions.acquisition import RecordBatch
    from wirebroker.coordinator.share_partitions.share_sessions import (
        SessionMember,
        ShareSessionPartition,
    )
    from wirebroker.replica.replica_manager import ReplicaManager
    from wirebroker.share.leader_share import LeaderShare
    from wirebroker.share.share_partition_manager import SharePartitionManager
    from wirebroker.share.share_reads import ShareRead

# Bytes that a thread reads from a cold position, and after how many of them the loop blocks.
_WARMED_BYTES: Final = 256 << 10
_MOST_WARMED: Final = 20
# Share partitions before other work may run.
_CHOSEN_AT_ONCE: Final = 50


class ShareFetchWish(NamedTuple):
    """The fields of a ShareFetch request."""

    member: SessionMember
    max_wait_ms: int
    min_bytes: int
    max_bytes: int
    max_records: int
    batch_size: int
    is_record_mode: bool
    is_read_committed: bool


class _Read:
    """The read of one share partition."""

    __slots__ = ("batches", "error", "fetch_offset", "max_bytes", "partition", "read", "share")

    def __init__(
        self, partition: ShareSessionPartition, share: LeaderShare, fetch_offset: int
    ) -> None:
        self.partition = partition
        self.share = share
        self.fetch_offset = fetch_offset
        self.max_bytes = 0
        self.read: ShareRead | None = None
        self.batches: Sequence[RecordBatch] = ()
        self.error: ErrorCode | None = None


class ShareFetch:
    """One member's fetch; `results` are complete after `run`."""

    __slots__ = (
        "_clock",
        "_failures",
        "_is_given_up",
        "_is_stopping",
        "_loop",
        "_manager",
        "_may_block",
        "_replicas",
        "_shares",
        "_slices",
        "_wakeup",
        "_was_woken",
        "_wish",
        "results",
    )

    def __init__(
        self,
        manager: SharePartitionManager,
        replicas: ReplicaManager,
        wish: ShareFetchWish,
        is_stopping: Callable[[], bool],
        *,
        clock: Clock,
    ) -> None:
        self._clock = clock
        self._slices = Slices(clock)
        self._manager = manager
        self._replicas = replicas
        self._wish = wish
        self._is_stopping = is_stopping
        self._loop = asyncio.get_running_loop()
        self._shares: dict[ShareSessionPartition, LeaderShare] = {}
        self._failures: dict[ShareSessionPartition, KafkaError] = {}
        self._wakeup: asyncio.Future[None] | None = None
        self._was_woken = False
        self._is_given_up = False
        self._may_block = False
        self.results: dict[ShareSessionPartition, ShareFetchResult] = {}

    async def find(self, partitions: Iterable[ShareSessionPartition]) -> None:
        """Find or load the share partitions."""
        wish = self._wish
        if wish.max_records == 0 or wish.max_bytes == 0:
            return
        for partition in partitions:
            try:
                share = self._manager.find_or_load(wish.member.group_id, *partition)
            except KafkaError as error:
                self._failures[partition] = without_frames(error)
            else:
                self._shares[partition] = share
            await self._slices.turn()

    async def run(self) -> None:
        """Acquire records, as soon as there are enough or the time is over."""
        if self._shares:
            try:
                await self._watch()
                await self._run()
            finally:
                await self._unwatch()
        for partition, error in self._failures.items():
            self.results[partition] = ShareFetchResult(partition.partition, error.code)

    async def _run(self) -> None:
        deadline = self._loop.time() + self._wish.max_wait_ms / 1000
        while not self._is_given_up:
            self._was_woken = False
            left_s = deadline - self._loop.time()
            is_over = left_s <= 0 or self._is_stopping()
            if await self._try(is_over=is_over) or is_over:
                break
            if not self._was_woken:
                await self._wait(left_s)
        for partition, share in self._shares.items():
            if share.failure is not None:
                self._failures[partition] = share.failure

    # -- waiting ---------------------------------------------------------------------------------

    def give_up(self) -> None:
        """End the wait without acquiring records: the client has disconnected."""
        self._is_given_up = True
        self._wake()

    async def _watch(self) -> None:
        for share in self._shares.values():
            share.watch(self._wake)
            share.partition.watch(self._wake)
            await self._slices.turn()

    async def _unwatch(self) -> None:
        for share in self._shares.values():
            share.unwatch(self._wake)
            share.partition.unwatch(self._wake)
            await self._slices.turn()

    def _wake(self) -> None:
        self._was_woken = True
        if self._wakeup is not None and not self._wakeup.done():
            self._wakeup.set_result(None)

    async def _wait(self, seconds: float) -> None:
        self._wakeup = self._loop.create_future()
        timer = self._loop.call_later(max(0.0, seconds), self._wake)
        try:
            await self._wakeup
        finally:
            timer.cancel()
            self._wakeup = None

    # -- reading ---------------------------------------------------------------------------------

    async def _try(self, *, is_over: bool) -> bool:
        """Acquire records if there are enough, or if the time is over; return whether it did."""
        self._slices = Slices(self._clock)  # the time of a wait does not count
        reads: list[_Read] = []
        try:
            await self._slices.run(self._choose(reads))
            if not reads:
                return False
            await self._look(reads)
            if not is_over and not self._is_enough(reads):
                return False
            await self._find_batches(reads)
            if self._is_given_up:
                return True
            remaining = self._wish.max_records
            for read in reads:
                remaining -= self._acquire(read, remaining)
                await self._slices.turn()
        finally:
            for read in reads:
                self._end_read(read.share)
        for read in reads:
            if self.results[read.partition].acquired:
                read.share.wake(but=self._wake)
        return True

    def _choose(self, reads: list[_Read]) -> Steps[None]:
        """Add the share partitions with records to acquire; no other fetch may read them."""
        limits = self._manager.configs.limits(self._wish.member.group_id)
        for count, (partition, share) in enumerate(self._shares.items(), 1):
            state = share.state
            if not share.is_active:
                pass
            elif state.is_being_read:
                share.is_wanted = True
            elif state.can_acquire(limits):
                state.is_being_read = True
                reads.append(_Read(partition, share, state.next_fetch_offset()))
            if count % _CHOSEN_AT_ONCE == 0:
                yield
        self._share_bytes(reads)

    def _share_bytes(self, reads: Sequence[_Read]) -> None:
        """Give each the same share of the bytes; without enough bytes, the first ones get one."""
        if not reads:
            return
        most_bytes, rest = divmod(self._wish.max_bytes, len(reads))
        for number, read in enumerate(reads):
            read.max_bytes = most_bytes
            if most_bytes == 0:
                read.max_bytes = 1 if number < rest else 0
        if most_bytes:
            reads[0].max_bytes += rest

    def _end_read(self, share: LeaderShare) -> None:
        """Let other fetches read a share partition, and wake those that could not."""
        share.state.is_being_read = False
        if share.is_wanted:
            share.is_wanted = False
            share.wake(but=self._wake)

    async def _look(self, reads: Sequence[_Read]) -> None:
        remaining = self._wish.max_bytes
        size = 0
        for read in reads:
            max_bytes = min(read.max_bytes, remaining)
            await self._guarded(read, partial(self._read, read, max_bytes, size))
            if read.read is not None:
                size += read.read.size
                remaining = max(0, remaining - read.read.size)
            await self._slices.turn()

    async def _read(self, read: _Read, max_bytes: int, size_before: int) -> None:
        read.read = read_log(
            read.share.partition,
            read.fetch_offset,
            max_bytes,
            min_one=not size_before,
            may_block=self._may_block,
            is_read_committed=self._wish.is_read_committed,
        )

    async def _find_batches(self, reads: Sequence[_Read]) -> None:
        for read in reads:
            if read.read is not None and read.read.slice is not None:
                await self._guarded(read, partial(self._list_batches, read))
                await self._slices.turn()

    async def _list_batches(self, read: _Read) -> None:
        found = read.read
        assert found is not None
        assert found.slice is not None
        # No later records can be acquired.
        last_in_flight = max(read.share.state.end_offset, read.fetch_offset)
        read.batches = await self._slices.run(
            batches_in(
                found.slice,
                beyond_offset=last_in_flight + self._wish.max_records,
                may_block=self._may_block,
                finds_aborted=bool(found.aborted),
            )
        )

    async def _guarded(self, read: _Read, work: Callable[[], Awaitable[None]]) -> None:
        """Call a function that reads files; note its error."""
        for _ in range(_MOST_WARMED):
            try:
                await work()
            except ColdPagesError as cold:
                try:
                    await in_thread(Work.WARMING, cold.file.warm, cold.position, _WARMED_BYTES)
                except OSError:
                    break  # the next read reports it for its partition
            except (KafkaError, OSError) as error:
                self._note_error(read, error)
                return
            else:
                return
        self._may_block = True
        try:
            await work()
        except (KafkaError, OSError) as error:
            self._note_error(read, error)

    def _note_error(self, read: _Read, error: KafkaError | OSError) -> None:
        if isinstance(error, KafkaError):
            read.error = error.code
        else:
            self._replicas.disk_failed(read.share.partition, error)
            read.error = ErrorCode.KAFKA_STORAGE_ERROR

    def _is_enough(self, reads: Sequence[_Read]) -> bool:
        size = 0
        for read in reads:
            if read.error is not None:
                return True
            if read.read is not None:
                if read.read.is_of_old_segment:
                    return True
                size += read.read.size
        return size >= self._wish.min_bytes

    # -- acquiring -------------------------------------------------------------------------------

    def _acquire(self, read: _Read, max_records: int) -> int:
        """Make the result of a read; return the number of acquired records."""
        share, wish = read.share, self._wish
        result = self.results[read.partition] = ShareFetchResult(read.partition.partition)
        if read.error is not None:
            if read.error is ErrorCode.OFFSET_OUT_OF_RANGE:
                follow_log_start(share.state, share.partition.log.log_start_offset)
            else:
                result.error_code = read.error
            return 0
        found = read.read
        if found is None or found.slice is None:
            return 0
        wanted = Acquiring(
            wish.member.member_id,
            max_records,
            wish.batch_size,
            read.fetch_offset,
            is_record_mode=wish.is_record_mode,
        )
        limits = self._manager.configs.limits(wish.member.group_id)
        now_ms = self._manager.locks.now_ms()
        acquired = acquire(share.state, wanted, read.batches, limits, now_ms)
        acquired = without_aborted(share.state, acquired, read.batches, found.aborted)
        if acquired.records:
            self._manager.locks.watch(share)
            result.acquired = acquired.records
            result.records = part_with(found.slice, read.batches, acquired.records)
        return acquired.record_count

    async def take_back(self) -> None:
        """Make the acquired records available again, because they are not sent."""
        member_id = self._wish.member.member_id
        for partition, result in self.results.items():
            acquired, result.acquired = result.acquired, ()
            for first_offset, last_offset, _ in acquired:
                state = self._shares[partition].state
                take_back(state, member_id, first_offset, last_offset)
                await self._slices.turn()
            if acquired:
                self._shares[partition].wake()

    def note_sent(self) -> None:
        """Count the bytes sent to the member."""
        for partition, result in self.results.items():
            if partition in self._shares:
                self._shares[partition].partition.traffic.bytes_out += result.size
