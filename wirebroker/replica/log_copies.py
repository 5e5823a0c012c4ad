"""Copies that interrupted moves between log directories have left.

    a copy and its log               delete the copy and restart the move (replica_moves.py)
    a copy without its log
      where the metadata places it   it was complete: it becomes the log
      elsewhere                      its log was lost and it may be incomplete: rename it as stray
                                     and restart the move; keep it if the log may be in a failed
                                     directory
    a log in two directories         after a kill of Kafka or a power failure: keep the one that
                                     the metadata names

A copy is kept until its log is loaded: if the log's disk fails first, a copy that was promised to
the controller becomes the log.

Source: Kafka's LogManager.recoverAbandonedFutureLogs.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from wirebroker.codecs.errors import without_frames
from wirebroker.coordinator.controller.features.feature_control import has_directory_assignments
from wirebroker.coordinator.controller.image.cluster_image import directory_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from wirebroker.coordinator.controller.image.cluster_image import ClusterImage, PartitionImage
    from wirebroker.storage.log_directory import LogDirectory, PartitionDirectory

logger = logging.getLogger(__name__)

_Key = tuple[str, int]


class LogCopies:
    """The copies that were found, and what to do with each.

    Attributes:
        unfinished: Topic and index of each unfinished move, with its target directory.
        promoted: Paths of copies that became logs; not closed cleanly.
        failed: Directories that have failed meanwhile; loading adds to it.
    """

    __slots__ = (
        "_copies_with_log",
        "_directories_by_partition",
        "_image",
        "_is_whole",
        "_node_id",
        "failed",
        "promoted",
        "unfinished",
    )

    def __init__(
        self,
        directories: Sequence[LogDirectory],
        image: ClusterImage,
        *,
        node_id: int,
        is_whole: bool,
    ) -> None:
        self._image = image
        self._node_id = node_id
        self._is_whole = is_whole
        self._directories_by_partition: dict[_Key, list[LogDirectory]] = {}
        for directory in directories:
            for partition_directory in directory.partitions:
                self._directories_by_partition.setdefault(
                    (partition_directory.topic, partition_directory.partition), []
                ).append(directory)
        self._copies_with_log: list[tuple[PartitionDirectory, LogDirectory]] = []
        self.unfinished: list[tuple[_Key, LogDirectory]] = []
        self.promoted: set[str] = set()
        self.failed: dict[LogDirectory, OSError] = {}

    def check(self, directory: LogDirectory) -> None:
        """Check that a directory has not failed.

        Raises:
            OSError: Its disk has failed.
        """
        if directory in self.failed:
            raise self.failed[directory]

    def choose(self) -> None:
        """Rename duplicate logs as stray, except those in the directory that the metadata names."""
        for key, copy_directories in self._directories_by_partition.items():
            partition_image = self._assigned_partition(key)
            assigned_id = (
                None if partition_image is None else directory_of(partition_image, self._node_id)
            )
            if len(copy_directories) > 1 and assigned_id in [
                directory.directory_id for directory in copy_directories
            ]:
                for directory in copy_directories:  # otherwise loading refuses both
                    if directory.directory_id != assigned_id and directory not in self.failed:
                        self._set_aside(key, directory)

    def sort_out(self, copy: PartitionDirectory, directory: LogDirectory) -> None:
        """Decide on a copy, unless its log exists."""
        if (copy.topic, copy.partition) in self._directories_by_partition:
            self._copies_with_log.append((copy, directory))
        elif directory not in self.failed:
            self._sort_out_alone(copy, directory)

    def use_orphan(self) -> tuple[LogDirectory, PartitionDirectory] | None:
        """Promote one copy whose log's disk failed, if the controller was promised it.

        Return its directory and the new log, or None if there is none left.
        """
        for entry in tuple(self._copies_with_log):
            copy, directory = entry
            if directory in self.failed or self._has_log(copy):
                continue
            self._copies_with_log.remove(entry)
            log = self._sort_out_alone(copy, directory)
            if log is not None:
                return directory, log
        return None

    def drop_others(self) -> None:
        """Delete the copies whose logs were loaded and restart their moves."""
        for copy, directory in self._copies_with_log:
            if directory not in self.failed:
                directory.to_delete.append(copy.path)
                self.unfinished.append(((copy.topic, copy.partition), directory))

    def _has_log(self, copy: PartitionDirectory) -> bool:
        log_directories = self._directories_by_partition[copy.topic, copy.partition]
        return any(log_directory not in self.failed for log_directory in log_directories)

    def _sort_out_alone(
        self, copy: PartitionDirectory, directory: LogDirectory
    ) -> PartitionDirectory | None:
        key = (copy.topic, copy.partition)
        partition_image = self._assigned_partition(key)
        try:
            if partition_image is None:
                directory.strays.append(copy.path)
            elif self._is_promised(partition_image, directory):
                self._directories_by_partition[key] = [directory]
                log = _promote(copy, directory)
                self.promoted.add(log.path)
                return log
            elif self._sees_all:
                _put_aside(copy, directory)
                self.unfinished.append((key, directory))
        except OSError as error:
            self.failed[directory] = without_frames(error)
        return None

    @property
    def _sees_all(self) -> bool:
        return self._is_whole and not self.failed

    def _is_promised(self, partition_image: PartitionImage, directory: LogDirectory) -> bool:
        """Return whether the metadata places the log in this directory: then the copy is whole."""
        if not has_directory_assignments(self._image.features):
            # The controller knows of no move, but the log may be in a failed directory.
            return self._sees_all
        return directory_of(partition_image, self._node_id) == directory.directory_id

    def _assigned_partition(self, key: _Key) -> PartitionImage | None:
        partition = self._image.partition(*key)
        return partition if partition is not None and self._node_id in partition.replicas else None

    def _set_aside(self, key: _Key, directory: LogDirectory) -> None:
        try:
            path = directory.stray_partition_directory(*key)
        except OSError as error:
            self.failed[directory] = without_frames(error)
            return
        directory.partitions = [
            partition_directory
            for partition_directory in directory.partitions
            if (partition_directory.topic, partition_directory.partition) != key
        ]
        logger.warning("%s-%d exists twice: renamed this copy to %s", *key, path)


def sort_out(
    directories: Iterable[LogDirectory], image: ClusterImage, *, node_id: int, is_whole: bool
) -> LogCopies:
    """Leave in each directory's `partitions` the logs to open.

    Copies with logs are decided later, by use_orphan and drop_others. `is_whole` means that
    `directories` are all of the node's.
    """
    directories = tuple(directories)
    copies = LogCopies(directories, image, node_id=node_id, is_whole=is_whole)
    copies.choose()
    for directory in directories:
        for copy in directory.futures:
            copies.sort_out(copy, directory)
    while copies.use_orphan() is not None:
        pass
    return copies


def _promote(copy: PartitionDirectory, directory: LogDirectory) -> PartitionDirectory:
    path = directory.use_future_directory(copy.path, copy.topic, copy.partition)
    log = copy._replace(path=path)
    directory.partitions.append(log)
    logger.info("moved %s-%d to %s", copy.topic, copy.partition, path)
    return log


def _put_aside(copy: PartitionDirectory, directory: LogDirectory) -> None:
    path = directory.stray_future_directory(copy.path, copy.topic, copy.partition)
    logger.warning(
        "the log of %s-%d disappeared during a move: renamed its partial copy to %s",
        copy.topic,
        copy.partition,
        path,
    )
