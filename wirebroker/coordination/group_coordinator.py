"""The group coordinator of this node.

Source: Kafka's GroupCoordinatorService.
"""

from __future__ import annotations

import asyncio
import uuid
from typing import TYPE_CHECKING, Any, TypeVar

from wirebroker.base.clock import Slices
from wirebroker.codecs.errors import KafkaError
from wirebroker.codecs.records.codec import Codec
from wirebroker.coordination.coordinator_partitions import CoordinatorPartitions
from wirebroker.coordination.coordinator_service import CoordinatorService
from wirebroker.coordination.internal_topic import InternalTopic
from wirebroker.coordination.streams_topics import StreamsTopics
from wirebroker.coordinator.groups.group import GroupType
from wirebroker.coordinator.groups.partitions import CONSUMER_OFFSETS
from wirebroker.coordinator.groups.shard.expiry import sweep_deleted_topics, sweep_expired
from wirebroker.coordinator.groups.shard.kinds import is_loaded
from wirebroker.coordinator.groups.shard.shard import GroupShard, decoded_value

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from wirebroker.base.clock import Clock, Steps
    from wirebroker.config import Config
    from wirebroker.coordination.group_effects import GroupEffects
    from wirebroker.coordination.share_state_effects import StateInitializer
    from wirebroker.coordinator.controller.image.cluster_image import ClusterImage
    from wirebroker.coordinator.controller.image.image_change import ImageChange, PartitionChange
    from wirebroker.coordinator.groups.settings import GroupSettings
    from wirebroker.coordinator.outcome import Marker
    from wirebroker.engine.engine import Engine
    from wirebroker.quorum.channel.controller_channel import ControllerChannel
    from wirebroker.quorum.image.metadata_follower import MetadataFollower
    from wirebroker.replica.replica_manager import ReplicaManager

ResultT = TypeVar("ResultT")


class GroupCoordinator(CoordinatorService[GroupShard]):
    """All groups whose partitions this node leads.

    Attributes:
        streams_topics: The internal topics of streams groups.
        preparing_steps: Held while the next step of a large member of a type is computed.
    """

    __slots__ = (
        "_effects",
        "_metadata",
        "_persister",
        "preparing_steps",
        "settings",
        "streams_topics",
    )

    def __init__(
        self,
        settings: GroupSettings,
        *,
        clock: Clock,
        metadata: MetadataFollower,
        controller: ControllerChannel,
        replicas: ReplicaManager,
        new_uuid: Callable[[], str] = lambda: str(uuid.uuid4()),
    ) -> None:
        self.settings = settings
        self._metadata = metadata
        self._effects: GroupEffects | None = None
        self._persister: Callable[[], StateInitializer] | None = None
        self.streams_topics = StreamsTopics(clock, controller)
        self.preparing_steps = {kind: asyncio.Lock() for kind in GroupType}
        topic = InternalTopic(
            CONSUMER_OFFSETS,
            partition_count=settings.offsets_topic_partition_count,
            replication_factor=settings.offsets_topic_replication_factor,
            configs={
                "cleanup.policy": "compact",
                "compression.type": "producer",
                "segment.bytes": str(settings.offsets_topic_segment_bytes),
            },
            metadata=metadata,
            controller=controller,
        )
        partitions = CoordinatorPartitions(
            CONSUMER_OFFSETS,
            new_shard=lambda _log: GroupShard(self.settings, metadata.image, new_uuid=new_uuid),
            clock=clock,
            codec=Codec(settings.offsets_topic_compression_codec),
            commit_timeout_ms=settings.offsets_commit_timeout_ms,
            on_disk_failure=replicas.disk_failed,
            on_effect=self._begin_effect,
            decode=decoded_value,
            start_timers=GroupShard.start_timers,
        )
        super().__init__(topic, partitions, replicas.leaderships, clock)

    async def stop(self) -> None:
        """See CoordinatorService."""
        await super().stop()
        if self._effects is not None:
            await self._effects.stop()
        await self.streams_topics.stop()

    def start(self) -> None:
        """Start to load partitions and to expire offsets."""
        super().start()
        interval_ms = self.settings.offsets_retention_check_interval_ms
        self.repeat("group expiry", interval_ms, self.expire)

    def use_persister(self, persister: Callable[[], StateInitializer]) -> None:
        """Let share groups have their share state created by what `persister` returns."""
        self._persister = persister

    def _begin_effect(self, engine: Engine[GroupShard], effect: Any) -> None:
        if self._effects is None:
            # Late: classic groups have no effects.
            from wirebroker.coordination.group_effects import GroupEffects  # noqa: PLC0415

            self._effects = GroupEffects(self._clock, self._metadata, self._persister)
        self._effects.begin(engine, effect)

    def use_config(self, config: Config) -> None:
        """Apply changed dynamic configs, also to loading shards."""
        self.settings = self.settings.with_dynamic(config)
        for shard in self._partitions.shards():
            shard.settings = self.settings

    async def apply(self, change: ImageChange, image: ClusterImage) -> None:
        """Show all shards the new metadata; delete what groups know of deleted topics.

        Partitions that are loading keep these offsets until they expire, as in Kafka.
        """
        deleted = {topic.name: topic.topic_id for topic in change.deleted}
        changed = await Slices(self._clock).run(_changed_topics(change))
        has_new_topics = any(topic.is_new for topic in change.topics.values())
        for shard in self._partitions.shards():
            shard.apply_metadata(image, has_new_topics=has_new_topics, changed=changed)
        if deleted:
            for engine in self._partitions.active():
                await self._partitions.sweep(engine, sweep_deleted_topics(engine.machine, deleted))
                await self._sweep_share_groups(engine, deleted)

    async def _sweep_share_groups(
        self, engine: Engine[GroupShard], deleted: Mapping[str, bytes]
    ) -> None:
        if is_loaded(GroupType.SHARE):
            from wirebroker.coordinator.groups.share import share_deletion  # noqa: PLC0415

            outcomes = share_deletion.sweep_deleted_topics(engine.machine, deleted)
            await self._partitions.sweep(engine, outcomes)

    def end_transaction(self, index: int, marker: Marker) -> int:
        """Commit or discard a producer's offsets; return the log's new end offset.

        Raises:
            KafkaError: From CoordinatorPartitions.at or PartitionLog.append_marker.
            OSError: The disk failed; this was already handled.
        """
        return self._partitions.end_transaction(index, marker)

    def partitions(self) -> list[int]:
        """Return the partitions, including loading ones."""
        return self._partitions.indexes()

    def shards(self) -> Iterator[GroupShard]:
        """Yield the loaded shards, for reading."""
        return (engine.machine for engine in self._partitions.active())

    def shard_of(self, group_id: str) -> GroupShard | None:
        """Return the loaded shard of a group, for reading; None if it is not served here."""
        try:
            return self._engine_of(group_id).machine
        except KafkaError:
            return None

    def run_softly(
        self, group_id: str, operation: Callable[..., ResultT | None], *arguments: Any
    ) -> ResultT | None:
        """Run `operation(shard, group_id, *arguments, now)`; see Engine.run_softly.

        Return None also if the group is not served here, or the shard does not know the newest
        metadata yet.
        """
        try:
            engine = self._engine_of(group_id)
        except KafkaError:
            return None
        if engine.machine.image is not self._metadata.image:
            return None
        return engine.run_softly(operation, group_id, *arguments)

    async def expire(self) -> None:
        """Delete expired offsets and groups.

        They have expired by the present clock and by each clock that was left within the retention
        time (wall_clocks.py).
        """
        now_ms = self._clocks_now().earliest_ms(kept_ms=self.settings.offsets_retention_ms)
        for engine in self._partitions.active():
            await self._partitions.sweep(engine, sweep_expired(engine.machine, now_ms))


def _changed_topics(change: ImageChange) -> Steps[set[str]]:
    """Return the names of topics that are gone, new, or have other partitions or replicas."""
    names = {topic.name for topic in change.deleted}
    for topic in change.topics.values():
        if topic.is_new or any(map(_has_other_replicas, topic.partitions.values())):
            names.add(topic.name)
        yield
    return names


def _has_other_replicas(change: PartitionChange) -> bool:
    return change.before is None or change.before.replicas != change.after.replicas
