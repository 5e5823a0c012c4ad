"""One replica of one partition: who leads, what is committed, who waits for it.

The log stores records; the partition says when they count. It alone moves the high watermark:

    log_start_offset <= last_stable_offset <= high_watermark <= log_end_offset

With a single replica every appended record is committed once it is written, so the high watermark
follows the log's end. Whoever waits for records is told at each advance (`watch`).

An append has three steps (prepare, write, commit; docs/decisions/0003). Small ones take all three
at once on the loop. A large one hands prepare and write to a thread, because they would hold the
loop too long, and everyone behind it takes a turn at `append_lock` until it is through.

Source: Kafka's Partition and DelayedOperation, KIP-101 and KIP-320 for the epochs.
"""

from __future__ import annotations

import asyncio

from wirebroker.codecs.errors import ErrorCode, KafkaError
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from wirebroker.storage.log import AppendResult, Log
    from wirebroker.coordinator.cluster_image import PartitionImage
    from collections.abc import Callable

# Above this a thread validates and writes: the page cache takes new pages at 0.4 GB/s in bad
# moments, so 2 MiB hold the loop 5 ms at most.
LARGE_APPEND_BYTES = 2 * 1024 * 1024

UNKNOWN_EPOCH = -1


class Partition:
    """A replica that this node holds; the log is open as long as the partition is known."""

    __slots__ = (
        "_watchers",
        "append_lock",
        "index",
        "isr_count",
        "leader",
        "leader_epoch",
        "log",
        "node_id",
        "topic",
        "topic_id",
    )

    def __init__(self, log: Log, image: PartitionImage, *, topic: str, node_id: int) -> None:
        self.log = log
        self.topic = topic
        self.topic_id = log.topic_id
        self.index = image.index
        self.node_id = node_id
        self.append_lock = asyncio.Lock()
        self._watchers: set[Callable[[], None]] = set()
        self.leader = image.leader
        self.leader_epoch = image.leader_epoch
        self.isr_count = len(image.isr)
        if self.is_leader:
            self._advance()

    @property
    def is_leader(self) -> bool:
        """Tell whether this node leads the partition."""
        return self.leader == self.node_id

    def update(self, image: PartitionImage) -> None:
        """Take over what the metadata says of leader, epoch and in-sync replicas."""
        self.leader = image.leader
        self.leader_epoch = image.leader_epoch
        self.isr_count = len(image.isr)
        if self.is_leader:
            self._advance()

    def check_leader(self, current_leader_epoch: int = UNKNOWN_EPOCH) -> None:
        """Refuse a request that takes another node, or another epoch of this one, for the leader.

        Args:
            current_leader_epoch: What the peer believes; -1 if it doesn't say.

        Raises:
            KafkaError: FENCED_LEADER_EPOCH, UNKNOWN_LEADER_EPOCH or NOT_LEADER_OR_FOLLOWER.
        """
        if current_leader_epoch not in {UNKNOWN_EPOCH, self.leader_epoch}:
            if current_leader_epoch < self.leader_epoch:
                raise KafkaError(ErrorCode.FENCED_LEADER_EPOCH)
            raise KafkaError(ErrorCode.UNKNOWN_LEADER_EPOCH)
        if self.leader != self.node_id:
            raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER)

    def check_in_sync(self) -> None:
        """Refuse acks=all while fewer replicas are in sync than min.insync.replicas."""
        if self.isr_count < self.log.settings.min_insync_replicas:
            raise KafkaError(ErrorCode.NOT_ENOUGH_REPLICAS)

    @property
    def must_flush(self) -> bool:
        """Tell whether flush.messages wants the log on the disk before the answer."""
        log = self.log
        return log.log_end_offset - log.recovery_point >= log.settings.flush_messages

    async def flush(self) -> None:
        """Wait until what is appended by now is on the disk (in a thread).

        Raises:
            OSError: The disk failed.
        """
        target = self.log.flush_target()
        if target is not None:
            await asyncio.get_running_loop().run_in_executor(None, target.sync)
            self.log.mark_flushed(target.offset)

    def must_take_turn(self, size: int) -> bool:
        """Tell whether an append of `size` bytes has to go through `append_in_turn`."""
        return size > LARGE_APPEND_BYTES or self.append_lock.locked()

    def append(self, records: memoryview, *, now_ms: int, request_version: int) -> AppendResult:
        """Append as the leader, at once (see `must_take_turn`).

        Raises:
            KafkaError: What validation found.
            OSError: The disk failed; the log is as before.
        """
        result = self.log.append_as_leader(
            records,
            leader_epoch=self.leader_epoch,
            now_ms=now_ms,
            request_version=request_version,
        )
        self._advance()
        return result

    async def append_in_turn(
        self, records: memoryview, *, now_ms: int, request_version: int
    ) -> AppendResult:
        """Append as the leader, in a thread if large; `records` must stay valid meanwhile."""
        async with self.append_lock:
            if len(records) <= LARGE_APPEND_BYTES:
                return self.append(records, now_ms=now_ms, request_version=request_version)
            log = self.log
            epoch = self.leader_epoch

            def prepare_and_write() -> Callable[[], AppendResult]:
                plan = log.prepare_append(
                    records, leader_epoch=epoch, now_ms=now_ms, request_version=request_version
                )
                log.write(plan)
                return lambda: log.commit(plan)

            commit = await asyncio.get_running_loop().run_in_executor(None, prepare_and_write)
            result = commit()
            self._advance()
            return result

    def watch(self, on_advance: Callable[[], None]) -> None:
        """Call `on_advance` whenever more records are committed, until `unwatch`."""
        self._watchers.add(on_advance)

    def unwatch(self, on_advance: Callable[[], None]) -> None:
        """End a `watch`."""
        self._watchers.discard(on_advance)

    def wake_watchers(self) -> None:
        """Tell all who wait to look again: records came, or the partition goes."""
        for on_advance in tuple(self._watchers):
            on_advance()

    def _advance(self) -> None:
        log = self.log
        if log.high_watermark != log.log_end_offset:
            log.set_high_watermark(log.log_end_offset)
            if self._watchers:
                self.wake_watchers()
