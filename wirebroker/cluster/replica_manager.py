"""All partitions that this node holds: opened at start, then as the metadata changes.

The metadata log calls `apply` after each change and answers its request only when that is done,
so a topic's logs are there when CreateTopics returns. Directories are made and renamed in threads,
many partitions at a time; what is done to thousands of partitions on the loop is cut into slices.

A disk that fails takes its log directory offline (data_directory.py); partitions are then created
in the others. With none left they exist all the same, and answer KAFKA_STORAGE_ERROR.

Who lives on leaderships subscribes to `leaderships` (leadership.py).

Source: Kafka's ReplicaManager and LogManager.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from wirebroker.clock import Clock, Slices
from wirebroker.cluster.data_directory import DataDirectory, is_disk_failure, is_disk_full
from wirebroker.cluster.deleted_partitions import DeletedPartitions
from wirebroker.cluster.deleted_segments import DeletedSegments
from wirebroker.cluster.directory_choice import DirectoryChoice
from wirebroker.cluster.found_copies import sort_out
from wirebroker.cluster.group_commit import GroupCommit
from wirebroker.cluster.leadership import Leaderships
from wirebroker.cluster.partition import Partition
from wirebroker.cluster.replica_host import ReplicaHost
from wirebroker.cluster.topic_logs import TopicLogs
from wirebroker.cluster.traffic import TrafficSum
from wirebroker.cluster.transitions import Transitions
from wirebroker.cluster.unserved_topics import UnservedTopics
from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.config import StartError
from wirebroker.coordinator.controller.cluster_image import (
    ClusterImage,
    ResourceType,
)
from wirebroker.storage.log.log import Log
from wirebroker.threads import Work, in_thread

if TYPE_CHECKING:
    from collections.abc import Callable

    from wirebroker.cluster.data_directory import Offsets
    from wirebroker.config import Config, TopicSettings
    from wirebroker.coordinator.controller.cluster_image import PartitionImage, TopicImage
    from wirebroker.coordinator.controller.image_change import ImageChange
    from wirebroker.storage.files import Files
    from wirebroker.storage.log_directory import LogDirectory, PartitionDirectory

logger = logging.getLogger(__name__)

Partitions = Mapping[int, Partition]
_NONE: Partitions = {}

_METADATA_TOPIC = "__cluster_metadata"
# Partitions that a thread creates at a time: about 50 ms of a disk that is busy.
_BATCH = 50


class ReplicaManager:
    """The partitions of this node, by topic name and by topic id.

    Attributes:
        image: The newest that was followed; its partitions' roles may still be on the way.
        leaderships: What this node leads, and who is told.
        choice: In which directory new replicas are made.
        commits: Syncs what must be on the disk before it counts.
        directories: The log directories, online or not.
        deleted_partitions: Whose files are to be removed.
        deleted_segments: What is no longer part of logs that go on.
        files: The file system that they lie on.
        on_directory_failed: Told when one of them has failed.
        gone_traffic: What passed through the partitions that were deleted since.
        unfinished_moves: What was on its way to another directory when the last user stopped.
        rolled: Logs whose closed segments may have to be flushed; threads append to it.
    """

    __slots__ = (
        "_by_id",
        "_by_name",
        "_clock",
        "_following",
        "_host",
        "_logs",
        "_transitions",
        "_unmade",
        "_unserved",
        "choice",
        "commits",
        "deleted_partitions",
        "deleted_segments",
        "directories",
        "files",
        "gone_traffic",
        "image",
        "leaderships",
        "on_directory_failed",
        "rolled",
        "unfinished_moves",
    )

    # _by_name and _by_id hold the same mappings.

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
        self._host = ReplicaHost(
            node_id,
            commits=self.commits,
            clock=clock,
            most_lag_ms=config.int("replica.lag.time.max.ms"),
            may_join=self._may_be_in_sync,
        )
        self._by_name: dict[str, dict[int, Partition]] = {}
        self._by_id: dict[bytes, dict[int, Partition]] = {}
        # Topics that lack partitions here because no disk had room for them.
        self._unmade: set[str] = set()
        self.unfinished_moves: list[tuple[Partition, DataDirectory]] = []
        self._unserved = UnservedTopics(self.directories[0])
        self._following = asyncio.Lock()  # held while partitions are created and deleted
        self.deleted_partitions = DeletedPartitions(files, clock, on_failure=self.write_failed)
        self.deleted_segments = DeletedSegments(clock)
        self.gone_traffic = TrafficSum()
        self.on_directory_failed: Callable[[], None] | None = None
        self.rolled: deque[Log] = deque()
        self._logs = TopicLogs(files, config, on_roll=self.rolled.append)

    @property
    def node_id(self) -> int:
        """The node that all this lies on."""
        return self._host.node_id

    def _may_be_in_sync(self, replica: int, broker_epoch: int) -> bool:
        broker = self.image.brokers.get(replica)
        return broker is not None and broker.is_active and broker_epoch in {-1, broker.epoch}

    def __iter__(self) -> Iterator[Partition]:
        for partitions in self._by_name.values():
            yield from partitions.values()

    def find(self, name: str, topic_id: bytes, *, by_id: bool) -> tuple[Partitions, ErrorCode]:
        """Return a topic's partitions by index, and the error for one that is not among them."""
        if by_id:
            partitions = self._by_id.get(topic_id)
            if partitions is None:
                return _NONE, ErrorCode.UNKNOWN_TOPIC_ID
            return partitions, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        return self._by_name.get(name, _NONE), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION

    # -- start and stop --------------------------------------------------------------------

    async def load(self, image: ClusterImage) -> None:
        """Open what the directories hold of this node's partitions, and create what they lack.

        A directory whose disk fails with that is offline, and what else lies there.

        Raises:
            StartError: A log cannot be opened; no directory is left, or not the metadata log's.
        """
        self.image = image
        slices = Slices(self._clock)
        online = [each for each in self.directories if each.is_online]
        files = [each.files for each in online]
        is_whole = len(files) == len(self.directories)
        copies = sort_out(files, image, node_id=self.node_id, is_whole=is_whole)
        for directory in online:
            try:
                copies.check(directory.files)
                await self._load_directory(directory, image, slices, copies.promoted)
            except OSError as error:
                if not self._can_do_without(directory, error):
                    raise StartError(
                        f"the data directory {directory.path} cannot be read: {error}",
                        "check the disk and its permissions, or leave it out of log.dirs",
                    ) from error
                self.directory_failed(directory, error)
        for topic in image.topics.values():
            await self._follow_topic(image, topic, topic.partitions.values(), slices)
        self._transitions.tell()
        by_files = {each.files: each for each in self.directories}
        for (name, index), target in copies.unfinished:
            partition = self._by_name.get(name, _NONE).get(index)
            if partition is not None and by_files[target].is_online:
                self.unfinished_moves.append((partition, by_files[target]))

    def _can_do_without(self, directory: DataDirectory, error: OSError) -> bool:
        return (
            is_disk_failure(error)
            and any(each.is_online for each in self.directories if each is not directory)
            and not any(each.topic == _METADATA_TOPIC for each in directory.files.partitions)
        )

    async def _load_directory(
        self, directory: DataDirectory, image: ClusterImage, slices: Slices, promoted: set[str]
    ) -> None:
        files = directory.files
        offsets = directory.read_checkpoints()
        self.deleted_partitions.add_found(files.to_delete)
        for found in files.partitions:
            if found.topic == _METADATA_TOPIC:
                continue
            topic = _topic_of(found, image)
            partition = None if topic is None else topic.partitions.get(found.partition)
            if topic is None or partition is None or self.node_id not in partition.replicas:
                _set_aside(files, found)
                continue
            if partition.index in self._by_name.get(topic.name, _NONE):
                raise StartError(
                    f"{found.path} is there twice, in two of log.dirs",
                    "move one of the two out of the way",
                )
            if found.topic_id is None:
                files.write_topic_id(found.path, topic.topic_id)
            if self._unserved.has(topic, self._logs.settings(image, topic)):
                continue  # it is made known with the topic's others, and its files stay
            log = self._logs.make(
                found.path, topic, partition.index, self._logs.settings(image, topic)
            )
            is_clean = files.was_clean and found.path not in promoted
            self._load_log(log, offsets, is_clean=is_clean)
            self._add(log, topic, directory)
            await slices.turn()

    def _load_log(self, log: Log, offsets: Offsets, *, is_clean: bool) -> None:
        key = (log.topic, log.partition)
        try:
            log.load(
                recovery_point=offsets.recovery_points.get(key, 0),
                log_start_offset=offsets.log_start_offsets.get(key, 0),
                clean=is_clean,
                now_ms=self._clock.now_ms(),
            )
        except KafkaError as error:
            raise StartError(
                f"the log in {log.directory} cannot be opened: {error.message or error}",
                "restore it, or move it out of the way",
            ) from error
        # What was committed when it was written down stays so, whoever leads now.
        high_watermark = offsets.high_watermarks.get(key, 0)
        if high_watermark > log.high_watermark:
            log.set_high_watermark(high_watermark)

    def wake_all(self) -> None:
        """Have everyone who waits for records look again."""
        for partition in self:
            partition.wake_watchers()

    async def until_settled(self) -> None:
        """Take no more appends, and wait until no thread is at work on any log.

        Requests whose connections are closed may still be at it: what came behind the clean end
        would not be known at the next start, and its offsets be given out twice.
        """
        for partition in self:
            self._transitions.resign(partition)
        self._transitions.tell()
        for partition in tuple(self):
            await partition.until_settled()
        await self.commits.until_idle()

    def close(self, *, broker_epoch: int) -> None:
        """Flush and close every log, and say in each directory that the stop was clean. Blocks."""
        for directory in self.directories:
            try:
                directory.close(broker_epoch=broker_epoch)
            except OSError as error:
                directory.is_online = False
                logger.error(  # noqa: TRY400 - a full disk, not a mistake of ours
                    "the data directory %s was not closed cleanly: %s; the next start recovers it",
                    directory.path,
                    error,
                )
        self.deleted_partitions.close()

    # -- the metadata changes --------------------------------------------------------------

    async def apply(self, change: ImageChange, image: ClusterImage) -> None:
        """Follow a change of the metadata."""
        async with self._following:
            self.image = image
            await self._follow(change, image)

    async def make_missing(self) -> None:
        """Create the partitions that no disk had room for, if there is room now."""
        async with self._following:
            names, self._unmade = self._unmade, set()
            slices = Slices(self._clock)
            for name in names:
                topic = self.image.topics.get(name)
                if topic is not None:
                    partitions = topic.partitions.values()
                    await self._follow_topic(self.image, topic, partitions, slices)
            self._transitions.tell()

    async def _follow(self, change: ImageChange, image: ClusterImage) -> None:
        slices = Slices(self._clock)
        gone: list[Partition] = []
        for topic in change.deleted:
            partitions = self._by_id.pop(topic.topic_id, None)
            if partitions is not None:
                del self._by_name[topic.name]
                gone += partitions.values()
        if gone:
            await self._delete(gone, slices)
        for topic_change in change.topics.values():
            topic_now = image.topics_by_id.get(topic_change.topic_id)
            if topic_now is not None:
                changed = [each.after for each in topic_change.partitions.values()]
                await self._follow_topic(image, topic_now, changed, slices)
        self._transitions.tell()
        for resource_type, name in change.configs:
            topic_now = image.topics.get(name)
            if resource_type == ResourceType.TOPIC and topic_now is not None:
                await self._apply_settings(image, topic_now, slices)

    async def use_config(self, config: Config, image: ClusterImage) -> None:
        """Take over changed defaults of topics, and how long producers are remembered."""
        slices = Slices(self._clock)
        self._logs.use_config(config)
        for topic in image.topics.values():
            await self._apply_settings(image, topic, slices)

    async def _apply_settings(self, image: ClusterImage, topic: TopicImage, slices: Slices) -> None:
        settings = self._logs.settings(image, topic)
        expiration_ms = self._logs.producer_id_expiration_ms
        for partition in tuple(self._by_name.get(topic.name, _NONE).values()):
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
        """Give partitions their roles, create those that are new, let go of those that left."""
        held = self._by_name.get(topic.name, _NONE)
        new: list[PartitionImage] = []
        gone: list[Partition] = []
        for partition in partitions:
            existing = held.get(partition.index)
            if self.node_id not in partition.replicas:
                if existing is not None:
                    gone.append(existing)
            elif existing is None:
                new.append(partition)
            elif existing.is_appending:
                await self._transitions.enter_in_turn(existing, partition)
            else:
                self._transitions.enter(existing, partition)
            if slices.is_over:
                self._transitions.tell()
                await slices.turn()
        if gone:
            for partition_gone in gone:
                del self._by_id[topic.topic_id][partition_gone.index]
            await self._delete(gone, slices)
        if new:
            await self._add_new(topic, new, self._logs.settings(image, topic))

    async def _add_new(
        self, topic: TopicImage, new: list[PartitionImage], settings: TopicSettings
    ) -> None:
        """Create partitions wherever there is a disk that takes them."""
        if self._unserved.has(topic, settings):
            self._add_offline(topic, new, settings, self._unserved.directory)
            return
        lost = self.choice.lost(new)
        for partition, directory in lost:
            self._add_offline(topic, [partition], settings, directory)
        if lost:
            gone = {partition.index for partition, _ in lost}
            new = [each for each in new if each.index not in gone]
        full: set[DataDirectory] = set()
        while new:
            self._transitions.tell()
            online = [directory for directory in self.directories if directory.is_online]
            if not online:
                self._add_offline(topic, new, settings, self.directories[0])
                return
            usable = [directory for directory in online if directory not in full]
            if not usable:
                self._unmade.add(topic.name)
                return
            batch, new = new[:_BATCH], new[_BATCH:]
            new[:0] = await self._create(topic, batch, usable, settings, full)

    async def _create(
        self,
        topic: TopicImage,
        new: list[PartitionImage],
        usable: list[DataDirectory],
        settings: TopicSettings,
        full: set[DataDirectory],
    ) -> list[PartitionImage]:
        """Create partitions; return those whose disk failed or is full.

        Directories that are found full are added to `full`.
        """
        placed = self.choice.choose(topic.name, new, usable)

        def make() -> list[Log | OSError]:
            return [self._make(topic, each, where, settings) for each, where in placed]

        failed: list[PartitionImage] = []
        made = await in_thread(Work.TOPICS, make)
        for (partition, directory), log in zip(placed, made, strict=True):
            if isinstance(log, Log):
                directory.note_new_names()
                self._transitions.enter(self._add(log, topic, directory), partition)
            else:
                self.write_failed(directory, log)
                full.add(directory)
                failed.append(partition)
        return failed

    def _make(
        self,
        topic: TopicImage,
        partition: PartitionImage,
        directory: DataDirectory,
        settings: TopicSettings,
    ) -> Log | OSError:
        """Make a partition's directory and its empty log. Blocks."""
        try:
            path = directory.files.create_partition_directory(
                topic.name, partition.index, topic.topic_id
            )
            log = self._logs.make(path, topic, partition.index, settings)
            log.load(recovery_point=0, clean=True, now_ms=self._clock.now_ms())
        except OSError as error:
            # It will be made elsewhere, or again; a start must not find it twice.
            with contextlib.suppress(OSError):
                directory.files.remove_partition_directory(topic.name, partition.index)
            return error
        return log

    async def _delete(self, gone: list[Partition], slices: Slices) -> None:
        """Let go of partitions, which nobody finds any more, and of their files after a while."""
        for partition in gone:
            self._transitions.retire(partition)
            partition.directory.partitions.discard(partition)
            self.gone_traffic.add(partition)
            if slices.is_over:
                self._transitions.tell()
                await slices.turn()
        self._transitions.tell()
        await self.deleted_partitions.put_aside(gone)
        for directory in self.directories:
            try:
                await directory.forget(gone, self._clock)
            except OSError as error:
                self.write_failed(directory, error)

    # -- disks -----------------------------------------------------------------------------

    def disk_failed(self, partition: Partition, error: OSError) -> None:
        """Note that a read or a write failed under a partition; see `write_failed`."""
        self.write_failed(partition.directory, error)

    def write_failed(self, directory: DataDirectory, error: OSError) -> None:
        """Take a directory offline, unless something is short that says nothing about the disk."""
        if is_disk_full(error):
            directory.note_full(error)
        elif is_disk_failure(error):
            self.directory_failed(directory, error)
        else:
            logger.error("%s: %s", directory.path, error)

    def file_failed(self, path: str, error: OSError) -> None:
        """Take the directory offline that a file lies in which could not be read."""
        for directory in self.directories:
            if path.startswith(f"{directory.path}/"):
                self.directory_failed(directory, error)

    def directory_failed(self, directory: DataDirectory, error: OSError) -> None:
        """Take a directory offline: what it holds is not served any more."""
        if not directory.is_online:
            return
        directory.is_online = False
        logger.error(
            "the data directory %s is offline until a restart: %s; its %d partitions answer"
            " KAFKA_STORAGE_ERROR",
            directory.path,
            error,
            len(directory.partitions),
        )
        for partition in tuple(directory.partitions):
            self._transitions.resign(partition)
        self._transitions.tell()
        if self.on_directory_failed is not None:
            self.on_directory_failed()

    # -- inside ----------------------------------------------------------------------------

    def _add(self, log: Log, topic: TopicImage, directory: DataDirectory) -> Partition:
        partition = Partition(log, directory=directory, host=self._host)
        partitions = self._by_name.get(topic.name)
        if partitions is None:
            partitions = self._by_name[topic.name] = {}
            self._by_id[topic.topic_id] = partitions
        assert partition.index not in partitions, f"{partition} is here already"
        partitions[partition.index] = partition
        directory.partitions.add(partition)
        return partition

    def _add_offline(
        self,
        topic: TopicImage,
        new: list[PartitionImage],
        settings: TopicSettings,
        directory: DataDirectory,
    ) -> None:
        """Add partitions of a directory that is offline; their logs are never opened."""
        for image in new:
            path = directory.files.partition_path(topic.name, image.index)
            log = self._logs.make(path, topic, image.index, settings)
            partition = self._add(log, topic, directory)
            directory.partitions.discard(partition)
            self._transitions.enter(partition, image)


def _topic_of(found: PartitionDirectory, image: ClusterImage) -> TopicImage | None:
    """Return the topic that a directory belongs to: by its id, by name if the id got lost."""
    if found.topic_id is None:
        return image.topics.get(found.topic)
    return image.topics_by_id.get(found.topic_id)


def _set_aside(files: LogDirectory, found: PartitionDirectory) -> None:
    path = files.stray_partition_directory(found.topic, found.partition)
    logger.warning(
        "the metadata knows nothing of %s-%d: its directory is now %s",
        found.topic,
        found.partition,
        path,
    )
