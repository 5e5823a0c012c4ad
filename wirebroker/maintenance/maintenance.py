"""The broker's periodic duties: checkpoints, flushes, retention, expiry, removal.

Source: scheduled tasks in Kafka's LogManager and ReplicaManager.
"""

from __future__ import annotations

import asyncio
import logging
from math import inf
from typing import TYPE_CHECKING, NamedTuple, Protocol

from wirebroker.base.clock import Slices, pause
from wirebroker.base.threads import Work, in_thread
from wirebroker.codecs.errors import KafkaError
from wirebroker.disks.data_directory import Checkpoint, is_disk_failure, is_shortage
from wirebroker.maintenance.retention import Retention

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from wirebroker.base.clock import Clock
    from wirebroker.config import Config
    from wirebroker.disks.data_directory import DataDirectory
    from wirebroker.replica.partition import Partition
    from wirebroker.replica.replica_manager import ReplicaManager
    from wirebroker.storage.log.log import Log

logger = logging.getLogger(__name__)

# For deleted files, rolled logs and clocks.
SMALL_DUTIES_INTERVAL_MS = 1_000

_LONGEST_INTERVAL_S = 86_400.0
_SHORTEST_INTERVAL_MS = 10


class MaintenanceHost(Protocol):
    """A broker with periodic duties."""

    @property
    def config(self) -> Config:
        """The current configs."""
        ...

    @property
    def clock(self) -> Clock:
        """The clock."""
        ...

    @property
    def replicas(self) -> ReplicaManager:
        """All partitions of this node."""
        ...


class _Duty(NamedTuple):
    work: Callable[[], Awaitable[None]]
    interval_ms: int
    delay_ms: int  # before the first time


class Maintenance:
    """The periodic duties of one broker."""

    __slots__ = ("_broker", "_flushed_at", "_missing", "_tasks", "retention")

    def __init__(self, broker: MaintenanceHost) -> None:
        self._broker = broker
        self.retention = Retention(broker.replicas, broker.clock)
        self._tasks: list[asyncio.Task[None]] = []
        # The monotonic time of each last flush.
        self._flushed_at: dict[Partition, float] = {}
        # Those whose files were missing at the last flush.
        self._missing: set[Log] = set()

    def start(self) -> None:
        """Start all duties."""
        for duty in self._duties():
            self._tasks.append(asyncio.create_task(_repeat(duty)))

    def _duties(self) -> list[_Duty]:
        config = self._broker.config
        later_ms = config.int("log.initial.task.delay.ms")
        high_watermarks_ms = config.int("replica.high.watermark.checkpoint.interval.ms")
        expiry_ms = config.int("producer.id.expiration.check.interval.ms")
        flush_ms = config.int("log.flush.scheduler.interval.ms")
        return [
            _Duty(self.small_duties, SMALL_DUTIES_INTERVAL_MS, SMALL_DUTIES_INTERVAL_MS),
            _Duty(self.checkpoint_high_watermarks, high_watermarks_ms, high_watermarks_ms),
            _Duty(self.expire_producers, expiry_ms, expiry_ms),
            _Duty(self.flush_by_time, flush_ms, flush_ms),
            _Duty(
                self.checkpoint_recovery_points,
                config.int("log.flush.offset.checkpoint.interval.ms"),
                later_ms,
            ),
            _Duty(
                self.checkpoint_start_offsets,
                config.int("log.flush.start.offset.checkpoint.interval.ms"),
                later_ms,
            ),
            _Duty(
                self.retention.check_all, config.int("log.retention.check.interval.ms"), later_ms
            ),
        ]

    async def stop(self) -> None:
        """Cancel all duties."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def catch_up(self) -> None:
        """Run all duties now, because the clock was moved."""
        await self.expire_producers()
        await self.retention.check_all()
        await self.flush_by_time()
        await self.small_duties()

    async def checkpoint(self, kinds: Checkpoint = Checkpoint.ALL) -> None:
        """Write the checkpoint files."""
        replicas = self._broker.replicas
        for directory in replicas.directories:
            try:
                await directory.checkpoint(self._broker.clock, kinds)
            except OSError as error:
                replicas.write_failed(directory, error)

    async def checkpoint_high_watermarks(self) -> None:
        """Write the high watermarks."""
        await self.checkpoint(Checkpoint.HIGH_WATERMARKS)

    async def checkpoint_recovery_points(self) -> None:
        """Write the recovery points."""
        await self.checkpoint(Checkpoint.RECOVERY_POINTS)

    async def checkpoint_start_offsets(self) -> None:
        """Write the log start offsets."""
        await self.checkpoint(Checkpoint.LOG_START_OFFSETS)

    async def expire_producers(self) -> None:
        """Forget expired idempotent producers, by the earliest of the current and recent clocks."""
        slices = Slices(self._broker.clock, Slices.BESIDE_OTHERS_SECONDS)
        expiration_ms = self._broker.config.int("producer.id.expiration.ms")
        now_ms = self.retention.moment().earliest_ms(kept_ms=expiration_ms)
        for partition in list(self._broker.replicas):
            await partition.until_settled()
            partition.log.producer_state.remove_expired(now_ms)
            await slices.turn()

    async def flush_by_time(self) -> None:
        """Sync the logs whose flush.ms has passed (appends check `flush.messages`)."""
        replicas, clock = self._broker.replicas, self._broker.clock
        slices = Slices(clock, Slices.BESIDE_OTHERS_SECONDS)
        before, self._flushed_at = self._flushed_at, {}
        for partition in list(replicas):
            flush_ms = partition.log.settings.flush_ms
            if flush_ms < _LONGEST_INTERVAL_S * 1000:
                now = clock.monotonic()
                flushed_at = before.get(partition, -inf)
                if partition.log.unflushed_count and (now - flushed_at) * 1000 >= flush_ms:
                    await self._flush(partition)
                    flushed_at = now
                self._flushed_at[partition] = flushed_at
            await slices.turn()

    async def _flush(self, partition: Partition) -> None:
        try:
            await partition.flush()
        except KafkaError as error:
            logger.debug("cannot flush %s-%d: %s", partition.topic, partition.index, error)

    async def small_duties(self) -> None:
        """Run the duties that usually have nothing to do."""
        self.retention.look_at_clocks()
        await self.check_directories()
        await self.remove_deleted()
        await self.flush_rolled()
        await self.check_free_space()

    async def check_directories(self) -> None:
        """Take directories offline that are no longer at their paths."""
        replicas = self._broker.replicas
        for directory in replicas.directories:
            if directory.is_online:
                try:
                    await in_thread(Work.UPKEEP, directory.files.check_in_place)
                except OSError as error:
                    if is_disk_failure(error):
                        replicas.directory_failed(directory, error)

    async def remove_deleted(self) -> None:
        """Remove the files of deleted partitions and segments."""
        replicas = self._broker.replicas
        while await in_thread(Work.UPKEEP, replicas.deleted_partitions.remove_due):
            pass
        await replicas.deleted_segments.remove_due()

    async def check_free_space(self) -> None:
        """Retry what a full disk has prevented."""
        replicas = self._broker.replicas
        for directory in replicas.directories:
            directory.check_free_space()
        await replicas.create_missing()

    async def flush_rolled(self) -> None:
        """Sync segments closed by a roll, so that no recovery reads them."""
        replicas = self._broker.replicas
        slices = Slices(self._broker.clock, Slices.BESIDE_OTHERS_SECONDS)
        has_flushed = False
        for _ in range(len(replicas.rolled)):
            await slices.turn()
            log = replicas.rolled.popleft()
            partitions, _ = replicas.find("", log.topic_id, by_id=True)
            partition = partitions.get(log.partition)
            if partition is not None and partition.log is log:
                has_flushed |= await self._flush_closed(partition)
            else:
                self._missing.discard(log)
        if has_flushed:
            # Do not wait for the periodic checkpoint: recovery of a segment takes long.
            await self.checkpoint_recovery_points()

    async def _flush_closed(self, partition: Partition) -> bool:
        await partition.until_settled()
        log = partition.log
        target = log.closed_flush_target()
        if target is None or partition.is_retired or not partition.directory.is_online:
            return False
        directory = partition.directory
        try:
            await in_thread(Work.UPKEEP, target.sync)
            await in_thread(Work.UPKEEP, directory.sync_names)
        except OSError as error:
            self._flush_failed(partition, directory, error)
            return False
        self._missing.discard(log)
        log.mark_flushed(target.offset, cuts=target.cuts)
        return True

    def _flush_failed(self, partition: Partition, directory: DataDirectory, error: OSError) -> None:
        log = partition.log
        was_missing = log in self._missing
        self._missing.discard(log)
        if partition.is_retired:
            return  # a deletion has moved the files
        if isinstance(error, FileNotFoundError) and not was_missing:
            # Retention has probably removed a segment.
            self._missing.add(log)
        elif not is_shortage(error):
            self._broker.replicas.directory_failed(directory, error)
            return
        logger.warning("cannot flush %s, retrying later: %s", log.directory, error)
        self._broker.replicas.rolled.append(log)


async def _repeat(duty: _Duty) -> None:
    delay_ms = duty.delay_ms
    while True:
        await pause(min(delay_ms / 1000, _LONGEST_INTERVAL_S))
        try:
            await duty.work()
        except Exception:  # the root of a task
            logger.exception("%s failed; retrying", duty.work.__name__)
        # 0 means as often as possible.
        delay_ms = max(duty.interval_ms, _SHORTEST_INTERVAL_MS)
