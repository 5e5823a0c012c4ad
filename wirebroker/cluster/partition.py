"""One replica of one partition: who leads, what is committed, who waits for it.

The log stores records; the partition says when they count. It alone moves the high watermark:

    log_start_offset <= last_stable_offset <= high_watermark <= log_end_offset

With a single replica every appended record is committed once it is written, so the high watermark
follows the log's end; with wirebroker.durability=fsync, or when flush.messages is reached, once it
is on the disk (group_commit.py). Whoever waits for records, or to answer for them, is told at each
advance (`watch`).

An append has three steps (prepare, write, commit; docs/decisions/0003). Small ones take all three
at once on the loop. A large one hands prepare and write to a thread, because they would hold the
loop too long, and everyone behind it takes a turn at `append_lock` until it is through; so does the
deletion of the partition, which therefore never pulls a file away under a thread.

Laws: while the directory is offline, and once the partition is retired, nothing is appended and
nothing that was being appended is acknowledged (who has waited checks again).

Source: Kafka's Partition and DelayedOperation, KIP-101 and KIP-320 for the epochs.
"""

from __future__ import annotations

import asyncio
import logging
from struct import Struct
from typing import TYPE_CHECKING

from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.codecs.record_batch import CODEC_MASK, LOG_APPEND_TIME_FLAG
from wirebroker.config_topic import LONG_MAX
from wirebroker.coordinator.cluster_image import NO_LEADER
from wirebroker.storage.log_append import AppendOrigin
from wirebroker.storage.log_markers import append_end_marker

if TYPE_CHECKING:
    from collections.abc import Callable

    from wirebroker.cluster.data_directory import DataDirectory
    from wirebroker.cluster.group_commit import GroupCommit
    from wirebroker.coordinator.cluster_image import PartitionImage
    from wirebroker.storage.log import Log
    from wirebroker.storage.log_append import AppendPlan, AppendResult
    from wirebroker.storage.verification import VerificationGuard

logger = logging.getLogger(__name__)

# Above this a thread validates and writes: the page cache takes new pages at 0.4 GB/s in bad
# moments, so 2 MiB hold the loop 5 ms at most.
LARGE_APPEND_BYTES = 2 * 1024 * 1024

# The same for a batch whose records have to be walked one by one, 1 us each.
LARGE_WALK_BYTES = 16 * 1024

# In a batch header: attributes, last offset delta, base timestamp, max timestamp.
_ATTRIBUTES_TO_TIMESTAMPS = Struct(">hiqq")
_ATTRIBUTES_POSITION = 21

UNKNOWN_EPOCH = -1


class Partition:
    """A replica that this node holds; the log is open as long as the partition is known.

    Attributes:
        directory: Where the log lies; it may go offline.
        is_retired: Whether the partition was deleted; it is not found any more, but requests that
            have found it before may still hold it.
    """

    __slots__ = (
        "_append_lock",
        "_commits",
        "_replay",
        "_watchers",
        "directory",
        "index",
        "is_retired",
        "isr_count",
        "leader",
        "leader_epoch",
        "log",
        "node_id",
        "replica_count",
        "topic",
        "topic_id",
    )

    # is_retired => leader == NO_LEADER

    def __init__(
        self,
        log: Log,
        image: PartitionImage,
        *,
        topic: str,
        node_id: int,
        directory: DataDirectory,
        commits: GroupCommit,
    ) -> None:
        self.log = log
        self._commits = commits
        self.topic = topic
        self.topic_id = log.topic_id
        self.index = image.index
        self.node_id = node_id
        self.directory = directory
        self.is_retired = False
        # Made when first needed: most of 10,000 partitions never do.
        self._append_lock: asyncio.Lock | None = None
        self._replay: asyncio.Task[None] | None = None
        # In the order in which they came.
        self._watchers: dict[Callable[[], None], None] = {}
        self.update(image)

    @property
    def is_leader(self) -> bool:
        """Tell whether this node leads the partition."""
        return self.leader == self.node_id

    def update(self, image: PartitionImage) -> None:
        """Take over what the metadata says of leader, epoch and in-sync replicas."""
        self.leader = image.leader
        self.leader_epoch = image.leader_epoch
        self.isr_count = len(image.isr)
        self.replica_count = len(image.replicas)
        if self.is_leader:
            self._advance()

    @property
    def commits_at_once(self) -> bool:
        """Tell whether what is appended counts as committed before it is on the disk."""
        return not self._commits.is_always and self.log.settings.flush_messages == LONG_MAX

    def check_leader(self, current_leader_epoch: int = UNKNOWN_EPOCH) -> None:
        """Refuse a request that cannot be served here, or takes another epoch for the present one.

        Args:
            current_leader_epoch: What the peer believes; -1 if it doesn't say.

        Raises:
            KafkaError: KAFKA_STORAGE_ERROR, UNKNOWN_TOPIC_OR_PARTITION, FENCED_LEADER_EPOCH,
                UNKNOWN_LEADER_EPOCH or NOT_LEADER_OR_FOLLOWER.
        """
        self.directory.check_online()
        if current_leader_epoch not in (UNKNOWN_EPOCH, self.leader_epoch):
            if current_leader_epoch < self.leader_epoch:
                raise KafkaError(ErrorCode.FENCED_LEADER_EPOCH)
            raise KafkaError(ErrorCode.UNKNOWN_LEADER_EPOCH)
        if self.leader != self.node_id:
            if self.is_retired:
                raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
            raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        if not self.log.producer_state.is_read:
            self._read_producers()

    def _read_producers(self) -> None:
        """Read what a clean stop left of the producers, at the first request; a small file.

        Raises:
            KafkaError: NOT_LEADER_OR_FOLLOWER: it is damaged, a thread replays the log, clients try
                again. KAFKA_STORAGE_ERROR.
        """
        try:
            if self._replay is None and self.log.producer_state.read():
                return
        except OSError as error:
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, str(error)) from error
        if self._replay is None:
            self._replay = asyncio.create_task(self._replay_producers())
        raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER)

    async def _replay_producers(self) -> None:
        try:
            async with self.append_lock:
                await asyncio.to_thread(self.log.producer_state.replay)
        except (KafkaError, OSError) as error:
            logger.error(  # noqa: TRY400 - the next request tries it again
                "the producers of %s-%d cannot be replayed: %s", self.topic, self.index, error
            )
        finally:
            self._replay = None

    def check_in_sync(self) -> None:
        """Refuse acks=all while too few replicas are in sync.

        More than the partition has are never demanded (Kafka's Partition.effectiveMinIsr).

        Raises:
            KafkaError: NOT_ENOUGH_REPLICAS.
        """
        count = self.isr_count  # with all in sync, as with a single replica, nothing is looked up
        if count < self.replica_count and count < self.log.settings.min_insync_replicas:
            raise KafkaError(ErrorCode.NOT_ENOUGH_REPLICAS)

    def retire(self) -> None:
        """Note that the partition is deleted, and tell all who wait for it."""
        self.is_retired = True
        self.leader = NO_LEADER
        self.wake_watchers()

    def resign(self) -> None:
        """Take no more appends: the log is about to close."""
        self.leader = NO_LEADER

    # -- epochs ----------------------------------------------------------------------------

    def end_offset_for_epoch(self, leader_epoch: int) -> tuple[int, int]:
        """Return (epoch, end offset) for OffsetForLeaderEpoch; (-1, -1) if nothing is known.

        A leader's own epoch begins where it found the log. The log learns of it with the first
        record; until then it is added here, so that a consumer that was told this epoch together
        with an offset finds both again.
        """
        log = self.log
        latest = log.leader_epochs.latest_epoch
        if self.is_leader and latest < leader_epoch <= self.leader_epoch:
            is_known = leader_epoch == self.leader_epoch or latest < 0
            return leader_epoch if is_known else latest, log.log_end_offset
        return log.end_offset_for_epoch(leader_epoch)

    def earliest(self) -> tuple[int, int]:
        """Return (log start offset, its leader epoch or -1): ListOffsets -2."""
        log = self.log
        if self.is_leader and log.log_start_offset == log.log_end_offset:
            return log.log_start_offset, self.leader_epoch
        offset, epoch = log.earliest()
        return offset, UNKNOWN_EPOCH if epoch is None else epoch

    # -- append ----------------------------------------------------------------------------

    @property
    def append_lock(self) -> asyncio.Lock:
        """What a large append holds, and whoever must not interfere with one."""
        if self._append_lock is None:
            self._append_lock = asyncio.Lock()
        return self._append_lock

    @property
    def is_appending(self) -> bool:
        """Tell whether a thread is at work on the log."""
        return self._append_lock is not None and self._append_lock.locked()

    async def until_settled(self) -> None:
        """Wait until no thread is at work on the log."""
        while self._append_lock is not None and self._append_lock.locked():
            async with self._append_lock:
                pass

    def takes_long(self, records: memoryview, *, now_ms: int) -> bool:
        """Tell whether an append would hold the loop too long.

        A batch's records are walked, and unpacked before, on topics with compaction or their own
        compression, and where timestamps are out of bounds (see batch_validation.py). A small
        batch can unpack to a very large one.
        """
        size = len(records)
        if size > LARGE_APPEND_BYTES:
            return True
        attributes, _, base_timestamp, max_timestamp = _ATTRIBUTES_TO_TIMESTAMPS.unpack_from(
            records, _ATTRIBUTES_POSITION
        )
        if size <= LARGE_WALK_BYTES and not attributes & CODEC_MASK:
            return False
        settings = self.log.settings
        return (
            settings.is_compacted
            or settings.compression_type != "producer"
            or max_timestamp - now_ms > settings.message_timestamp_after_max_ms
            or now_ms - base_timestamp > settings.message_timestamp_before_max_ms
            or bool(attributes & LOG_APPEND_TIME_FLAG)
        )

    def append(
        self,
        records: memoryview,
        *,
        now_ms: int,
        request_version: int,
        origin: AppendOrigin = AppendOrigin.CLIENT,
        guard: VerificationGuard | None = None,
    ) -> AppendResult:
        """Append as the leader, at once: nobody is at work on the log and it won't take long.

        A transaction's first batch needs a guard (log.producer_state.begin_verification).

        Raises:
            KafkaError: What validation found.
            OSError: The disk failed; the log is as before.
        """
        result = self.log.append_as_leader(
            records,
            leader_epoch=self.leader_epoch,
            now_ms=now_ms,
            request_version=request_version,
            origin=origin,
            guard=guard,
        )
        self._advance()
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
        """End a producer's transaction here, as its coordinator asks for (see log_markers.py).

        Nobody is at work on the log: see until_settled.

        Raises:
            KafkaError: INVALID_PRODUCER_EPOCH or TRANSACTION_COORDINATOR_FENCED; what check_leader
                raises.
            OSError: The disk failed; the log is as before.
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
            leader_epoch=self.leader_epoch,
            now_ms=now_ms,
        )
        self._advance()
        return result

    async def append_in_turn(
        self,
        records: memoryview,
        *,
        now_ms: int,
        request_version: int,
        guard: VerificationGuard | None = None,
    ) -> AppendResult:
        """Append as the leader, in a thread if it takes long; `records` must stay valid meanwhile.

        Raises:
            KafkaError: What validation found; what became of the partition while this waited.
            OSError: The disk failed; the log is as before.
        """
        async with self.append_lock:
            self.check_leader()
            if not self.takes_long(records, now_ms=now_ms):
                return self.append(
                    records, now_ms=now_ms, request_version=request_version, guard=guard
                )
            loop, log = asyncio.get_running_loop(), self.log
            arguments = (log, records, self.leader_epoch, now_ms, request_version, guard)
            plan = await loop.run_in_executor(None, _prepare_and_write, *arguments)
            # Another partition may have found the disk broken meanwhile: then this is the last
            # write, and nobody is told of it.
            self.directory.check_online()
            result = log.commit(plan)
            self._advance()
            return result

    # -- flush -----------------------------------------------------------------------------

    async def flush(self) -> None:
        """Wait until what is appended by now is on the disk.

        Raises:
            KafkaError: The partition was deleted, or its directory is offline.
        """
        log = self.log
        end_offset = log.log_end_offset
        while log.recovery_point < end_offset:
            self.check_leader()
            self._commits.add(self)
            await self._next_news()

    def flushed(self, offset: int) -> None:
        """Note that everything below `offset` is on the disk (called by the group commit)."""
        before = self.log.high_watermark
        self.log.mark_flushed(offset)
        self._advance()
        if self.log.high_watermark == before:
            self.wake_watchers()  # somebody may wait for the disk alone

    async def until_committed(self, end_offset: int) -> None:
        """Wait until everything below `end_offset` is committed.

        Raises:
            KafkaError: The partition was deleted, is led by another node, or its directory is
                offline.
        """
        log = self.log
        while log.high_watermark < end_offset:
            self.check_leader()
            await self._next_news()

    async def _next_news(self) -> None:
        """Wait until watchers are told to look again."""
        news: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        def tell() -> None:
            if not news.done():
                news.set_result(None)

        self.watch(tell)
        try:
            await news
        finally:
            self.unwatch(tell)

    # -- waiting ---------------------------------------------------------------------------

    def watch(self, on_advance: Callable[[], None]) -> None:
        """Call back whenever more records are committed, or the partition goes, until `unwatch`."""
        self._watchers[on_advance] = None

    def unwatch(self, on_advance: Callable[[], None]) -> None:
        """End a `watch`, if there is one."""
        self._watchers.pop(on_advance, None)

    def wake_watchers(self) -> None:
        """Tell all who wait to look again: records came, or the partition goes."""
        for on_advance in tuple(self._watchers):
            on_advance()

    def _advance(self) -> None:
        """Move the high watermark to what counts as committed."""
        log = self.log
        committed = log.log_end_offset
        if log.recovery_point < committed and (
            self._commits.is_always or committed - log.recovery_point >= log.settings.flush_messages
        ):
            self._commits.add(self)
            committed = log.recovery_point
        if committed > log.high_watermark:
            log.set_high_watermark(committed)
            if self._watchers:
                self.wake_watchers()


def _prepare_and_write(  # noqa: PLR0917 - a thread is given no keywords
    log: Log,
    records: memoryview,
    leader_epoch: int,
    now_ms: int,
    request_version: int,
    guard: VerificationGuard | None,
) -> AppendPlan:
    plan = log.prepare_append(
        records,
        leader_epoch=leader_epoch,
        now_ms=now_ms,
        request_version=request_version,
        guard=guard,
    )
    log.write(plan)
    return plan
