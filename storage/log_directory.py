"""One directory of `log.dirs`: its lock, its identity, and the partitions in it.

    .lock  meta.properties  .kafka_cleanshutdown  *-checkpoint     files of the directory
    <topic>-<partition>/                                           a partition's log
    <topic>-<partition>.<32 hex digits>-delete/                    to be removed, as soon as may be
    <topic>-<partition>.<32 hex digits>-stray/                     not ours by the metadata; kept
    <topic>-<partition>.<32 hex digits>-future/                    a move that was not finished

Opening reads names and each `partition.metadata`, nothing else: 10,000 partitions in half a second.
The directory with the metadata log (`__cluster_metadata-0`) is a partition like the others here.

Source: Kafka's LogManager, LocalLog (names), PartitionMetadataFile, CleanShutdownFileHandler.
"""

from __future__ import annotations

import errno
import json
from typing import TYPE_CHECKING, NamedTuple

from wirebroker.base.wording import few_of
from wirebroker.codecs.json_text import MAX_INT64, json_integer, parse_json
from wirebroker.codecs.primitives import random_uuid, uuid_text
from wirebroker.storage.checkpoints import (
    HIGH_WATERMARK_CHECKPOINT,
    LOG_START_CHECKPOINT,
    RECOVERY_POINT_CHECKPOINT,
    CheckpointError,
    TopicPartition,
    read_offsets,
    write_offsets,
)
from wirebroker.storage.file_names import partition_of
from wirebroker.storage.meta_properties import (
    MetaProperties,
    format_meta_properties,
    parse_meta_properties,
)
from wirebroker.storage.partition_metadata import (
    PARTITION_METADATA,
    content_for,
    topic_id_in,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from wirebroker.storage.descriptors import DirectoryLock, Volume
    from wirebroker.storage.files import Files

META_PROPERTIES = "meta.properties"
CLEAN_SHUTDOWN_MARKER = ".kafka_cleanshutdown"
DELETE_SUFFIX = "-delete"
STRAY_SUFFIX = "-stray"
FUTURE_SUFFIX = "-future"

# What a file system allows for a name; longer ones lose letters of their topic, as Kafka's do.
_MAX_NAME_BYTES = 255
_MOST_NAMES_SHOWN = 3


class LogDirectoryError(Exception):
    """A log directory that cannot be used: a sentence about what is wrong and how to mend it."""


class DamagedDirectoryError(LogDirectoryError):
    """Nobody can say whose directory it is; a broker of several goes on without it."""


class PartitionDirectory(NamedTuple):
    """A partition found on disk."""

    topic: str
    partition: int
    path: str
    topic_id: bytes | None  # None if partition.metadata is missing or damaged


class LogDirectory:
    """An opened and locked log directory.

    Attributes:
        path: Without a final slash.
        directory_id: Its random uuid (KIP-858).
        cluster_id: The cluster's, 22 characters.
        node_id: The broker's.
        was_clean: Whether the last user stopped cleanly, so that logs need no recovery.
        previous_broker_epoch: The epoch that the last user noted when it stopped cleanly; -1 if
            unknown.
        partitions: What was found when it was opened.
        to_delete: Paths that the owner shall remove (`Files.remove_tree`).
        futures: Partitions of which a copy was made here when the last user stopped.
        strays: Paths of stray partitions, left as they are.
        foreign: Names of directories that are none of Kafka's, left as they are.
        problems: Sentences for the log about what had to be ignored.
        has_failed: Whether it could not be opened: it has a path and nothing else.
        is_new: Whether `open` has given it its identity.
    """

    __slots__ = (
        "_files",
        "_lock",
        "cluster_id",
        "directory_id",
        "foreign",
        "futures",
        "has_failed",
        "is_new",
        "node_id",
        "partitions",
        "path",
        "previous_broker_epoch",
        "problems",
        "strays",
        "to_delete",
        "was_clean",
    )

    def __init__(
        self, path: str, files: Files, lock: DirectoryLock | None, properties: MetaProperties
    ) -> None:
        self.path = path
        self._files = files
        self._lock = lock
        self.cluster_id, self.node_id, self.directory_id = properties
        self.was_clean = False
        self.previous_broker_epoch = -1
        self.partitions: list[PartitionDirectory] = []
        self.to_delete: list[str] = []
        self.strays: list[str] = []
        self.futures: list[PartitionDirectory] = []
        self.foreign: list[str] = []
        self.problems: list[str] = []
        self.has_failed = lock is None
        self.is_new = False

    @classmethod
    def failed(cls, path: str, files: Files) -> LogDirectory:
        """Return what stands for a directory that could not be opened."""
        return cls(path, files, None, MetaProperties("", -1, bytes(16)))

    @classmethod
    def open(
        cls, path: str, files: Files, *, node_id: int, cluster_id: str | None = None
    ) -> LogDirectory:
        """Create or take over a directory: lock, identity, clean-stop marker, partitions.

        One that exists is only read; `remove_clean_shutdown_marker` comes before any change.

        Args:
            path: The directory; it and its parents are created if need be.
            files: The disk.
            node_id: Must be the one in an existing directory.
            cluster_id: Must be the one in an existing directory; None takes whichever is there,
                or draws a new one.

        Raises:
            LogDirectoryError: It is in use, belongs to another node or cluster, or is damaged; or
                it is no data directory, but has folders that would be taken for partitions.
            OSError: The disk or its permissions.
        """
        path = path.rstrip("/") or "/"
        is_new = not files.exists(path)
        if not is_new:
            _check_is_ours(path, files)
        files.make_directory(path)
        if is_new:
            files.sync_directory(path.rpartition("/")[0] or "/")
        try:
            lock = files.lock_directory(path)
        except BlockingIOError:
            raise LogDirectoryError(
                f"the data directory {path} is in use by another broker; stop that one, or choose "
                "another directory"
            ) from None
        try:
            is_new = not files.exists(f"{path}/{META_PROPERTIES}")
            properties = _identify(path, files, node_id=node_id, cluster_id=cluster_id)
            directory = cls(path, files, lock, properties)
            directory.is_new = is_new
            directory._read_clean_shutdown_marker()
            directory._list_partitions()
        except BaseException:
            lock.release()
            raise
        return directory

    def partition_path(self, topic: str, partition: int) -> str:
        """Return where a partition's log lies."""
        return f"{self.path}/{topic}-{partition}"

    def create_partition_directory(self, topic: str, partition: int, topic_id: bytes) -> str:
        """Create a partition's directory with its `partition.metadata`; return its path.

        Nothing is waited for: the metadata log knows the topic id, should the file get lost.
        """
        path = self.partition_path(topic, partition)
        self._files.make_directory(path)
        self.write_topic_id(path, topic_id)
        return path

    def future_path(self, topic: str, partition: int) -> str:
        """Return a new path for the copy of a log that is to lie here."""
        return f"{self.path}/{_suffixed(topic, partition, FUTURE_SUFFIX)}"

    def create_future_directory(self, path: str, topic_id: bytes) -> None:
        """Create the directory at a future path, with its `partition.metadata`.

        Its name is on the disk: there is a moment when the log has no other. Blocks.
        """
        self._files.make_directory(path)
        self.write_topic_id(path, topic_id)
        self._files.sync_directory(self.path)

    def use_future_directory(self, path: str, topic: str, partition: int) -> str:
        """Rename a copy that is whole to the partition's directory; return its path."""
        new_path = self.partition_path(topic, partition)
        self._files.rename(path, new_path)
        return new_path

    def keep_partition_directory(self, path: str, topic: str, partition: int) -> None:
        """Take a deletion back: give a directory that was set aside its name."""
        self._files.rename(path, self.partition_path(topic, partition))

    def write_topic_id(self, partition_path: str, topic_id: bytes) -> None:
        """Write a partition's `partition.metadata`."""
        path = f"{partition_path}/{PARTITION_METADATA}"
        self._files.write_whole(path, content_for(topic_id), sync=False)

    def delete_partition_directory(self, topic: str, partition: int) -> str:
        """Rename a partition's directory so that it is gone by name; return the new path.

        The owner closes or relocates open files and removes the tree after file.delete.delay.ms.
        """
        return self._rename_aside(topic, partition, DELETE_SUFFIX)

    def remove_partition_directory(self, topic: str, partition: int) -> None:
        """Remove a partition's directory and all in it, if it is there."""
        self._files.remove_tree(self.partition_path(topic, partition))

    def stray_partition_directory(self, topic: str, partition: int) -> str:
        """Rename the directory of a partition that metadata places elsewhere; return its path."""
        return self._rename_aside(topic, partition, STRAY_SUFFIX)

    def stray_future_directory(self, path: str, topic: str, partition: int) -> str:
        """Rename a copy that nobody goes on with; return its path."""
        new_path = f"{self.path}/{_suffixed(topic, partition, STRAY_SUFFIX)}"
        self._files.rename(path, new_path)
        return new_path

    def read_recovery_points(self) -> dict[TopicPartition, int]:
        """Return up to where logs were known to be on the disk; nothing if the file is damaged."""
        return self._read_checkpoint(RECOVERY_POINT_CHECKPOINT)

    def read_log_start_offsets(self) -> dict[TopicPartition, int]:
        """Return log start offsets; nothing if the file is damaged."""
        return self._read_checkpoint(LOG_START_CHECKPOINT)

    def read_high_watermarks(self) -> dict[TopicPartition, int]:
        """Return the last high watermarks written; nothing if the file is damaged."""
        return self._read_checkpoint(HIGH_WATERMARK_CHECKPOINT)

    def write_recovery_points(self, offsets: Mapping[TopicPartition, int]) -> None:
        """Replace the recovery points. Blocks for the disk, as the next two do."""
        write_offsets(self._files, f"{self.path}/{RECOVERY_POINT_CHECKPOINT}", offsets)

    def write_log_start_offsets(self, offsets: Mapping[TopicPartition, int]) -> None:
        """Replace the log start offsets; those at 0 are not needed."""
        write_offsets(self._files, f"{self.path}/{LOG_START_CHECKPOINT}", offsets)

    def write_high_watermarks(self, offsets: Mapping[TopicPartition, int]) -> None:
        """Replace the high watermarks."""
        write_offsets(self._files, f"{self.path}/{HIGH_WATERMARK_CHECKPOINT}", offsets)

    def mark_clean_shutdown(self, *, broker_epoch: int) -> None:
        """Say that logs, indexes and checkpoints are complete: the last act before `close`."""
        content = json.dumps(
            {"version": 0, "brokerEpoch": broker_epoch}, separators=(",", ":")
        ).encode()
        self._files.write_whole(f"{self.path}/{CLEAN_SHUTDOWN_MARKER}", content)

    def sync_names(self) -> None:
        """Wait until the names of the partitions' directories are on the disk. Blocks."""
        self._files.sync_directory(self.path)

    def open_volume(self) -> Volume | None:
        """Return what can sync the whole file system that it lies on, if that tells all errors."""
        return self._files.open_volume(self.path)

    def remove_clean_shutdown_marker(self) -> None:
        """Begin to use the directory: a crash from here on is an unclean stop."""
        if self.was_clean:
            self._files.unlink(f"{self.path}/{CLEAN_SHUTDOWN_MARKER}")
        # A marker that a power loss brought back would have the next start check nothing. A broker
        # that was killed right here has left that to this one.
        self._files.sync_directory(self.path)

    def check_in_place(self) -> None:
        """Check that the directory still has its path. Blocks for the disk.

        Raises:
            FileNotFoundError: It was moved, deleted, replaced or unmounted while it is in use.
            OSError: The disk does not tell.
        """
        if self._lock is not None and not self._lock.is_in_place():
            raise FileNotFoundError(
                errno.ENOENT,
                "it was moved, deleted or replaced while the broker uses it: stop the broker, put"
                " the directory back and start again",
                self.path,
            )

    def free_bytes(self) -> int:
        """Return how many bytes may still be written."""
        return self._files.free_bytes(self.path)

    def total_bytes(self) -> int:
        """Return how large the volume is that it lies on."""
        return self._files.total_bytes(self.path)

    def forget_identity(self) -> None:
        """Have a new directory belong to nobody, as before; what its logs are is up to the owner.

        Raises:
            OSError: The disk.
        """
        assert self.is_new, "it was somebody's before"
        self._files.unlink(f"{self.path}/{META_PROPERTIES}")
        self._files.sync_directory(self.path)

    def close(self) -> None:
        """Free the lock."""
        if self._lock is not None:
            self._lock.release()

    def _read_checkpoint(self, name: str) -> dict[TopicPartition, int]:
        try:
            return read_offsets(self._files, f"{self.path}/{name}")
        except CheckpointError as error:
            self.problems.append(f"{error}; going on as if it were empty")
            return {}

    def _read_clean_shutdown_marker(self) -> None:
        path = f"{self.path}/{CLEAN_SHUTDOWN_MARKER}"
        try:
            content = self._files.read_whole(path)
        except FileNotFoundError:
            return
        self.was_clean = True
        try:  # before Kafka 3.7 the marker was empty
            epoch = parse_json(content)["brokerEpoch"]
            self.previous_broker_epoch = json_integer(epoch, -1, MAX_INT64)
        except (ValueError, TypeError, KeyError):
            self.previous_broker_epoch = -1

    def _list_partitions(self) -> None:
        for name in self._files.list_subdirectories(self.path):
            path = f"{self.path}/{name}"
            found = partition_of(name)
            if found is None:
                self.foreign.append(name)
            elif found.aside == "delete":
                self.to_delete.append(path)
            elif found.aside == "stray":
                self.strays.append(path)
            else:
                topic_id = self._read_topic_id(path)
                partition = PartitionDirectory(found.topic, found.partition, path, topic_id)
                (self.futures if found.aside else self.partitions).append(partition)

    def _read_topic_id(self, partition_path: str) -> bytes | None:
        path = f"{partition_path}/{PARTITION_METADATA}"
        try:
            return topic_id_in(self._files.read_whole(path))
        except FileNotFoundError:
            return None
        except ValueError as error:
            self.problems.append(f"{path} is damaged: {error}")
            return None

    def _rename_aside(self, topic: str, partition: int, suffix: str) -> str:
        new_path = f"{self.path}/{_suffixed(topic, partition, suffix)}"
        self._files.rename(self.partition_path(topic, partition), new_path)
        return new_path


def has_future_path(topic: str, partition: int) -> bool:
    """Return whether the whole name of a topic fits into a future path."""
    return len(topic) + len(_ending(partition, FUTURE_SUFFIX)) <= _MAX_NAME_BYTES


def _suffixed(topic: str, partition: int, suffix: str) -> str:
    """Return a name of a partition's directory that is none that is served."""
    ending = _ending(partition, suffix)
    return f"{topic[: _MAX_NAME_BYTES - len(ending)]}{ending}"


def _ending(partition: int, suffix: str) -> str:
    return f"-{partition}.{random_uuid().hex()}{suffix}"


def _check_is_ours(path: str, files: Files) -> None:
    """Refuse a directory whose folders a start would rename or remove, not being partitions.

    `meta.properties` is on the disk before the first partition is made, here and in Apache Kafka.
    """
    if files.exists(f"{path}/{META_PROPERTIES}"):
        return
    taken = [
        name for name in sorted(files.list_subdirectories(path)) if partition_of(name) is not None
    ]
    if taken:
        raise LogDirectoryError(
            f"{path} has no {META_PROPERTIES} but folders named like partitions "
            f"({few_of(taken, _MOST_NAMES_SHOWN)}), and was left as it is; choose another data "
            f"directory, or put its {META_PROPERTIES} back"
        )


def _identify(path: str, files: Files, *, node_id: int, cluster_id: str | None) -> MetaProperties:
    """Read `meta.properties` and compare it, or write a new one."""
    file = f"{path}/{META_PROPERTIES}"
    try:
        properties = parse_meta_properties(files.read_whole(file).decode())
    except FileNotFoundError as error:
        if files.exists(file):
            raise DamagedDirectoryError(
                f"{file} is no regular file; restore it, or choose another data directory"
            ) from error
        properties = MetaProperties(cluster_id or uuid_text(random_uuid()), node_id, random_uuid())
        files.write_whole(file, format_meta_properties(properties).encode())
        return properties
    except ValueError as error:
        raise DamagedDirectoryError(
            f"{file} is damaged ({error}); restore it, or choose another data directory"
        ) from None
    if properties.node_id != node_id:
        raise LogDirectoryError(
            f"the data directory {path} belongs to node {properties.node_id}, this is node "
            f"{node_id}; set node.id={properties.node_id}, or choose another directory"
        )
    if cluster_id is not None and properties.cluster_id != cluster_id:
        raise LogDirectoryError(
            f"the data directory {path} belongs to cluster {properties.cluster_id}, not to "
            f"{cluster_id}; choose another directory"
        )
    if properties.directory_id == bytes(16):
        properties = properties._replace(directory_id=random_uuid())
        files.write_whole(file, format_meta_properties(properties).encode())
    return properties
