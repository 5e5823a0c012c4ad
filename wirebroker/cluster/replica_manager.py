"""All partitions that this node holds: opened at start, then as the metadata changes.

The metadata log calls `apply` after each change and answers its request only when that is done,
so a topic's logs are there when CreateTopics returns. Directories are made and renamed in threads,
many partitions at a time; what is done to thousands of partitions on the loop is cut into slices.

A disk that fails takes its log directory offline (data_directory.py); partitions are then created
in the others. With none left they exist all the same, and answer KAFKA_STORAGE_ERROR.

Source: Kafka's ReplicaManager and LogManager.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, NamedTuple

from wirebroker.clock import Clock, Slices
from wirebroker.cluster.data_directory import DataDirectory, is_disk_failure, is_disk_full
from wirebroker.cluster.deleted_segments import DeletedSegments
from wirebroker.cluster.group_commit import GroupCommit
from wirebroker.cluster.partition import Partition
from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.config import StartError
from wirebroker.coordinator.cluster_image import ResourceType
from wirebroker.storage.log import Log

if TYPE_CHECKING:
    from wirebroker.config import Config, TopicSettings
    from wirebroker.coordinator.cluster_image import ClusterImage, PartitionImage, TopicImage
    from wirebroker.coordinator.image_builder import ImageChange
    from wirebroker.storage.files import Files
    from wirebroker.storage.log_directory import LogDirectory, PartitionDirectory

logger = logging.getLogger(__name__)

Partitions = Mapping[int, Partition]
_NONE: Partitions = {}

# Partitions that a thread creates or renames at a time: about 50 ms of a disk that is busy.
_BATCH = 50

# Settings of topics that are kept for topics with the same overrides.
MOST_SETTINGS = 256


class _Removal(NamedTuple):
    """A deleted partition whose files go when file.delete.delay.ms is over."""

    due: float  # monotonic seconds
    path: str
    log: Log | None  # whose open files readers may still be sent from


class ReplicaManager:
    """The partitions of this node, by topic name and by topic id.

    Attributes:
        commits: Syncs what must be on the disk before it counts.
        directories: The log directories, online or not.
        deleted_segments: What is no longer part of logs that go on.
        rolled: Logs whose closed segments may have to be flushed; threads append to it.
    """

    __slots__ = (
        "_by_id",
        "_by_name",
        "_clock",
        "_config",
        "_files",
        "_following",
        "_image",
        "_node_id",
        "_removals",
        "_settings",
        "_unmade",
        "commits",
        "deleted_segments",
        "directories",
        "rolled",
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
        self.commits = GroupCommit(
            is_always=config.str("wirebroker.durability") == "fsync",
            on_failure=self.directory_failed,
        )
        self._files = files
        self._config = config
        self._clock = clock
        self._node_id = node_id
        self._by_name: dict[str, dict[int, Partition]] = {}
        self._by_id: dict[bytes, dict[int, Partition]] = {}
        self._removals: list[_Removal] = []
        # Topics that lack partitions here because no disk had room for them.
        self._unmade: set[str] = set()
        self._image: ClusterImage | None = None  # the newest that was followed
        self._following = asyncio.Lock()  # held while partitions are created and deleted
        self.deleted_segments = DeletedSegments(clock)
        self.rolled: deque[Log] = deque()
        # Topics with the same overrides share one settings object.
        self._settings: dict[frozenset[tuple[str, str]], TopicSettings] = {}

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

        Raises:
            StartError: A log cannot be opened.
        """
        slices = Slices(self._clock)
        for directory in self.directories:
            try:
                await self._load_directory(directory, image, slices)
            except OSError as error:
                raise StartError(
                    f"the data directory {directory.path} cannot be read: {error}",
                    "check the disk and its permissions, or leave it out of log.dirs",
                ) from error
        for topic in image.topics.values():
            await self._follow_topic(image, topic, slices)

    async def _load_directory(
        self, directory: DataDirectory, image: ClusterImage, slices: Slices
    ) -> None:
        files = directory.files
        recovery_points, start_offsets = directory.read_checkpoints()
        # A broker that stopped before it could remove them.
        now = self._clock.monotonic()
        self._removals += [_Removal(now, path, None) for path in files.to_delete]
        for found in files.partitions:
            if found.topic.startswith("__cluster_metadata"):
                continue
            topic = _topic_of(found, image)
            partition = None if topic is None else topic.partitions.get(found.partition)
            if topic is None or partition is None or self._node_id not in partition.replicas:
                _set_aside(files, found)
                continue
            if partition.index in self._by_name.get(topic.name, _NONE):
                raise StartError(
                    f"{found.path} is there twice, in two of log.dirs",
                    "move one of the two out of the way",
                )
            if found.topic_id is None:
                files.write_topic_id(found.path, topic.topic_id)
            log = self._log(found.path, topic, partition.index, self._topic_settings(image, topic))
            key = (topic.name, partition.index)
            try:
                log.load(
                    recovery_point=recovery_points.get(key, 0),
                    log_start_offset=start_offsets.get(key, 0),
                    clean=files.was_clean,
                    now_ms=self._clock.now_ms(),
                )
            except KafkaError as error:
                raise StartError(
                    f"the log in {found.path} cannot be opened: {error.message or error}",
                    "restore it, or move it out of the way",
                ) from error
            self._add(log, topic, partition, directory)
            await slices.turn()

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
            partition.resign()
        for partition in tuple(self):
            await partition.until_settled()
        await self.commits.until_idle()
        self.commits.close()

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
        for removal in self._removals:
            if removal.log is not None:
                removal.log.close(clean=False)

    # -- the metadata changes --------------------------------------------------------------

    async def apply(self, change: ImageChange, image: ClusterImage) -> None:
        """Follow a change of the metadata."""
        async with self._following:
            self._image = image
            await self._follow(change, image)

    async def make_missing(self) -> None:
        """Create the partitions that no disk had room for, if there is room now."""
        async with self._following:
            names, self._unmade = self._unmade, set()
            slices = Slices(self._clock)
            for name in names:
                topic = None if self._image is None else self._image.topics.get(name)
                if topic is not None and self._image is not None:
                    await self._follow_topic(self._image, topic, slices)

    async def _follow(self, change: ImageChange, image: ClusterImage) -> None:
        slices = Slices(self._clock)
        gone: list[Partition] = []
        for topic in change.deleted:
            gone += await self._delete(topic, slices)
        if gone:
            await self._forget(gone)
        for name in change.created | change.changed:
            topic_now = image.topics.get(name)
            if topic_now is not None:
                await self._follow_topic(image, topic_now, slices)
        for resource_type, name in change.configs_changed:
            topic_now = image.topics.get(name)
            if resource_type == ResourceType.TOPIC and topic_now is not None:
                await self._apply_settings(image, topic_now, slices)

    async def use_config(self, config: Config, image: ClusterImage) -> None:
        """Take over changed defaults of topics (the broker's configs are dynamic)."""
        slices = Slices(self._clock)
        self._config = config
        self._settings.clear()
        for topic in image.topics.values():
            await self._apply_settings(image, topic, slices)

    async def _apply_settings(self, image: ClusterImage, topic: TopicImage, slices: Slices) -> None:
        settings = self._topic_settings(image, topic)
        for partition in tuple(self._by_name.get(topic.name, _NONE).values()):
            partition.log.settings = settings
            await slices.turn()

    async def _follow_topic(self, image: ClusterImage, topic: TopicImage, slices: Slices) -> None:
        """Tell the partitions what changed, and create those that are new."""
        held = self._by_name.get(topic.name, _NONE)
        new: list[PartitionImage] = []
        for partition in topic.partitions.values():
            existing = held.get(partition.index)
            if existing is not None:
                existing.update(partition)
            elif self._node_id in partition.replicas:
                new.append(partition)
            await slices.turn()
        settings = self._topic_settings(image, topic)
        full: set[DataDirectory] = set()
        while new:
            online = [directory for directory in self.directories if directory.is_online]
            if not online:
                self._add_offline(topic, new, settings)
                return
            usable = [directory for directory in online if directory not in full]
            if not usable:
                self._unmade.add(topic.name)
                return
            new[:_BATCH] = await self._create(topic, new[:_BATCH], usable, settings, full)

    async def _create(
        self,
        topic: TopicImage,
        new: list[PartitionImage],
        usable: list[DataDirectory],
        settings: TopicSettings,
        full: set[DataDirectory],
    ) -> list[PartitionImage]:
        """Create partitions, each where the fewest are; return those whose disk failed or is full.

        Directories that are found full are added to `full`.
        """
        counts = {directory: len(directory.partitions) for directory in usable}
        placed: list[tuple[PartitionImage, DataDirectory]] = []
        for partition in new:
            emptiest = min(usable, key=lambda directory: counts[directory])
            counts[emptiest] += 1
            placed.append((partition, emptiest))

        def make() -> list[Log | OSError]:
            return [self._make(topic, each, where, settings) for each, where in placed]

        failed: list[PartitionImage] = []
        made = await asyncio.get_running_loop().run_in_executor(None, make)
        for (partition, directory), log in zip(placed, made, strict=True):
            if isinstance(log, Log):
                directory.note_new_names()
                self._add(log, topic, partition, directory)
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
            log = self._log(path, topic, partition.index, settings)
            log.load(recovery_point=0, clean=True, now_ms=self._clock.now_ms())
        except OSError as error:
            # It will be made elsewhere, or again; a start must not find it twice.
            with contextlib.suppress(OSError):
                directory.files.remove_partition_directory(topic.name, partition.index)
            return error
        return log

    async def _delete(self, topic: TopicImage, slices: Slices) -> Iterable[Partition]:
        """Let go of a topic's partitions at once, and of their files after a while; return them."""
        partitions = self._by_id.pop(topic.topic_id, None)
        if partitions is None:
            return ()
        del self._by_name[topic.name]
        gone = list(partitions.values())
        for partition in gone:
            partition.retire()  # all before anybody has his turn: who knows one finds it no more
        for partition in gone:
            partition.directory.partitions.discard(partition)
            await slices.turn()
        loop = asyncio.get_running_loop()
        while gone:
            batch, gone = gone[:_BATCH], gone[_BATCH:]
            for partition in batch:
                # Whoever comes after a thread that is writing finds the partition retired.
                await partition.until_settled()
            moved = await loop.run_in_executor(None, _move_aside, batch)
            now = self._clock.monotonic()
            for partition, path in zip(batch, moved, strict=True):
                if isinstance(path, OSError):
                    self.write_failed(partition.directory, path)
                elif path is not None:
                    delay_s = partition.log.settings.file_delete_delay_ms / 1000
                    self._removals.append(_Removal(now + delay_s, path, partition.log))
        return partitions.values()

    async def _forget(self, deleted: list[Partition]) -> None:
        for directory in self.directories:
            try:
                await directory.forget(deleted, self._clock)
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
            partition.wake_watchers()

    def remove_deleted(self) -> bool:
        """Remove the files of some deleted partitions whose delay is over. Blocks.

        Returns:
            Whether there may be more of them.
        """
        now = self._clock.monotonic()
        due = [removal for removal in self._removals if removal.due <= now][:_BATCH]
        for removal in due:
            self._removals.remove(removal)
            if removal.log is not None:
                removal.log.close(clean=False)
            try:
                self._files.remove_tree(removal.path)
            except OSError as error:
                logger.warning("%s cannot be removed: %s", removal.path, error)
        return len(due) == _BATCH

    # -- inside ----------------------------------------------------------------------------

    def _add(
        self, log: Log, topic: TopicImage, image: PartitionImage, directory: DataDirectory
    ) -> Partition:
        partition = Partition(
            log,
            image,
            topic=topic.name,
            node_id=self._node_id,
            directory=directory,
            commits=self.commits,
        )
        partitions = self._by_name.get(topic.name)
        if partitions is None:
            partitions = self._by_name[topic.name] = {}
            self._by_id[topic.topic_id] = partitions
        partitions[image.index] = partition
        directory.partitions.add(partition)
        return partition

    def _add_offline(
        self, topic: TopicImage, new: list[PartitionImage], settings: TopicSettings
    ) -> None:
        """Add partitions that no disk is left for; their logs are never opened."""
        directory = self.directories[0]
        for partition in new:
            path = directory.files.partition_path(topic.name, partition.index)
            log = self._log(path, topic, partition.index, settings)
            directory.partitions.discard(self._add(log, topic, partition, directory))

    def _log(self, path: str, topic: TopicImage, index: int, settings: TopicSettings) -> Log:
        log = Log(
            path,
            self._files,
            topic=topic.name,
            partition=index,
            topic_id=topic.topic_id,
            settings=settings,
            producer_id_expiration_ms=self._config.int("producer.id.expiration.ms"),
        )
        log.on_roll = self.rolled.append
        return log

    def _topic_settings(self, image: ClusterImage, topic: TopicImage) -> TopicSettings:
        overrides = image.topic_config(topic.name)
        key = frozenset(overrides.items())
        settings = self._settings.get(key)
        if settings is None:
            if len(self._settings) >= MOST_SETTINGS:
                self._settings.clear()  # most of them are of topics or overrides that are gone
            settings = self._settings[key] = self._config.topic_settings(overrides)
        return settings


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


def _move_aside(partitions: list[Partition]) -> list[str | OSError | None]:
    """Rename the directories of deleted partitions. Blocks.

    Open files stay open, so that answers that are being sent from them are finished.

    Returns:
        Each one's new path or what went wrong; None where the disk has failed before.
    """
    moved: list[str | OSError | None] = []
    for partition in partitions:
        if not partition.directory.is_online:
            moved.append(None)
            continue
        files = partition.directory.files
        try:
            path = files.delete_partition_directory(partition.topic, partition.index)
        except OSError as error:
            if not is_disk_failure(error):
                # No room for a second name: the files go at once.
                with contextlib.suppress(OSError):
                    partition.directory.files.remove_partition_directory(
                        partition.topic, partition.index
                    )
            moved.append(error)
        else:
            for segment in partition.log.segments:
                segment.relocate(path)
            moved.append(path)
    return moved
