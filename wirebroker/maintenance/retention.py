"""Retention of this node's logs; storage/log/retention.py chooses the segments.

Source: Kafka's LogManager.cleanupLogs.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from wirebroker.base.clock import Slices
from wirebroker.storage.log.removal import set_aside_segment
from wirebroker.storage.log.retention import MOST_SEGMENTS
from wirebroker.storage.log.wall_clocks import WallClocks

if TYPE_CHECKING:
    from wirebroker.base.clock import Clock
    from wirebroker.replica.partition import Partition
    from wirebroker.replica.replica_manager import ReplicaManager
    from wirebroker.storage.log.wall_clocks import ClockReading

logger = logging.getLogger(__name__)

# Smaller jumps are not logged.
_NOTABLE_JUMP_MS = 60_000


class Retention:
    """The deletion of expired segments."""

    __slots__ = ("_clock", "_clocks", "_replicas")

    def __init__(self, replicas: ReplicaManager, clock: Clock) -> None:
        self._replicas = replicas
        self._clock = clock
        self._clocks = WallClocks(clock.now_ms(), clock.monotonic())

    def look_at_clocks(self) -> None:
        """Detect a jump of the wall clock."""
        jump_ms = self._clocks.look(self._clock.now_ms(), self._clock.monotonic())
        if abs(jump_ms) >= _NOTABLE_JUMP_MS:
            logger.warning(
                "the wall clock has jumped by %+.1f s; retention ignores the jump",
                jump_ms / 1000,
            )

    def moment(self) -> ClockReading:
        """Return the time now, by all clocks."""
        return self._clocks.moment(self._clock.now_ms(), self._clock.monotonic())

    async def check_all(self) -> None:
        """Check every log once."""
        self.look_at_clocks()
        slices = Slices(self._clock, Slices.BESIDE_OTHERS_SECONDS)
        for partition in list(self._replicas):
            await self.check(partition, slices)
            await slices.turn()

    async def check(self, partition: Partition, slices: Slices) -> None:
        """Delete one partition's expired segments."""
        try:
            while await self._delete_some(partition, slices) >= MOST_SEGMENTS:
                await slices.turn()
        except OSError as error:
            self._replicas.disk_failed(partition, error)

    async def _delete_some(self, partition: Partition, slices: Slices) -> int:
        log = partition.log
        if log.settings.retention_bytes >= 0:
            for segment in list(log.segments):
                _ = segment.size  # reads it from disk
                await slices.turn()
        await partition.until_settled()
        if partition.is_retired or not partition.directory.is_online:
            return 0
        removed = log.delete_old_segments(self.moment())
        if not removed:
            return 0
        logger.info(
            "%s-%d: deleted %d segments from %s on; the log starts at offset %d",
            partition.topic,
            partition.index,
            len(removed),
            removed[0].log.path,
            log.log_start_offset,
        )
        for segment in removed:
            if partition.is_retired:
                for removed_segment in removed:
                    removed_segment.free_gradually()  # the files go with the topic
                return 0
            set_aside_segment(log, segment)
            await slices.turn()
        self._replicas.deleted_segments.add(removed, delay_ms=log.settings.file_delete_delay_ms)
        return len(removed)
