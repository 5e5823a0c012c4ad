"""What a broker does from time to time: checkpoints, expiry, removal of deleted logs.

Each duty has an interval from the config table. A disk that fails under one takes its directory
offline, as under a request; anything else that goes wrong is logged, and the duty done again at its
next turn.

Source: the scheduled tasks of Kafka's LogManager and ReplicaManager.
"""

from __future__ import annotations

import asyncio
import logging
from math import inf
from typing import TYPE_CHECKING

from wirebroker.clock import Slices, pause
from wirebroker.codecs.errors import KafkaError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from wirebroker.broker import Broker
    from wirebroker.cluster.partition import Partition

logger = logging.getLogger(__name__)

# How often deleted directories are looked at; file.delete.delay.ms itself is a minute.
REMOVAL_INTERVAL_MS = 1_000

_LONGEST_INTERVAL_S = 86_400.0


class Maintenance:
    """The periodic duties of one broker."""

    __slots__ = ("_broker", "_flushed_at", "_tasks")

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._tasks: list[asyncio.Task[None]] = []
        # When (monotonic) the logs that have a flush.ms were last flushed here.
        self._flushed_at: dict[Partition, float] = {}

    def start(self) -> None:
        """Begin all duties."""
        config = self._broker.config
        duties: list[tuple[int, Callable[[], Awaitable[None]]]] = [
            (config.int("replica.high.watermark.checkpoint.interval.ms"), self.checkpoint),
            (config.int("producer.id.expiration.check.interval.ms"), self.expire_producers),
            (config.int("log.flush.scheduler.interval.ms"), self.flush_by_time),
            (REMOVAL_INTERVAL_MS, self.remove_deleted),
        ]
        for interval_ms, duty in duties:
            self._tasks.append(asyncio.create_task(_repeat(interval_ms / 1000, duty)))

    async def stop(self) -> None:
        """End all duties; one that is under way is given up."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def checkpoint(self) -> None:
        """Write the checkpoint files."""
        replicas = self._broker.replicas
        for directory in replicas.directories:
            try:
                await directory.checkpoint(self._broker.clock)
            except OSError as error:
                replicas.directory_failed(directory, error)

    async def expire_producers(self) -> None:
        """Forget idempotent producers that have been silent for too long."""
        slices = Slices(self._broker.clock)
        for partition in list(self._broker.replicas):
            await partition.until_settled()
            partition.log.producer_state.remove_expired(self._broker.clock.now_ms())
            await slices.turn()

    async def flush_by_time(self) -> None:
        """Sync the logs whose flush.ms is over (`flush.messages` is looked at on append)."""
        replicas, clock = self._broker.replicas, self._broker.clock
        slices = Slices(clock)
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
        except OSError as error:
            self._broker.replicas.disk_failed(partition, error)
        except KafkaError as error:
            logger.debug("%s-%d is not flushed: %s", partition.topic, partition.index, error)

    async def remove_deleted(self) -> None:
        """Remove the files of deleted partitions."""
        while await asyncio.to_thread(self._broker.replicas.remove_deleted):
            pass


async def _repeat(interval_s: float, duty: Callable[[], Awaitable[None]]) -> None:
    while True:
        await pause(min(interval_s, _LONGEST_INTERVAL_S))
        try:
            await duty()
        except Exception:  # the root of a task: one bad turn must not end the duty
            logger.exception("%s failed; it is tried again", duty.__name__)
