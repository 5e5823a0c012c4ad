"""Creates the replicas that the metadata places on this node.

If a disk fails, another directory is used; if none is left, the partition is known but returns
KAFKA_STORAGE_ERROR. If all remaining directories are full, it waits for room.

Source: Kafka's LogManager.getOrCreateLog.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from wirebroker.base.threads import Work, in_thread
from wirebroker.codecs.errors import without_frames
from wirebroker.storage.log.log import Log
from wirebroker.storage.recovery.log_recovery import load_log

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from wirebroker.base.clock import Clock
    from wirebroker.config import TopicSettings
    from wirebroker.coordinator.controller.image.cluster_image import PartitionImage, TopicImage
    from wirebroker.disks.data_directory import DataDirectory
    from wirebroker.disks.directory_choice import DirectoryChoice
    from wirebroker.replica.partition_registry import PartitionRegistry
    from wirebroker.replica.topic_logs import TopicLogs, UnservedTopics
    from wirebroker.replica.transitions import Transitions

# Partitions per call of a thread: about 50 ms on a busy disk.
_BATCH = 50


class ReplicaFactory:
    """Creates new replicas.

    Attributes:
        not_created: Names of topics that lack partitions here because no disk had room.
    """

    __slots__ = (
        "_choice",
        "_clock",
        "_directories",
        "_held",
        "_logs",
        "_on_failure",
        "_transitions",
        "_unserved",
        "not_created",
    )

    def __init__(
        self,
        held: PartitionRegistry,
        logs: TopicLogs,
        *,
        directories: Sequence[DataDirectory],
        choice: DirectoryChoice,
        unserved: UnservedTopics,
        transitions: Transitions,
        clock: Clock,
        on_failure: Callable[[DataDirectory, OSError], None],
    ) -> None:
        """Create a factory; `on_failure` is called when a write to a directory fails."""
        self._held = held
        self._logs = logs
        self._directories = directories
        self._choice = choice
        self._unserved = unserved
        self._transitions = transitions
        self._clock = clock
        self._on_failure = on_failure
        self.not_created: set[str] = set()

    async def add(
        self, topic: TopicImage, new: list[PartitionImage], settings: TopicSettings
    ) -> None:
        """Create partitions in any directory that works."""
        if self._unserved.has(topic, settings):
            self._add_offline(topic, new, settings, self._unserved.directory)
            return
        lost = self._choice.lost(new)
        for partition, directory in lost:
            self._add_offline(topic, [partition], settings, directory)
        if lost:
            lost_indexes = {partition.index for partition, _ in lost}
            new = [partition for partition in new if partition.index not in lost_indexes]
        full: set[DataDirectory] = set()
        while new:
            self._transitions.tell()
            online = [directory for directory in self._directories if directory.is_online]
            if not online:
                self._add_offline(topic, new, settings, self._directories[0])
                return
            usable = [directory for directory in online if directory not in full]
            if not usable:
                self.not_created.add(topic.name)
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
        """Create partitions; return the failed ones, and add their directories to `full`."""
        placed = self._choice.choose(topic.name, new, usable)

        def make() -> list[Log | OSError]:
            return [
                self._make(topic, partition, directory, settings) for partition, directory in placed
            ]

        failed: list[PartitionImage] = []
        logs = await in_thread(Work.TOPICS, make)
        for (partition, directory), log in zip(placed, logs, strict=True):
            if isinstance(log, Log):
                directory.note_new_names()
                self._transitions.enter(self._held.add(log, topic, directory), partition)
            else:
                self._on_failure(directory, log)
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
        try:
            path = directory.files.create_partition_directory(
                topic.name, partition.index, topic.topic_id
            )
            log = self._logs.make(path, topic, partition.index, settings)
            load_log(log, recovery_point=0, clean=True, now_ms=self._clock.now_ms())
        except OSError as error:
            # It will be created again, and a start must not find it twice.
            with contextlib.suppress(OSError):
                directory.files.remove_partition_directory(topic.name, partition.index)
            return without_frames(error)
        return log

    def _add_offline(
        self,
        topic: TopicImage,
        new: list[PartitionImage],
        settings: TopicSettings,
        directory: DataDirectory,
    ) -> None:
        for image in new:
            path = directory.files.partition_path(topic.name, image.index)
            log = self._logs.make(path, topic, image.index, settings)
            partition = self._held.add(log, topic, directory)
            directory.partitions.discard(partition)
            self._transitions.enter(partition, image)
