"""The group coordinator of this node, for the groups whose partitions it leads.

Source: Kafka's GroupCoordinatorService.
"""

from __future__ import annotations

import asyncio
import uuid
from typing import TYPE_CHECKING

from wirebroker.codecs.records.compression import Codec
from wirebroker.coordination.coordinator_partitions import CoordinatorPartitions
from wirebroker.coordination.coordinator_service import CoordinatorService
from wirebroker.coordination.group_lookups import GroupLookups
from wirebroker.coordination.internal_topic import InternalTopic
from wirebroker.coordinator.groups.partitions import CONSUMER_OFFSETS
from wirebroker.coordinator.groups.shard.expiry import sweep_deleted_topics, sweep_expired
from wirebroker.coordinator.groups.shard.shard import GroupShard

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from wirebroker.base.clock import Clock
    from wirebroker.coordinator.controller.image.cluster_image import ClusterImage
    from wirebroker.coordinator.controller.image.image_change import ImageChange
    from wirebroker.coordinator.groups.settings import GroupSettings
    from wirebroker.coordinator.outcome import Marker
    from wirebroker.engine.engine import Engine
    from wirebroker.quorum.channel.controller_channel import ControllerChannel
    from wirebroker.quorum.image.metadata_follower import MetadataFollower
    from wirebroker.replica.replica_manager import ReplicaManager


def _call_later(seconds: float, callback: Callable[[], None]) -> None:
    asyncio.get_running_loop().call_later(seconds, callback)


class GroupCoordinator(CoordinatorService[GroupShard]):
    """All groups whose partitions this node leads.

    Attributes:
        lookups: Clients that looked up a group and have not used it yet.
        settings: The current configs.
    """

    __slots__ = ("lookups", "settings")

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
        self.lookups = GroupLookups(_call_later)
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
            new_shard=lambda _epoch: GroupShard(settings, new_uuid=new_uuid),
            clock=clock,
            codec=Codec(settings.offsets_topic_compression_codec),
            commit_timeout_ms=settings.offsets_commit_timeout_ms,
            on_disk_failure=replicas.disk_failed,
        )
        super().__init__(topic, partitions, replicas.leaderships, clock)

    def start(self) -> None:
        """Start to load partitions and to expire offsets."""
        super().start()
        interval_ms = self.settings.offsets_retention_check_interval_ms
        self.repeat("group expiry", interval_ms, self.expire)

    async def apply(self, change: ImageChange, image: ClusterImage) -> None:
        """Apply a metadata change: delete the offsets of deleted topics."""
        del image
        deleted = {topic.name: topic.topic_id for topic in change.deleted}
        if deleted:
            for engine in self._partitions.active():
                outcomes = sweep_deleted_topics(engine.machine, deleted)
                await self._partitions.sweep(engine, outcomes)

    # -- requests ----------------------------------------------------------------------------

    def _engine_of(self, target: str | int) -> Engine[GroupShard]:
        """Return the engine; a group that is named counts as used."""
        if isinstance(target, str):
            self.lookups.use(target)
        return super()._engine_of(target)

    def end_transaction(self, index: int, marker: Marker) -> int:
        """Commit or discard a producer's offsets; return the log's new end offset.

        Raises:
            KafkaError: From CoordinatorPartitions.end_transaction.
            OSError: The disk failed.
        """
        return self._partitions.end_transaction(index, marker)

    def partitions(self) -> list[int]:
        """Return the partitions that this node coordinates, including loading ones."""
        return self._partitions.indexes()

    def shards(self) -> Iterator[GroupShard]:
        """Yield the loaded shards, for reading."""
        return (engine.machine for engine in self._partitions.active())

    # -- duties ------------------------------------------------------------------------------

    async def expire(self) -> None:
        """Delete expired offsets and groups, judged by all clocks."""
        now_ms = self._clocks_now().earliest_ms(kept_ms=self.settings.offsets_retention_ms)
        for engine in self._partitions.active():
            await self._partitions.sweep(engine, sweep_expired(engine.machine, now_ms))
