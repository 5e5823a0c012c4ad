"""Manages all partitions of this node: opens them at start and applies metadata changes.

The metadata log calls `apply` after each change and then sends its response, so a topic's logs
exist when CreateTopics returns.

Source: Kafka's ReplicaManager and LogManager.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from typing import TYPE_CHECKING, cast

from wirebroker.base.clock import Clock, Slices
from wirebroker.coordinator.controller.image.cluster_image import (
    ClusterImage,
    ResourceType,
)
from wirebroker.disks.data_directory import DataDirectory, is_disk_failure, is_disk_full
from wirebroker.disks.directory_choice import DirectoryChoice
from wirebroker.replica.deleted_files import DeletedPartitions, DeletedSegments
from wirebroker.replica.group_commit import GroupCommit
from wirebroker.replica.leadership import Leaderships
from wirebroker.replica.partition_registry import PartitionRegistry
from wirebroker.replica.replica_context import ReplicaContext
from wirebroker.replica.replica_factory import ReplicaFactory
from wirebroker.replica.replica_loader import ReplicaLoader
from wirebroker.replica.topic_logs import TopicLogs, UnservedTopics
from wirebroker.replica.traffic import TrafficSum
from wirebroker.replica.transitions import Transitions

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from wirebroker.config import Config
    from wirebroker.coordinator.controller.image.cluster_image import PartitionImage, TopicImage
    from wirebroker.coordinator.controller.image.image_change import ImageChange
    from wirebroker.replica.partition import Partition
    from wirebroker.storage.files import Files
    from wirebroker.storage.log.log import Log
    from wirebroker.storage.log_directory import LogDirectory

logger = logging.getLogger(__name__)


class ReplicaManager:
    """The partitions of this node.

    Attributes:
        image: The newest image; some partitions may not have their new roles yet.
        find: PartitionRegistry.find itself, because every Fetch calls it.
        unfinished_moves: Partitions whose moves the last stop interrupted, with the targets.
        rolled: Logs whose closed segments may need a flush; threads append to it.
    """

    __slots__ = (
        "_clock",
        "_following",
        "_host",
        "_logs",
        "_making",
        "_partitions",
        "_transitions",
        "_unserved",
        "choice",
        "commits",
        "deleted_partitions",
        "deleted_segments",
        "deleted_traffic",
        "directories",
        "files",
        "find",
        "image",
        "leaderships",
        "on_directory_failed",
        "rolled",
        "unfinished_moves",
    )

    def __init__(
        self,
        directories: Iterable[LogDirectory],
        files: Files,
        *,
        config: Config,
        clock: Clock,
        node_id: int,
    ) -> None:
        self.directories = [DataDirectory(directory) for directory in directories]
        self.choice = DirectoryChoice(self.directories, node_id=node_id)
        self.choice.use_cordon(config)
        self.commits = GroupCommit(
            is_always=config.str("wirebroker.durability") == "fsync",
            on_failure=self.directory_failed,
        )
        self.leaderships = Leaderships()
        self._transitions = Transitions(self.leaderships)
        self.image = ClusterImage()
        self.files = files
        self._clock = clock
        self._host = ReplicaContext(
            node_id,
            commits=self.commits,
            clock=clock,
            most_lag_ms=config.int("replica.lag.time.max.ms"),
            may_join=self._may_be_in_sync,
        )
        self.unfinished_moves: list[tuple[Partition, DataDirectory]] = []
        self._following = asyncio.Lock()  # held while partitions are created or deleted
        self.deleted_partitions = DeletedPartitions(files, clock, on_failure=self.write_failed)
        self.deleted_segments = DeletedSegments(clock)
        self.deleted_traffic = TrafficSum()
        self.on_directory_failed: Callable[[], None] | None = None
        self.rolled: deque[Log] = deque()
        self._logs = TopicLogs(files, config, on_roll=self.rolled.append)
        self._partitions = PartitionRegistry(self._host)
        self.find = self._partitions.find
        self._unserved = UnservedTopics(self.directories[0])
        self._making = ReplicaFactory(
            self._partitions,
            self._logs,
            directories=self.directories,
            choice=self.choice,
            unserved=self._unserved,
            transitions=self._transitions,
            clock=clock,
            on_failure=self.write_failed,
        )

    @property
    def node_id(self) -> int:
        """The id of this node."""
        return self._host.node_id

    def _may_be_in_sync(self, replica: int, broker_epoch: int) -> bool:
        broker = self.image.brokers.get(replica)
        return broker is not None and broker.is_active and broker_epoch in {-1, broker.epoch}

    def __iter__(self) -> Iterator[Partition]:
        return iter(self._partitions)

    # -- start and stop --------------------------------------------------------------------

    async def load(self, image: ClusterImage) -> None:
        """Open this node's partitions and create those that are missing.

        Raises:
            StartError: As from ReplicaLoader.load.
        """
        self.image = image
        slices = Slices(self._clock)
        loading = ReplicaLoader(
            self._partitions,
            self._logs,
            directories=self.directories,
            unserved=self._unserved,
            deleted_partitions=self.deleted_partitions,
            clock=self._clock,
            node_id=self.node_id,
            on_failure=self.directory_failed,
        )
        await loading.load(image, slices)
        for topic in image.topics.values():
            await self._follow_topic(image, topic, topic.partitions.values(), slices)
        self._transitions.tell()
        self.unfinished_moves += loading.unfinished_moves()

    def wake_all(self) -> None:
        """Notify the waiters of all partitions."""
        for partition in self:
            partition.wake_watchers()

    async def until_settled(self) -> None:
        """Accept no more appends, and wait until no thread is working on a log.

        Requests of closed connections may still be appending. The next start would not know records
        after the clean end and assign their offsets again.
        """
        for partition in self:
            self._transitions.resign(partition)
        self._transitions.tell()
        for partition in tuple(self):
            await partition.until_settled()
        await self.commits.until_idle()

    def close(self, *, broker_epoch: int) -> None:
        """Flush and close every log, and mark each directory as cleanly closed. Blocks."""
        for directory in self.directories:
            try:
                directory.close(broker_epoch=broker_epoch)
            except OSError as error:
                directory.is_online = False
                logger.error(  # noqa: TRY400 - a full disk, not a bug
                    "the data directory %s was not closed cleanly: %s; the next start recovers it",
                    directory.path,
                    error,
                )
        self.deleted_partitions.close()

    # -- metadata changes ------------------------------------------------------------------

    async def apply(self, change: ImageChange, image: ClusterImage) -> None:
        """Apply a metadata change."""
        async with self._following:
            self.image = image
            await self._follow(change, image)

    async def create_missing(self) -> None:
        """Create the partitions that no disk had room for, if there is room now."""
        async with self._following:
            names, self._making.not_created = self._making.not_created, set()
            slices = Slices(self._clock)
            for name in names:
                topic = self.image.topics.get(name)
                if topic is not None:
                    partitions = topic.partitions.values()
                    await self._follow_topic(self.image, topic, partitions, slices)
            self._transitions.tell()

    async def _follow(self, change: ImageChange, image: ClusterImage) -> None:
        slices = Slices(self._clock)
        deleted: list[Partition] = []
        for topic in change.deleted:
            deleted += self._partitions.remove_topic(topic)
        if deleted:
            await self._delete(deleted, slices)
        for topic_change in change.topics.values():
            topic_now = image.topics_by_id.get(topic_change.topic_id)
            if topic_now is not None:
                changed = [
                    partition_change.after for partition_change in topic_change.partitions.values()
                ]
                await self._follow_topic(image, topic_now, changed, slices)
        self._transitions.tell()
        for resource_type, name in change.configs:
            topic_now = image.topics.get(name)
            if resource_type == ResourceType.TOPIC and topic_now is not None:
                await self._apply_settings(image, topic_now, slices)

    async def use_config(self, config: Config, image: ClusterImage) -> None:
        """Apply changed topic defaults and producer expiration."""
        slices = Slices(self._clock)
        self._logs.use_config(config)
        for topic in image.topics.values():
            await self._apply_settings(image, topic, slices)

    async def _apply_settings(self, image: ClusterImage, topic: TopicImage, slices: Slices) -> None:
        settings = self._logs.settings(image, topic)
        expiration_ms = self._logs.producer_id_expiration_ms
        for partition in tuple(self._partitions.of(topic.name).values()):
            partition.use_settings(settings)
            partition.log.producer_state.expiration_ms = expiration_ms
            await slices.turn()

    async def _follow_topic(
        self,
        image: ClusterImage,
        topic: TopicImage,
        partitions: Iterable[PartitionImage],
        slices: Slices,
    ) -> None:
        """Give partitions their roles, create new ones and delete those placed elsewhere."""
        existing_partitions = self._partitions.of(topic.name)
        new: list[PartitionImage] = []
        removed: list[Partition] = []
        for partition in partitions:
            existing = existing_partitions.get(partition.index)
            if self.node_id not in partition.replicas:
                if existing is not None:
                    removed.append(existing)
            elif existing is None:
                new.append(partition)
            elif existing.is_appending:
                await self._transitions.enter_in_turn(existing, partition)
            else:
                self._transitions.enter(existing, partition)
            if slices.is_over:
                self._transitions.tell()
                await slices.turn()
        if removed:
            for removed_partition in removed:
                self._partitions.remove(removed_partition)
            await self._delete(removed, slices)
        if new:
            await self._making.add(topic, new, self._logs.settings(image, topic))

    async def _delete(self, partitions: list[Partition], slices: Slices) -> None:
        for partition in partitions:
            self._transitions.retire(partition)
            partition.directory.partitions.discard(partition)
            self.deleted_traffic.add(partition.traffic, partition.log)
            if slices.is_over:
                self._transitions.tell()
                await slices.turn()
        self._transitions.tell()
        await self.deleted_partitions.put_aside(partitions)
        for directory in self.directories:
            try:
                await directory.forget(partitions, self._clock)
            except OSError as error:
                self.write_failed(directory, error)

    # -- disks -----------------------------------------------------------------------------

    def disk_failed(self, partition: Partition, error: OSError) -> None:
        """Handle a failed read or write of a partition."""
        self.write_failed(partition.directory, error)

    def write_failed(self, directory: DataDirectory, error: OSError) -> None:
        """Take a directory offline, unless the error is a shortage and not a disk failure."""
        if is_disk_full(error):
            directory.note_full(error)
        elif is_disk_failure(error):
            self.directory_failed(directory, error)
        else:
            logger.error("%s: %s", directory.path, error)

    def file_failed(self, path: str, error: OSError) -> None:
        """Take the directory of an unreadable file offline."""
        for directory in self.directories:
            if path.startswith(f"{directory.path}/"):
                self.directory_failed(directory, error)

    def directory_failed(self, directory: DataDirectory, error: OSError) -> None:
        """Take a directory and its partitions offline."""
        if not directory.is_online:
            return
        directory.is_online = False
        logger.error(
            "the data directory %s is offline until a restart: %s; its %d partitions return"
            " KAFKA_STORAGE_ERROR",
            directory.path,
            error,
            len(directory.partitions),
        )
        # PartitionRegistry alone adds to them.
        for partition in tuple(cast("set[Partition]", directory.partitions)):
            self._transitions.resign(partition)
        self._transitions.tell()
        if self.on_directory_failed is not None:
            self.on_directory_failed()
