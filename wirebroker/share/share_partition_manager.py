"""The share partitions of this node's partitions, and the share sessions of its clients.

A share partition exists from the first fetch of its group on, as long as this node leads in the
same epoch, the persister accepts its writes, and the group has a session here.

Source: Kafka's SharePartitionManager.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, NamedTuple

from wirebroker.base.clock import Slices
from wirebroker.codecs.errors import ErrorCode, KafkaError, without_frames
from wirebroker.coordinator.share_partitions.acknowledgement import AckType, acknowledge
from wirebroker.coordinator.share_partitions.loading import load
from wirebroker.coordinator.share_partitions.release import release_expired, release_member
from wirebroker.coordinator.share_partitions.share_partition import NO_OFFSET, SharePhase
from wirebroker.coordinator.share_partitions.share_sessions import (
    SessionMember,
    ShareSessionPartition,
    ShareSessions,
)
from wirebroker.coordinator.share_state.state import SharePartitionKey, StateError
from wirebroker.share.leader_share import LeaderShare
from wirebroker.share.persisted import FENCING, error_of
from wirebroker.share.share_cache import ShareCache
from wirebroker.share.share_locks import ShareLocks
from wirebroker.share.share_writer import ShareWriter
from wirebroker.share.start_offsets import start_offset

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from wirebroker.base.clock import Clock
    from wirebroker.base.metrics import Metrics
    from wirebroker.config import Config
    from wirebroker.coordinator.controller.image.cluster_image import ClusterImage
    from wirebroker.coordinator.controller.image.image_change import ImageChange
    from wirebroker.coordinator.share_partitions.acknowledgement import Acknowledgement
    from wirebroker.coordinator.share_partitions.share_configs import ShareConfigs
    from wirebroker.coordinator.share_partitions.state_change import StateChange
    from wirebroker.replica.leadership import LeadershipChange
    from wirebroker.replica.replica_manager import ReplicaManager
    from wirebroker.share.dead_letters import DeadLetters
    from wirebroker.share.persister import Persister

logger = logging.getLogger(__name__)


class BegunAcknowledgements(NamedTuple):
    """Acknowledgements whose changes are not persisted yet."""

    member: SessionMember
    requested: Mapping[ShareSessionPartition, Sequence[Acknowledgement]]
    errors: dict[ShareSessionPartition, KafkaError]
    changes: Sequence[tuple[LeaderShare, StateChange]]


class SharePartitionManager:
    """All share partitions of one broker."""

    __slots__ = (
        "_clock",
        "_metrics",
        "_persister",
        "_replicas",
        "_writer",
        "configs",
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
        self._persister = persister
        self.configs = configs
        self.sessions = ShareSessions(configs.config.int("group.share.max.share.sessions"))
        self._metrics = metrics
        metrics.share_sessions = self.sessions.__len__
        metrics.share_session_partitions = lambda: self.sessions.partition_count
        self.shares = ShareCache()
        self.locks = ShareLocks(clock, self._on_expired)
        self._writer = ShareWriter(
            persister,
            dead_letters,
            clock=clock,
            now_ms=self.locks.now_ms,
            on_error=self.fence,
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
            self.shares.clear()

    def _on_leadership(self, change: LeadershipChange) -> None:
        for partition, _ in change.resigned:
            self.shares.remove_partition(partition)

    # -- share partitions ------------------------------------------------------------------------

    def find_or_load(self, group_id: str, topic_id: bytes, index: int) -> LeaderShare:
        """Return a share partition; begin to load its state if necessary.

        Raises:
            KafkaError: This node does not lead the partition.
        """
        key = SharePartitionKey(group_id, topic_id, index)
        share = self.shares.get(key)
        if share is None:
            partition = self._replicas.find("", topic_id, by_id=True)[0].get(index)
            if partition is None:
                raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
            partition.check_leader()
            share = LeaderShare(key, partition)
            self.shares.add(share)
            self._writer.run(self._load(share), f"load share partition {key}")
        return share

    async def _load(self, share: LeaderShare) -> None:
        started_s = self._clock.monotonic()
        try:
            await self._load_state(share)
        except KafkaError as error:
            logger.info("cannot load the share partition %s: %s", share.key, error)
            share.failure = without_frames(error)
            self.shares.remove(share)
            share.state.phase = SharePhase.FAILED
        self._metrics.share_load_ms.record((self._clock.monotonic() - started_s) * 1000)
        share.wake()

    async def _load_state(self, share: LeaderShare) -> None:
        key, state = share.key, share.state
        await self._writer.until_written(key)
        partition = key.topic_id, key.partition
        results = await self._persister.read(key.group_id, {partition: state.leader_epoch})
        persisted = results[partition]
        if isinstance(persisted, StateError):
            raise error_of(persisted)
        offset = persisted.start_offset
        if offset == NO_OFFSET:
            offset = await self._reset_offset(share)
        if state.phase is SharePhase.INITIALIZING:
            limits = self.configs.limits(key.group_id)
            self._writer.bury(share, load(state, persisted, offset, limits))

    async def _reset_offset(self, share: LeaderShare) -> int:
        partition = share.partition
        try:
            return await start_offset(
                partition,
                self.configs.of(share.key.group_id).offset_reset,
                leader_epoch=share.state.leader_epoch,
                clock=self._clock,
            )
        except OSError as fault:
            self._replicas.disk_failed(partition, fault)
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR) from fault

    def fence(self, share: LeaderShare, error: KafkaError) -> None:
        """Remove a share partition if an error says that its state is no longer valid."""
        if error.code in FENCING and self.shares.remove(share):
            logger.info("the share partition %s is fenced: %s", share.key, error)

    # -- acknowledgements ------------------------------------------------------------------------

    async def begin(
        self,
        member: SessionMember,
        requested: Mapping[ShareSessionPartition, Sequence[Acknowledgement]],
    ) -> BegunAcknowledgements:
        """Begin the state changes of a member's acknowledgements; call `finish` in any case."""
        self._metrics.share_acknowledge_requests += 1
        errors: dict[ShareSessionPartition, KafkaError] = {}
        begun: list[tuple[LeaderShare, StateChange]] = []
        limits = self.configs.limits(member.group_id)
        slices = Slices(self._clock)
        for partition, batches in requested.items():
            share = self.shares.get(SharePartitionKey(member.group_id, *partition))
            if share is None:
                code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
                errors[partition] = KafkaError(code, _NOT_HERE)
                continue
            now_ms = self.locks.now_ms()
            steps = acknowledge(share.state, member.member_id, batches, limits, now_ms)
            try:
                begun.append((share, await slices.run(steps)))
            except KafkaError as error:
                errors[partition] = without_frames(error)
            self.locks.watch(share)
        return BegunAcknowledgements(member, requested, errors, begun)

    async def finish(self, begun: BegunAcknowledgements) -> dict[ShareSessionPartition, KafkaError]:
        """Persist the changes; return the errors of partitions."""
        errors = begun.errors
        failures = await self._writer.persist(begun.member.group_id, begun.changes)
        for share, failure in failures.items():
            partition = ShareSessionPartition(share.key.topic_id, share.key.partition)
            errors[partition] = failure
        for partition, batches in begun.requested.items():
            if partition not in errors:
                self._count(batches)
        self._metrics.failed_share_acknowledgements += len(errors)
        return errors

    def _count(self, batches: Iterable[Acknowledgement]) -> None:
        """Count the records of acknowledgements that are in force."""
        counts = self._metrics.share_acknowledgements
        for batch in batches:
            for first_offset, last_offset, ack_type in batch.segments():
                if ack_type != AckType.GAP:
                    counts[AckType(ack_type).name.title()] += last_offset - first_offset + 1

    # -- releases --------------------------------------------------------------------------------

    def _on_expired(self, share: LeaderShare, now_ms: float) -> None:
        limits = self.configs.limits(share.key.group_id)
        expired = release_expired(share.state, limits, now_ms)
        if expired.batches:
            self._metrics.share_lock_timeouts += expired.record_count
            work = self._writer.persist_now(share, expired.batches)
            self._writer.run(work, f"expired locks of {share.key}")
            self._writer.bury(share, expired.dead)
            share.wake()

    def release_session(self, member: SessionMember) -> None:
        """End a member's session; its records are available again.

        The share partitions of a group without sessions are not kept.
        """
        session = self.sessions.remove(member)
        if session is None:
            return
        limits = self.configs.limits(member.group_id)
        begun: list[tuple[LeaderShare, StateChange]] = []
        for partition in session.named():
            share = self.shares.get(SharePartitionKey(member.group_id, *partition))
            if share is not None:
                begun.append((share, release_member(share.state, member.member_id, limits)))
        work = self._writer.persist(member.group_id, begun)
        self._writer.run(work, f"release records of {member.member_id}")
        if not self.sessions.has_members(member.group_id):
            self.shares.remove_group(member.group_id)

    def connection_ended(self, connection_id: str) -> None:
        """End the sessions of a connection."""
        for member in self.sessions.of_connection(connection_id):
            self._metrics.share_session_evictions += 1
            self.release_session(member)


_NOT_HERE = "This server does not host this topic-partition."
