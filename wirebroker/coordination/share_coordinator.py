"""The share coordinator of this node: the delivery state of share groups.

The log is not compacted. Snapshots make earlier records redundant, which are then deleted.

Source: Kafka's ShareCoordinatorService.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from wirebroker.codecs.errors import KafkaError
from wirebroker.codecs.records.codec import Codec
from wirebroker.coordination.coordinator_partitions import CoordinatorPartitions
from wirebroker.coordination.coordinator_service import CoordinatorService
from wirebroker.coordination.internal_topic import InternalTopic
from wirebroker.coordinator.controller.features.feature_control import SHARE_VERSION
from wirebroker.coordinator.groups.partitions import SHARE_GROUP_STATE

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import ModuleType

    from wirebroker.base.clock import Clock
    from wirebroker.codecs.errors import ErrorCode
    from wirebroker.coordination.partition_log import PartitionLog
    from wirebroker.coordinator.controller.image.cluster_image import ClusterImage
    from wirebroker.coordinator.controller.image.image_change import ImageChange
    from wirebroker.coordinator.share_state.settings import ShareStateSettings
    from wirebroker.coordinator.share_state.shard import ShareStateShard
    from wirebroker.quorum.channel.controller_channel import ControllerChannel
    from wirebroker.quorum.image.metadata_follower import MetadataFollower
    from wirebroker.replica.replica_manager import ReplicaManager


class ShareCoordinator(CoordinatorService["ShareStateShard"]):
    """All share partitions whose state this node stores."""

    __slots__ = ("_metadata", "settings")

    def __init__(
        self,
        settings: ShareStateSettings,
        *,
        clock: Clock,
        metadata: MetadataFollower,
        controller: ControllerChannel,
        replicas: ReplicaManager,
    ) -> None:
        self.settings = settings
        self._metadata = metadata
        topic = InternalTopic(
            SHARE_GROUP_STATE,
            partition_count=settings.topic_partition_count,
            replication_factor=settings.topic_replication_factor,
            configs={
                "cleanup.policy": "delete",
                "compression.type": "producer",
                "min.insync.replicas": str(settings.topic_min_isr),
                "retention.ms": "-1",
                "segment.bytes": str(settings.topic_segment_bytes),
            },
            metadata=metadata,
            controller=controller,
        )
        partitions = CoordinatorPartitions(
            SHARE_GROUP_STATE,
            new_shard=self._new_shard,
            clock=clock,
            codec=Codec(settings.topic_compression_codec),
            commit_timeout_ms=settings.write_timeout_ms,
            on_disk_failure=replicas.disk_failed,
        )
        super().__init__(topic, partitions, replicas.leaderships, clock)

    def _new_shard(self, log: PartitionLog) -> ShareStateShard:
        from wirebroker.coordinator.share_state.shard import ShareStateShard  # noqa: PLC0415

        return ShareStateShard(
            self.settings, self._metadata.image, batch_offset=lambda: log.batch_offset
        )

    @property
    def is_enabled(self) -> bool:
        """Whether the cluster's features allow share groups."""
        return self._metadata.image.features.get(SHARE_VERSION, 0) >= 1

    def shards(self) -> Iterator[ShareStateShard]:
        """Yield the loaded shards, for reading."""
        return (engine.machine for engine in self._partitions.active())

    def start(self) -> None:
        """Start to load partitions, to write cold snapshots and to delete redundant records."""
        super().start()
        settings = self.settings
        self.repeat(
            "cold share state snapshots", settings.cold_snapshot_interval_ms, self.snapshot_cold
        )
        self.repeat("share state pruning", settings.prune_interval_ms, self.prune)

    async def apply(self, change: ImageChange, image: ClusterImage) -> None:
        """Show all shards the new metadata; delete the state of deleted topics."""
        for shard in self._partitions.shards():
            shard.image = image
        if change.deleted:
            deleted = {topic.topic_id for topic in change.deleted}
            for engine in self._partitions.active():
                outcomes = _upkeep().sweep_deleted_topics(engine.machine, deleted)
                await self._partitions.sweep(engine, outcomes)

    async def snapshot_cold(self) -> None:
        """Write snapshots of the partitions without a recent one."""
        if self.is_enabled:
            for engine in self._partitions.active():
                outcomes = _upkeep().sweep_cold_partitions(engine.machine, self._clock.now_ms())
                await self._partitions.sweep(engine, outcomes)

    async def prune(self) -> None:
        """Delete the records that snapshots have made redundant."""
        if self.is_enabled:
            for index in self._partitions.indexes():
                await self._prune(index)

    async def _prune(self, index: int) -> None:
        response = self.submit(index, _upkeep().redundant_end, on_error=_nothing_redundant)
        offset = (response if isinstance(response, Mapping) else await response)["result"]
        if offset > 0:
            try:
                self._partitions.delete_prefix(index, offset)
            except KafkaError:
                return  # another node leads, or the partition is busy: the next time


def _upkeep() -> ModuleType:
    """Import late: only for a broker that stores share states."""
    from wirebroker.coordinator.share_state import upkeep  # noqa: PLC0415

    return upkeep


def _nothing_redundant(error: ErrorCode) -> Mapping[str, Any]:
    del error
    return {"result": 0}
