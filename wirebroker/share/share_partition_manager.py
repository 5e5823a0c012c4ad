"""The share partitions of this node's partitions, and the share sessions of its clients.

A share partition exists from the first fetch of its group on, as long as this node leads in the
same epoch, the persister accepts its writes, and the group has a session here.

Source: Kafka's SharePartitionManager.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Final

from wirebroker.base.clock import Slices
from wirebroker.codecs.errors import ErrorCode, KafkaError, without_frames
from wirebroker.coordinator.share_partitions.acknowledgement import AckType, acknowledge
from wirebroker.coordinator.share_partitions.share_sessions import (
    MOST_PARTITIONS,
    SessionMember,
    ShareSessionPartition,
    ShareSessions,
)
from wirebroker.coordinator.share_state.state import SharePartitionKey
from wirebroker.share.leader_share import LeaderShare
from wirebroker.share.persisted import FENCING
from wirebroker.share.session_ends import SessionEnds
from wirebroker.share.share_cache import ShareCache
from wirebroker.share.share_loader import ShareLoader
from wirebroker.share.share_locks import ShareLocks
from wirebroker.share.share_writer import ShareWriter

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from wirebroker.base.clock import Clock, Steps
    from wirebroker.base.metrics import Metrics
    from wirebroker.config import Config
    from wirebroker.coordinator.controller.image.cluster_image import ClusterImage
    from wirebroker.coordinator.controller.image.image_change import ImageChange
    from wirebroker.coordinator.share_partitions.acknowledgement import Acknowledgement
    from wirebroker.coordinator.share_partitions.share_configs import ShareConfigs
    from wirebroker.replica.leadership import LeadershipChange
    from wirebroker.replica.replica_manager import ReplicaManager
    from wirebroker.share.dead_letters import DeadLetters
    from wirebroker.share.persister import Persister
    from wirebroker.share.share_writer import Changes

logger = logging.getLogger(__name__)

Errors = dict[ShareSessionPartition, KafkaError]

_NOT_HERE: Final = "This server does not host this topic-partition."


class SharePartitionManager:
    """All share partitions of one broker."""

    __slots__ = (
        "_clock",
        "_loader",
        "_metrics",
        "_replicas",
        "_writer",
        "configs",
        "ends",
        "locks",
        "sessions",
        "shares",
    )

    def __init__(
        self,
        configs: ShareConfigs,
        *,
        clock: Clock,
        replicas: ReplicaManager,
        persister: Persister,
        dead_letters: DeadLetters,
        metrics: Metrics,
    ) -> None:
        self._clock = clock
        self._replicas = replicas
        self.configs = configs
        self.sessions = ShareSessions(configs.config.int("group.share.max.share.sessions"))
        self._metrics = metrics
        metrics.share_sessions = self.sessions.__len__
        metrics.share_session_partitions = lambda: self.sessions.partition_count
        self.shares = ShareCache()
        self.locks = ShareLocks(clock, self._release_expired, self._on_locks_due)
        self._writer = ShareWriter(
            persister,
            dead_letters,
            clock=clock,
            now_ms=self.locks.now_ms,
            on_error=self.fence,
            on_fault=self.shares.remove,
        )
        self._loader = ShareLoader(
            configs,
            self.shares,
            self._writer,
            clock=clock,
            replicas=replicas,
            persister=persister,
            metrics=metrics,
        )
        self.ends = SessionEnds(
            configs,
            self.sessions,
            self.shares,
            self._writer,
            clock=clock,
            now_ms=self.locks.now_ms,
            metrics=metrics,
        )

    # -- life ------------------------------------------------------------------------------------

    def start(self) -> None:
        """Follow the leaderships."""
        self._replicas.leaderships.subscribe(self._on_leadership)

    async def stop(self) -> None:
        """Stop; writes in progress are dropped."""
        self.locks.stop()
        await self._writer.stop()

    def use_config(self, config: Config) -> None:
        """Apply a configuration."""
        self.configs.use(config, self.configs.image)

    async def apply(self, change: ImageChange, image: ClusterImage) -> None:
        """Apply a metadata change; when share groups are disabled, nothing remains."""
        del change
        self.configs.use(self.configs.config, image)
        if not self.configs.is_enabled and (self.shares or self.sessions):
            self.sessions.clear()
            slices = Slices(self._clock)
            for share in tuple(self.shares):
                self.shares.remove(share)
                await slices.turn()

    def _on_leadership(self, change: LeadershipChange) -> None:
        if not self.shares:
            return  # as at the start, when a broker may lead many thousand partitions
        for partition, _ in change.resigned:
            for share in self.shares.of_partition(partition):
                self.shares.remove(share)
        # Another node may have led in between, so the state is loaded again.
        for partition, leader_epoch in change.elected:
            for share in self.shares.of_partition(partition):
                if share.state.leader_epoch < leader_epoch:
                    self.shares.remove(share)

    # -- share partitions ------------------------------------------------------------------------

    def find_or_load(self, group_id: str, topic_id: bytes, index: int) -> LeaderShare:
        """Return a share partition; begin to load its state if necessary.

        Raises:
            KafkaError: This node does not lead the partition, the group has no session here, or
                there are too many share partitions.
        """
        key = SharePartitionKey(group_id, topic_id, index)
        share = self.shares.get(key)
        if share is None:
            partition = self._replicas.find("", topic_id, by_id=True)[0].get(index)
            if partition is None:
                raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
            partition.check_leader()
            if not self.sessions.has_members(group_id):
                raise KafkaError(ErrorCode.SHARE_SESSION_NOT_FOUND)
            if len(self.shares) >= MOST_PARTITIONS:
                raise KafkaError(ErrorCode.SHARE_SESSION_LIMIT_REACHED)
            share = LeaderShare(key, partition)
            self.shares.add(share)
            self._loader.load_soon(share)
        return share

    def fence(self, share: LeaderShare, error: KafkaError) -> None:
        """Remove a share partition if an error says that its state is no longer valid."""
        if error.code in FENCING and self.shares.remove(share):
            logger.info("the share partition %s is fenced: %s", share.key, error)

    # -- acknowledgements ------------------------------------------------------------------------

    async def acknowledge(
        self,
        member: SessionMember,
        requested: Mapping[ShareSessionPartition, Sequence[Acknowledgement]],
    ) -> asyncio.Task[Errors]:
        """Begin the state changes of a member's acknowledgements.

        The task persists them and returns the errors of partitions.
        """
        self._metrics.share_acknowledge_requests += 1
        errors: Errors = {}
        begun: Changes = []
        limits = self.configs.limits(member.group_id)
        slices = Slices(self._clock)
        try:
            for partition, batches in requested.items():
                share = self.shares.get(SharePartitionKey(member.group_id, *partition))
                if share is None:
                    code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
                    errors[partition] = KafkaError(code, _NOT_HERE)
                    await slices.turn()
                    continue
                now_ms = self.locks.now_ms
                steps = acknowledge(share.state, member.member_id, batches, limits, now_ms)
                try:
                    begun.append((share, await self._writer.begin(share, steps, slices)))
                except KafkaError as error:
                    errors[partition] = without_frames(error)
                self.locks.watch(share)
                await slices.turn()
        except BaseException:
            self._writer.abandon(begun)
            raise
        # The request waits for it, also when the broker stops.
        work = self._finish(member, requested, begun, errors)
        return asyncio.create_task(work, name=f"acknowledgements of {member.member_id}")

    async def _finish(
        self,
        member: SessionMember,
        requested: Mapping[ShareSessionPartition, Sequence[Acknowledgement]],
        begun: Changes,
        errors: Errors,
    ) -> Errors:
        failures = await self._writer.persist(member.group_id, begun)
        for share, failure in failures.items():
            partition = ShareSessionPartition(share.key.topic_id, share.key.partition)
            errors[partition] = failure
        slices = Slices(self._clock)
        for partition, batches in requested.items():
            if partition not in errors:
                await slices.run(self._count(batches))
            await slices.turn()
        self._metrics.failed_share_acknowledgements += len(errors)
        return errors

    def _count(self, batches: Iterable[Acknowledgement]) -> Steps[None]:
        """Count the records of acknowledgements that are in force."""
        counts = self._metrics.share_acknowledgements
        for batch in batches:
            for ack_type, count in batch.counts():
                counts[AckType(ack_type).name.title()] += count
            yield

    # -- releases --------------------------------------------------------------------------------

    def _on_locks_due(self) -> None:
        self._writer.run(self.locks.release_expired(), "expired acquisition locks")

    async def _release_expired(self, share: LeaderShare, now_ms: float) -> None:
        limits = self.configs.limits(share.key.group_id)
        expired = await self._writer.release_expired(share, limits, now_ms)
        self._metrics.share_lock_timeouts += expired.record_count
