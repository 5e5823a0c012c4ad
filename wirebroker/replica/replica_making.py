"""Makes the replicas that are placed on this node and not here yet.

Directories are made by threads, many partitions at a time. A partition whose disk fails is made in
another directory; with none left it is known all the same, and answers KAFKA_STORAGE_ERROR. If all
that are left are full, it waits for room.

Source: Kafka's LogManager.getOrCreateLog.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from wirebroker.base.threads import Work, in_thread
from wirebroker.codecs.errors import without_frames
from wirebroker.storage.log.log import Log

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from wirebroker.base.clock import Clock
    from wirebroker.config import TopicSettings
    from wirebroker.coordinator.controller.image.cluster_image import PartitionImage, TopicImage
    from wirebroker.disks.data_directory import DataDirectory
    from wirebroker.disks.directory_choice import DirectoryChoice
    from wirebroker.replica.held_partitions import HeldPartitions
    from wirebroker.replica.topic_logs import TopicLogs
    from wirebroker.replica.transitions import Transitions
    from wirebroker.replica.unserved_topics import UnservedTopics

# Partitions that a thread creates at a time: about 50 ms of a disk that is busy.
_BATCH = 50


class ReplicaMaking:
    """Where new replicas come from.

    Attributes:
        unmade: Names of topics that lack partitions here because no disk had room for them.
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
        "unmade",
    )

    def __init__(
        self,
        held: HeldPartitions,
        logs: TopicLogs,
        *,
        directories: Sequence[DataDirectory],
        choice: DirectoryChoice,
        unserved: UnservedTopics,
        transitions: Transitions,
        clock: Clock,
        on_failure: Callable[[DataDirectory, OSError], None],
    ) -> None:
        """Take what replicas are made of.

        Args:
            held: What is made is added to it.
            logs: Makes the logs.
            directories: Those of the node, at least one, online or not.
            choice: Says which of them.
            unserved: Topics of which nothing is made.
            transitions: Gives replicas their roles.
            clock: Tells new logs the time.
            on_failure: Told that something could not be written in a directory.
        """
        self._held = held
        self._logs = logs
        self._directories = directories
        self._choice = choice
        self._unserved = unserved
        self._transitions = transitions
        self._clock = clock
        self._on_failure = on_failure
        self.unmade: set[str] = set()

    async def add(
        self, topic: TopicImage, new: list[PartitionImage], settings: TopicSettings
    ) -> None:
        """Create partitions wherever there is a disk that takes them."""
        if self._unserved.has(topic, settings):
            self._add_offline(topic, new, settings, self._unserved.directory)
            return
        lost = self._choice.lost(new)
        for partition, directory in lost:
            self._add_offline(topic, [partition], settings, directory)
        if lost:
            gone = {partition.index for partition, _ in lost}
            new = [each for each in new if each.index not in gone]
        full: set[DataDirectory] = set()
        while new:
            self._transitions.tell()
            online = [directory for directory in self._directories if directory.is_online]
            if not online:
                self._add_offline(topic, new, settings, self._directories[0])
                return
            usable = [directory for directory in online if directory not in full]
            if not usable:
                self.unmade.add(topic.name)
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
        placed = self._choice.choose(topic.name, new, usable)

        def make() -> list[Log | OSError]:
            return [self._make(topic, each, where, settings) for each, where in placed]

        failed: list[PartitionImage] = []
        made = await in_thread(Work.TOPICS, make)
        for (partition, directory), log in zip(placed, made, strict=True):
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
            return without_frames(error)
        return log

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
            partition = self._held.add(log, topic, directory)
            directory.partitions.discard(partition)
            self._transitions.enter(partition, image)
