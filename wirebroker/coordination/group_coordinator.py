"""The group coordinator of this node.

Source: Kafka's GroupCoordinatorService.
"""

from __future__ import annotations

import asyncio
import logging
import uuid
from collections import OrderedDict
from typing import TYPE_CHECKING, Final

from wirebroker.codecs.records.compression import Codec
from wirebroker.coordination.coordinator_partitions import CoordinatorPartitions
from wirebroker.coordination.coordinator_service import CoordinatorService
from wirebroker.coordination.internal_topic import InternalTopic
from wirebroker.coordinator.groups.partitions import CONSUMER_OFFSETS
from wirebroker.coordinator.groups.shard.expiry import sweep_deleted_topics, sweep_expired
from wirebroker.coordinator.groups.shard.shard import GroupShard
from wirebroker.request.session import ANSWER_IS_DUE

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
    from wirebroker.request.session import Session


def _call_later(seconds: float, callback: Callable[[], None]) -> None:
    asyncio.get_running_loop().call_later(seconds, callback)


class GroupCoordinator(CoordinatorService[GroupShard]):
    """All groups whose partitions this node leads.

    Attributes:
        lookups: Clients that looked up a group and have not used it yet.
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
            new_shard=lambda _epoch: GroupShard(settings, metadata.image, new_uuid=new_uuid),
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
        """Show all shards the new metadata; delete the offsets of deleted topics.

        Partitions that are loading keep these offsets until they expire, as in Kafka.
        """
        for shard in self._partitions.shards():
            shard.image = image
        deleted = {topic.name: topic.topic_id for topic in change.deleted}
        if deleted:
            for engine in self._partitions.active():
                outcomes = sweep_deleted_topics(engine.machine, deleted)
                await self._partitions.sweep(engine, outcomes)

    def _engine_of(self, target: str | int) -> Engine[GroupShard]:
        """Return the engine of a partition or a group; record that the group was used."""
        if isinstance(target, str):
            self.lookups.use(target)
        return super()._engine_of(target)

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

    async def expire(self) -> None:
        """Delete expired offsets and groups.

        They have expired by the present clock and by each clock that was left within the retention
        time (wall_clocks.py).
        """
        now_ms = self._clocks_now().earliest_ms(kept_ms=self.settings.offsets_retention_ms)
        for engine in self._partitions.active():
            await self._partitions.sweep(engine, sweep_expired(engine.machine, now_ms))


# Clients that look up a group's coordinator and then never use the group

logger = logging.getLogger(__name__)

# Lookups of one group on one connection.
_SUSPICIOUSLY_OFTEN: Final = 2
# How long the group must then stay unused.
_SILENCE_S: Final = 5.0
# A consumer that does not need the group repeats its lookup after 10 minutes.
_WINDOW_S: Final = 60.0
# Watched or logged groups and connections; the oldest are dropped first.
_MOST_KEPT: Final = 1_000
_MOST_CONNECTIONS: Final = 16
# Longer ids are ignored: a thousand of the longest that the protocol allows (32 KB) would take
# 30 MB.
_LONGEST_ID: Final = 249


class _Lookups:
    """The lookups of one group on one connection."""

    __slots__ = ("asked", "since")

    def __init__(self, since: float) -> None:
        self.asked = 0
        self.since = since


class GroupLookups:
    """Groups that were recently looked up and not used since."""

    __slots__ = ("_call_later", "_warned_groups", "_watched")

    def __init__(self, call_later: Callable[[float, Callable[[], None]], object]) -> None:
        self._call_later = call_later
        self._watched: OrderedDict[str, OrderedDict[str, _Lookups]] = OrderedDict()
        # One log line per group and per connection, because clients can invent groups.
        self._warned_groups: OrderedDict[tuple[str, str], None] = OrderedDict()

    def add(self, group_id: str, connection: Session, client_id: str | None, now: float) -> None:
        """Record that a client looked up a group's coordinator, at `now` in seconds."""
        if len(group_id) > _LONGEST_ID:
            return
        connections = self._watched.setdefault(group_id, OrderedDict())
        self._watched.move_to_end(group_id)
        lookups = connections.get(connection.id)
        if lookups is None or now - lookups.since > _WINDOW_S:
            lookups = connections[connection.id] = _Lookups(now)
        lookups.asked += 1
        if len(connections) > _MOST_CONNECTIONS:
            connections.popitem(last=False)
        if len(self._watched) > _MOST_KEPT:
            self._watched.popitem(last=False)
        if lookups.asked == _SUSPICIOUSLY_OFTEN:
            self._call_later(
                _SILENCE_S, lambda: self._check(group_id, connection, client_id, lookups)
            )

    def use(self, group_id: str) -> None:
        """Record that a group was used."""
        if self._watched:
            self._watched.pop(group_id, None)

    def _check(
        self, group_id: str, connection: Session, client_id: str | None, lookups: _Lookups
    ) -> None:
        connections = self._watched.get(group_id)
        if connections is None or connections.get(connection.id) is not lookups:
            return  # the group was used
        del connections[connection.id]
        # A request in progress means that the client fetches from assigned partitions.
        if not connection.has_ended and not connection.pauses & ANSWER_IS_DUE:
            self._warn(group_id, connection, client_id)

    def _warn(self, group_id: str, connection: Session, client_id: str | None) -> None:
        keys = ("group", group_id), ("connection", connection.id)
        if any(key in self._warned_groups for key in keys):
            return
        self._warned_groups.update(dict.fromkeys(keys))
        while len(self._warned_groups) > _MOST_KEPT:
            self._warned_groups.popitem(last=False)
        logger.warning(
            "group %s: its client %s at %s (%s %s) has looked up the coordinator but does not "
            "join; it probably uses the consumer group protocol (KIP-848), not served yet: set "
            "group.protocol=classic in the client",
            group_id,
            (client_id or "(no client id)")[:_LONGEST_ID],
            connection.peer,
            connection.client_software_name,
            connection.client_software_version,
        )
