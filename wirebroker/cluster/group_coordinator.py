"""The group coordinator of this node: which partition a group is in.

    submit(group id, operation)    -> the partition of `__consumer_offsets` -> its GroupShard

How partitions are loaded and served: coordinator_partitions.py. The topic is created when somebody
first looks for a coordinator.

Source: Kafka's GroupCoordinatorService.
"""

from __future__ import annotations

import asyncio
import logging
import uuid
from typing import TYPE_CHECKING, Any

from wirebroker.clock import pause
from wirebroker.cluster.coordinator_partitions import CoordinatorPartitions
from wirebroker.cluster.internal_topic import InternalTopic
from wirebroker.codecs.compression import Codec
from wirebroker.coordinator.group_expiry import sweep_deleted_topics, sweep_expired
from wirebroker.coordinator.group_partitions import CONSUMER_OFFSETS, partition_for
from wirebroker.coordinator.groups import GroupShard
from wirebroker.storage.wall_clocks import WallClocks

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from wirebroker.clock import Clock
    from wirebroker.cluster.metadata_log import MetadataLog
    from wirebroker.cluster.replica_manager import ReplicaManager
    from wirebroker.codecs.errors import ErrorCode
    from wirebroker.coordinator.cluster_image import ClusterImage
    from wirebroker.coordinator.controller import Controller
    from wirebroker.coordinator.group_settings import GroupSettings
    from wirebroker.coordinator.image_builder import ImageChange
    from wirebroker.coordinator.runtime import Marker, Moment, Outcome, Token
    from wirebroker.storage.verification import VerificationGuard

    Response = Mapping[str, Any]
    # What a request does to its shard.
    GroupOperation = Callable[[GroupShard, Token, Moment], Outcome]

logger = logging.getLogger(__name__)


class GroupCoordinator:
    """All groups whose partitions this node leads."""

    __slots__ = ("_clock", "_clocks", "_expiry", "_partitions", "_replicas", "_topic", "settings")

    def __init__(
        self,
        settings: GroupSettings,
        *,
        clock: Clock,
        metadata: MetadataLog,
        controller: Controller,
        replicas: ReplicaManager,
        new_uuid: Callable[[], str] = lambda: str(uuid.uuid4()),
    ) -> None:
        self.settings = settings
        self._clock = clock
        self._clocks = WallClocks(clock.now_ms(), clock.monotonic())
        self._replicas = replicas
        self._topic = InternalTopic(
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
        self._partitions = CoordinatorPartitions(
            CONSUMER_OFFSETS,
            new_shard=lambda _partition: GroupShard(settings, new_uuid=new_uuid),
            clock=clock,
            replicas=replicas,
            codec=Codec(settings.offsets_topic_compression_codec),
            commit_timeout_ms=settings.offsets_commit_timeout_ms,
            on_run=lambda shard, moment: shard.rebalances.settle(moment),
        )
        self._expiry: asyncio.Task[None] | None = None

    # -- start and stop ----------------------------------------------------------------------

    def start(self) -> None:
        """Begin to load what is there; requests are answered meanwhile."""
        self._partitions.start()
        self._expiry = asyncio.create_task(self._expire_repeatedly(), name="group expiry")

    async def stop(self) -> None:
        """Answer all who wait, and take no more requests. Call it before connections close."""
        await self._partitions.stop()
        await self._topic.stop()
        if self._expiry is not None:
            self._expiry.cancel()
            await asyncio.gather(self._expiry, return_exceptions=True)

    async def apply(self, change: ImageChange, image: ClusterImage) -> None:
        """Follow a change after the replicas have: the offsets of deleted topics go."""
        del image
        self._partitions.follow(change)
        deleted = {topic.name: topic.topic_id for topic in change.deleted}
        if deleted:
            for held in self._partitions.active():
                await self._partitions.sweep(held, sweep_deleted_topics(held.shard, deleted))

    # -- requests ----------------------------------------------------------------------------

    def submit(
        self,
        group_id: str,
        operation: GroupOperation,
        *,
        on_error: Callable[[ErrorCode], Response],
        finish: Callable[[dict[str, Any]], Response] | None = None,
        guard: VerificationGuard | None = None,
    ) -> Response | asyncio.Future[Response]:
        """Run an operation on the shard of a group.

        Args:
            group_id: Whose shard.
            operation: Answers its token, now or later.
            on_error: Makes the response for an error.
            finish: Makes the response of what the operation answers; None if that is it.
            guard: If its records may begin a producer's transaction there.

        Returns:
            The response, or a future of it.
        """
        return self._partitions.submit(
            self.partition_for(group_id), operation, on_error=on_error, finish=finish, guard=guard
        )

    def submit_to(
        self,
        index: int,
        operation: GroupOperation,
        *,
        on_error: Callable[[ErrorCode], Response],
        finish: Callable[[dict[str, Any]], Response] | None = None,
    ) -> Response | asyncio.Future[Response]:
        """Run an operation on the shard of a partition, as `submit` does."""
        return self._partitions.submit(index, operation, on_error=on_error, finish=finish)

    def end_transaction(self, index: int, marker: Marker) -> int:
        """Let the offsets that a producer committed count, or go; return the log's end behind it.

        Raises:
            KafkaError: NOT_COORDINATOR, COORDINATOR_LOAD_IN_PROGRESS, COORDINATOR_NOT_AVAILABLE;
                what CoordinatorPartition.end_transaction raises.
            OSError: The disk failed.
        """
        runner = self._partitions.at(index).runner
        assert runner is not None, "an active partition has one"
        return runner.end_transaction(marker)

    def partition_for(self, group_id: str) -> int:
        """Return the partition of `__consumer_offsets` that a group is kept in."""
        return partition_for(group_id, self._topic.partition_count)

    def partitions(self) -> list[int]:
        """Return the partitions of which this node is the coordinator, loading ones included."""
        return self._partitions.indexes()

    def shards(self) -> Iterator[GroupShard]:
        """Yield what is loaded, for metrics."""
        return (held.shard for held in self._partitions.active())

    def lags(self) -> Iterator[tuple[str, str, int, int]]:
        """Yield (group, topic, partition, lag in records) of every committed offset, for metrics.

        The lag is counted to the high watermark, now; offsets of partitions that this node doesn't
        lead are left out.
        """
        for shard in self.shards():
            for group_id in tuple(shard.offsets.by_group):
                for topic, index, committed in shard.offsets.of_group(group_id):
                    partitions, _ = self._replicas.find(topic, b"", by_id=False)
                    partition = partitions.get(index)
                    if partition is not None and partition.is_leader:
                        lag = max(0, partition.log.high_watermark - committed.offset)
                        yield group_id, topic, index, lag

    def create_topic(self) -> None:
        """Begin to create `__consumer_offsets`, unless that is under way."""
        self._topic.create()

    # -- expiry ------------------------------------------------------------------------------

    async def _expire_repeatedly(self) -> None:
        while True:
            await pause(self.settings.offsets_retention_check_interval_ms / 1000)
            try:
                await self.expire()
            except Exception:
                # A task's root: what one record brings about must not end all expiry.
                logger.exception("expired offsets could not be looked for; it is tried again")

    async def expire(self) -> None:
        """Delete the offsets and groups that nobody needs any more, by all clocks."""
        moment = self._clocks.moment(self._clock.now_ms(), self._clock.monotonic())
        now_ms = moment.earliest_ms(kept_ms=self.settings.offsets_retention_ms)
        for held in self._partitions.active():
            await self._partitions.sweep(held, sweep_expired(held.shard, now_ms))
