"""Loads this node's partitions from its log directories at start.

Logs are recovered if their directory was not closed cleanly. Partitions that the metadata does not
know are renamed as stray. A directory whose disk fails goes offline if the node can run without it;
an unreadable log fails the start.

Source: Kafka's LogManager.loadLogs.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from wirebroker.codecs.errors import KafkaError, without_frames
from wirebroker.config import StartError
from wirebroker.disks.data_directory import is_disk_failure
from wirebroker.replica.log_copies import sort_out
from wirebroker.storage.recovery.log_recovery import load_log

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from wirebroker.base.clock import Clock, Slices
    from wirebroker.coordinator.controller.image.cluster_image import ClusterImage, TopicImage
    from wirebroker.disks.data_directory import DataDirectory, Offsets
    from wirebroker.replica.deleted_files import DeletedPartitions
    from wirebroker.replica.log_copies import LogCopies
    from wirebroker.replica.partition import Partition
    from wirebroker.replica.partition_registry import PartitionRegistry
    from wirebroker.replica.topic_logs import TopicLogs, UnservedTopics
    from wirebroker.storage.log.log import Log
    from wirebroker.storage.log_directory import LogDirectory, PartitionDirectory

    _Unfinished = list[tuple[tuple[str, int], DataDirectory]]

logger = logging.getLogger(__name__)

_METADATA_TOPIC = "__cluster_metadata"


class ReplicaLoader:
    """Loads the log directories of one start."""

    __slots__ = (
        "_clock",
        "_deleted_partitions",
        "_directories",
        "_held",
        "_logs",
        "_node_id",
        "_on_failure",
        "_unfinished",
        "_unserved",
    )

    def __init__(
        self,
        held: PartitionRegistry,
        logs: TopicLogs,
        *,
        directories: Sequence[DataDirectory],
        unserved: UnservedTopics,
        deleted_partitions: DeletedPartitions,
        clock: Clock,
        node_id: int,
        on_failure: Callable[[DataDirectory, OSError], None],
    ) -> None:
        """`deleted_partitions` receives what an earlier run had still to delete."""
        self._held = held
        self._logs = logs
        self._directories = directories
        self._unserved = unserved
        self._deleted_partitions = deleted_partitions
        self._clock = clock
        self._node_id = node_id
        self._on_failure = on_failure
        self._unfinished: _Unfinished = []

    async def load(self, image: ClusterImage, slices: Slices) -> None:
        """Open the logs in the directories that are online.

        Raises:
            StartError: A log cannot be opened, no directory is left, or the metadata log's has
                failed.
        """
        online = [directory for directory in self._directories if directory.is_online]
        files = [directory.files for directory in online]
        is_whole = len(files) == len(self._directories)
        copies = sort_out(files, image, node_id=self._node_id, is_whole=is_whole)
        for directory in online:
            try:
                copies.check(directory.files)
                await self._load_directory(directory, image, slices, copies.promoted)
            except OSError as error:
                copies.failed[directory.files] = without_frames(error)
                self._take_offline(directory, error)
        await self._load_orphans(copies, online, image, slices)
        copies.drop_others()
        by_files = {directory.files: directory for directory in online}
        self._unfinished = [(key, by_files[target]) for key, target in copies.unfinished]
        for directory in online:
            if directory.is_online:
                self._deleted_partitions.add_found(directory.files.to_delete)

    def unfinished_moves(self) -> list[tuple[Partition, DataDirectory]]:
        """Return the partitions with unfinished moves, each with its target directory."""
        moves = (
            (self._held.of(name).get(index), target) for (name, index), target in self._unfinished
        )
        return [
            (partition, target)
            for partition, target in moves
            if partition is not None and target.is_online
        ]

    def _take_offline(self, directory: DataDirectory, error: OSError) -> None:
        if not self._can_do_without(directory, error):
            raise StartError(
                f"the data directory {directory.path} cannot be read: {error}",
                "check the disk and its permissions, or remove it from log.dirs",
            ) from error
        self._on_failure(directory, error)

    async def _load_orphans(
        self,
        copies: LogCopies,
        online: Sequence[DataDirectory],
        image: ClusterImage,
        slices: Slices,
    ) -> None:
        by_files = {directory.files: directory for directory in online}
        while (orphan := copies.use_orphan()) is not None:
            directory, partition_directory = by_files[orphan[0]], orphan[1]
            self._forget_lost(partition_directory)
            try:
                offsets = directory.read_checkpoints()
                self._load_partition(directory, partition_directory, image, offsets, is_clean=False)
            except OSError as error:
                copies.failed[directory.files] = without_frames(error)
            await slices.turn()
        for directory in online:
            if directory.is_online and directory.files in copies.failed:
                self._take_offline(directory, copies.failed[directory.files])

    def _forget_lost(self, partition_directory: PartitionDirectory) -> None:
        """Remove a partition that was loaded before its disk failed."""
        partition = self._held.of(partition_directory.topic).get(partition_directory.partition)
        if partition is not None:
            self._held.remove(partition)
            partition.directory.partitions.discard(partition)
            partition.log.close(clean=False)

    def _can_do_without(self, directory: DataDirectory, error: OSError) -> bool:
        return (
            is_disk_failure(error)
            and any(other.is_online for other in self._directories if other is not directory)
            and not any(
                partition_directory.topic == _METADATA_TOPIC
                for partition_directory in directory.files.partitions
            )
        )

    async def _load_directory(
        self, directory: DataDirectory, image: ClusterImage, slices: Slices, promoted: set[str]
    ) -> None:
        files = directory.files
        offsets = directory.read_checkpoints()
        for partition_directory in files.partitions:
            if partition_directory.topic != _METADATA_TOPIC:
                is_clean = files.was_clean and partition_directory.path not in promoted
                self._load_partition(
                    directory, partition_directory, image, offsets, is_clean=is_clean
                )
                await slices.turn()

    def _load_partition(
        self,
        directory: DataDirectory,
        partition_directory: PartitionDirectory,
        image: ClusterImage,
        offsets: Offsets,
        *,
        is_clean: bool,
    ) -> None:
        topic = _topic_of(partition_directory, image)
        partition = None if topic is None else topic.partitions.get(partition_directory.partition)
        if topic is None or partition is None or self._node_id not in partition.replicas:
            _set_aside(directory.files, partition_directory)
            return
        if partition.index in self._held.of(topic.name):
            raise StartError(
                f"the partition in {partition_directory.path} exists in two of log.dirs",
                "move one of the two out of the way",
            )
        if partition_directory.topic_id is None:
            directory.files.write_topic_id(partition_directory.path, topic.topic_id)
        settings = self._logs.settings(image, topic)
        if self._unserved.has(topic, settings):
            return  # it is reported with the rest of its topic
        log = self._logs.make(partition_directory.path, topic, partition.index, settings)
        self._load_log(log, offsets, is_clean=is_clean)
        self._held.add(log, topic, directory)

    def _load_log(self, log: Log, offsets: Offsets, *, is_clean: bool) -> None:
        key = (log.topic, log.partition)
        try:
            load_log(
                log,
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
        # Committed records stay committed under every leader.
        high_watermark = offsets.high_watermarks.get(key, 0)
        if high_watermark > log.high_watermark:
            log.set_high_watermark(high_watermark)


def _topic_of(partition_directory: PartitionDirectory, image: ClusterImage) -> TopicImage | None:
    """Return the topic by its id, or by name if the id was lost."""
    if partition_directory.topic_id is None:
        return image.topics.get(partition_directory.topic)
    return image.topics_by_id.get(partition_directory.topic_id)


def _set_aside(files: LogDirectory, partition_directory: PartitionDirectory) -> None:
    path = files.stray_partition_directory(partition_directory.topic, partition_directory.partition)
    logger.warning(
        "%s-%d is not in the metadata: renamed its directory to %s",
        partition_directory.topic,
        partition_directory.partition,
        path,
    )
