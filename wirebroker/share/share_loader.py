"""Loads the states of share partitions.

Source: Kafka's SharePartition.maybeInitialize, SharePartitionManager.handleInitializationException.
"""

from __future__ import annotations

import logging
from collections import deque
from typing import TYPE_CHECKING, Final

from wirebroker.base.clock import Slices, next_turn
from wirebroker.codecs.errors import ErrorCode, KafkaError, without_frames
from wirebroker.coordinator.share_partitions.loading import load
from wirebroker.coordinator.share_partitions.share_partition import NO_OFFSET, SharePhase
from wirebroker.coordinator.share_state.state import StateError
from wirebroker.share.persisted import error_of
from wirebroker.share.start_offsets import start_offset

if TYPE_CHECKING:
    from wirebroker.base.clock import Clock
    from wirebroker.base.metrics import Metrics
    from wirebroker.coordinator.share_partitions.share_configs import ShareConfigs
    from wirebroker.replica.replica_manager import ReplicaManager
    from wirebroker.share.leader_share import LeaderShare
    from wirebroker.share.persister import Persister
    from wirebroker.share.share_cache import ShareCache
    from wirebroker.share.share_writer import ShareWriter

logger = logging.getLogger(__name__)

# Loads that begin in one turn of the loop.
_STARTED_AT_ONCE: Final = 50


class ShareLoader:
    """Loads share partitions; those that cannot be loaded are removed."""

    __slots__ = (
        "_clock",
        "_configs",
        "_is_starting",
        "_metrics",
        "_persister",
        "_replicas",
        "_shares",
        "_waiting",
        "_writer",
    )

    def __init__(
        self,
        configs: ShareConfigs,
        shares: ShareCache,
        writer: ShareWriter,
        *,
        clock: Clock,
        replicas: ReplicaManager,
        persister: Persister,
        metrics: Metrics,
    ) -> None:
        self._configs = configs
        self._shares = shares
        self._writer = writer
        self._clock = clock
        self._replicas = replicas
        self._persister = persister
        self._metrics = metrics
        self._waiting: deque[LeaderShare] = deque()
        self._is_starting = False

    def load_soon(self, share: LeaderShare) -> None:
        """Load a share partition, and wake the fetches that wait for it."""
        self._waiting.append(share)
        if not self._is_starting:
            self._is_starting = True
            self._writer.run(self._start(), "loads of share partitions")

    async def _start(self) -> None:
        """Start the loads, a few in each turn: a fetch may name many thousands."""
        try:
            while self._waiting:
                for _ in range(min(_STARTED_AT_ONCE, len(self._waiting))):
                    share = self._waiting.popleft()
                    self._writer.run(self._load(share), f"load share partition {share.key}")
                await next_turn()
        finally:
            self._is_starting = False

    async def _load(self, share: LeaderShare) -> None:
        started_s = self._clock.monotonic()
        try:
            await self._load_state(share)
        except KafkaError as error:
            logger.info("cannot load the share partition %s: %s", share.key, error)
            self._fail(share, error)
        except Exception:  # the root of a task
            logger.exception("cannot load the share partition %s", share.key)
            self._fail(share, KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR))
        self._metrics.share_load_ms.record((self._clock.monotonic() - started_s) * 1000)
        share.wake()

    def _fail(self, share: LeaderShare, error: KafkaError) -> None:
        share.failure = without_frames(error)
        self._shares.remove(share)
        share.state.phase = SharePhase.FAILED

    async def _load_state(self, share: LeaderShare) -> None:
        key, state = share.key, share.state
        await self._writer.until_unchanged(key)
        partition = key.topic_id, key.partition
        results = await self._persister.read(key.group_id, {partition: state.leader_epoch})
        persisted = results[partition]
        if isinstance(persisted, StateError):
            raise error_of(persisted)
        offset = persisted.start_offset
        if offset == NO_OFFSET:
            offset = await self._reset_offset(share)
        steps = load(state, persisted, offset, self._configs.limits(key.group_id))
        self._writer.bury(share, await Slices(self._clock).run(steps))

    async def _reset_offset(self, share: LeaderShare) -> int:
        partition = share.partition
        try:
            return await start_offset(
                partition,
                self._configs.of(share.key.group_id).offset_reset,
                leader_epoch=share.state.leader_epoch,
                clock=self._clock,
            )
        except OSError as fault:
            self._replicas.disk_failed(partition, fault)
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR) from fault
