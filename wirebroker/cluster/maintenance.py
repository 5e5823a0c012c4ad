"""What a broker does from time to time: checkpoints, expiry, removal of deleted logs.

Each duty has an interval from the config table. A duty that fails is logged and tried again at its
next turn; a disk that is really broken shows in the appends.

Source: the scheduled tasks of Kafka's LogManager and ReplicaManager.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from wirebroker.clock import Slices, pause

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from wirebroker.broker import Broker
    from wirebroker.storage.files import Files

logger = logging.getLogger(__name__)

# How often deleted directories are looked at; file.delete.delay.ms itself is a minute.
REMOVAL_INTERVAL_MS = 1_000


class Maintenance:
    """The periodic duties of one broker."""

    __slots__ = ("_broker", "_files", "_tasks")

    def __init__(self, broker: Broker, files: Files) -> None:
        self._broker = broker
        self._files = files
        self._tasks: list[asyncio.Task[None]] = []

    def start(self) -> None:
        """Begin all duties."""
        config = self._broker.config
        duties: list[tuple[int, Callable[[], Awaitable[None]]]] = [
            (config.int("replica.high.watermark.checkpoint.interval.ms"), self._checkpoint),
            (config.int("producer.id.expiration.check.interval.ms"), self._expire_producers),
            (config.int("log.flush.scheduler.interval.ms"), self._flush_by_time),
            (REMOVAL_INTERVAL_MS, self._remove_deleted),
        ]
        for interval_ms, duty in duties:
            self._tasks.append(asyncio.create_task(_repeat(interval_ms / 1000, duty)))

    async def stop(self) -> None:
        """End all duties; one that is under way is given up."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _checkpoint(self) -> None:
        for directory in self._broker.replicas.directories:
            await self._broker.replicas.checkpoint(directory)

    async def _expire_producers(self) -> None:
        slices = Slices(self._broker.clock)
        for partition in list(self._broker.replicas):
            partition.log.producer_state.remove_expired(self._broker.clock.now_ms())
            await slices.turn()

    async def _flush_by_time(self) -> None:
        """Sync the logs whose flush.ms is over (`flush.messages` is looked at on append)."""
        for partition in list(self._broker.replicas):
            if partition.log.unflushed_count and partition.log.settings.flush_ms < 1 << 62:
                await partition.flush()

    async def _remove_deleted(self) -> None:
        replicas = self._broker.replicas
        for path in replicas.remove_deleted(self._broker.clock.monotonic()):
            await asyncio.to_thread(self._files.remove_tree, path)


async def _repeat(interval_s: float, duty: Callable[[], Awaitable[None]]) -> None:
    while True:
        await pause(min(interval_s, 86_400.0))
        try:
            await duty()
        except OSError:
            logger.exception("%s failed; it is tried again", duty.__name__)
