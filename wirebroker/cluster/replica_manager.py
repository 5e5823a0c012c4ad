"""All partitions that this node holds: opened at start, then as the metadata changes.

The metadata log calls `apply` after each change and answers its request only when that is done,
so a topic's logs are there when CreateTopics returns. Work on many partitions is cut into slices
with a turn of the event loop between them.

A disk that fails takes its log directory offline: partitions there answer KAFKA_STORAGE_ERROR and
nothing is acknowledged on them any more.

Source: Kafka's ReplicaManager and LogManager.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from wirebroker.clock import Clock, Slices
from wirebroker.cluster.partition import Partition
from wirebroker.codecs.errors import ErrorCode
from wirebroker.storage.log import Log
from wirebroker.storage.log_directory import LogDirectory, PartitionDirectory

if TYPE_CHECKING:
    from wirebroker.config import Config, TopicSettings
    from wirebroker.coordinator.cluster_image import ClusterImage, PartitionImage, TopicImage
    from wirebroker.coordinator.image_builder import ImageChange
    from wirebroker.storage.files import Files

logger = logging.getLogger(__name__)

Partitions = Mapping[int, Partition]
Offsets = dict[tuple[str, int], int]
_NONE: Partitions = {}

TOPIC_RESOURCE = 2


class ReplicaManager:
    """The partitions of this node, by topic name and by topic id."""

    __slots__ = (
        "_by_id",
        "_by_name",
        "_clock",
        "_config",
        "_files",
        "_node_id",
        "_settings",
        "directories",
        "removed",
    )

    def __init__(
        self,
        directories: list[LogDirectory],
        files: Files,
        *,
        config: Config,
        clock: Clock,
        node_id: int,
    ) -> None:
        self.directories = directories
        # Paths of deleted partitions, each with the time (monotonic) from which it may be removed.
        self.removed: list[tuple[float, str]] = []
        self._files = files
        self._config = config
        self._clock = clock
        self._node_id = node_id
        self._by_name: dict[str, dict[int, Partition]] = {}
        self._by_id: dict[bytes, dict[int, Partition]] = {}
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

    async def load(self, image: ClusterImage) -> None:
        """Open what the directories hold of this node's partitions, and create what they lack.

        Raises:
            OSError: A log cannot be read.
        """
        slices = Slices(self._clock)
        for directory in self.directories:
            recovery_points = directory.read_recovery_points()
            start_offsets = directory.read_log_start_offsets()
            for found in directory.partitions:
                if found.topic.startswith("__cluster_metadata"):
                    continue
                topic = None if found.topic_id is None else image.topics_by_id.get(found.topic_id)
                if found.topic_id is None:
                    topic = image.topics.get(found.topic)
                partition = None if topic is None else topic.partitions.get(found.partition)
                if topic is None or partition is None or self._node_id not in partition.replicas:
                    self._set_aside(directory, found)
                    continue
                log = self._log(found.path, image, topic, partition.index)
                key = (topic.name, partition.index)
                log.load(
                    recovery_point=recovery_points.get(key, 0),
                    log_start_offset=start_offsets.get(key, 0),
                    clean=directory.was_clean,
                    now_ms=self._clock.now_ms(),
                )
                self._add(log, topic, partition)
                await slices.turn()
        for topic in image.topics.values():
            await self._create_missing(image, topic, slices)

    async def apply(self, change: ImageChange, image: ClusterImage) -> None:
        """Follow a change of the metadata."""
        slices = Slices(self._clock)
        for topic in change.deleted:
            await self._delete(topic, slices)
        for name in change.created | change.changed:
            topic = image.topics.get(name)
            if topic is not None:
                await self._create_missing(image, topic, slices)
        for resource_type, name in change.configs_changed:
            if resource_type == TOPIC_RESOURCE and name in image.topics:
                settings = self._settings_of(image.topic_config(name))
                for partition in self._by_name.get(name, _NONE).values():
                    partition.log.settings = settings

    def disk_failed(self, partition: Partition, error: OSError) -> None:
        """Note that the disk failed under a partition; what it held is not served any more."""
        logger.error(
            "log directory failed: %s-%d answers KAFKA_STORAGE_ERROR: %s",
            partition.topic,
            partition.index,
            error,
        )

    def remove_deleted(self, now: float) -> list[str]:
        """Return the directories whose time to be removed has come; the caller removes them."""
        due = [path for when, path in self.removed if when <= now]
        self.removed = [(when, path) for when, path in self.removed if when > now]
        return due

    def close(self, *, broker_epoch: int) -> None:
        """Flush and close every log, then say in each directory that the stop was clean."""
        logs = [partition.log for partition in self]
        for log in logs:
            log.close(clean=True)
        for directory in self.directories:
            _write_checkpoints(directory, *self._offsets(directory))
            directory.mark_clean_shutdown(broker_epoch=broker_epoch)

    async def checkpoint(self, directory: LogDirectory) -> None:
        """Write the checkpoints of one directory, in a thread."""
        await asyncio.to_thread(_write_checkpoints, directory, *self._offsets(directory))

    def _offsets(self, directory: LogDirectory) -> tuple[Offsets, Offsets, Offsets]:
        """Return recovery points, log start offsets and high watermarks of one directory."""
        logs = [p.log for p in self if p.log.directory.startswith(f"{directory.path}/")]
        starts = {
            (log.topic, log.partition): log.log_start_offset
            for log in logs
            if log.log_start_offset > log.segments[0].base_offset
        }
        return (
            {(log.topic, log.partition): log.recovery_point for log in logs},
            starts,
            {(log.topic, log.partition): log.high_watermark for log in logs},
        )

    async def _create_missing(self, image: ClusterImage, topic: TopicImage, slices: Slices) -> None:
        held = self._by_name.get(topic.name, _NONE)
        for index, partition in topic.partitions.items():
            existing = held.get(index)
            if existing is not None:
                existing.update(partition)
            elif self._node_id in partition.replicas:
                directory = min(self.directories, key=lambda each: len(each.partitions))
                path = directory.create_partition_directory(topic.name, index, topic.topic_id)
                directory.partitions.append(
                    PartitionDirectory(topic.name, index, path, topic.topic_id)
                )
                log = self._log(path, image, topic, index)
                log.load(recovery_point=0, clean=True, now_ms=self._clock.now_ms())
                self._add(log, topic, partition)
            await slices.turn()

    async def _delete(self, topic: TopicImage, slices: Slices) -> None:
        self._by_id.pop(topic.topic_id, None)
        partitions = self._by_name.get(topic.name)
        if partitions is None:
            return
        del self._by_name[topic.name]
        for index, partition in partitions.items():
            log = partition.log
            directory = self._directory_of(log)
            directory.partitions = [
                each for each in directory.partitions if each.path != log.directory
            ]
            log.close(clean=False)
            path = directory.delete_partition_directory(topic.name, index)
            delay_s = log.settings.file_delete_delay_ms / 1000
            self.removed.append((self._clock.monotonic() + delay_s, path))
            partition.wake_watchers()
            await slices.turn()

    def _set_aside(self, directory: LogDirectory, found: PartitionDirectory) -> None:
        path = directory.stray_partition_directory(found.topic, found.partition)
        logger.warning(
            "the metadata knows nothing of %s-%d: its directory is now %s",
            found.topic,
            found.partition,
            path,
        )

    def _add(self, log: Log, topic: TopicImage, image: PartitionImage) -> None:
        partition = Partition(log, image, topic=topic.name, node_id=self._node_id)
        partitions = self._by_name.get(topic.name)
        if partitions is None:
            partitions = self._by_name[topic.name] = {}
            self._by_id[topic.topic_id] = partitions
        partitions[image.index] = partition

    def _directory_of(self, log: Log) -> LogDirectory:
        return next(
            each
            for each in self.directories
            if log.directory == each.partition_path(log.topic, log.partition)
        )

    def _log(self, path: str, image: ClusterImage, topic: TopicImage, index: int) -> Log:
        return Log(
            path,
            self._files,
            topic=topic.name,
            partition=index,
            topic_id=topic.topic_id,
            settings=self._settings_of(image.topic_config(topic.name)),
            producer_id_expiration_ms=self._config.int("producer.id.expiration.ms"),
        )

    def _settings_of(self, overrides: Mapping[str, str]) -> TopicSettings:
        key = frozenset(overrides.items())
        settings = self._settings.get(key)
        if settings is None:
            settings = self._settings[key] = self._config.topic_settings(overrides)
        return settings


def _write_checkpoints(
    directory: LogDirectory, recovery_points: Offsets, starts: Offsets, high_watermarks: Offsets
) -> None:
    directory.write_recovery_points(recovery_points)
    directory.write_log_start_offsets(starts)
    directory.write_high_watermarks(high_watermarks)
