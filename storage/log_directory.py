"""One directory of `log.dirs`: its lock, its identity, and the partitions in it.

Opening reads only names and each `partition.metadata`, to be fast with 10,000 partitions.

Source: Kafka's LogManager, LocalLog (names), PartitionMetadataFile, CleanShutdownFileHandler.
"""

from __future__ import annotations

import errno
import json
from typing import TYPE_CHECKING, NamedTuple

from wirebroker.codecs.json_text import MAX_INT64, json_integer, parse_json
from wirebroker.codecs.primitives import random_uuid
from wirebroker.storage.checkpoints import (
    HIGH_WATERMARK_CHECKPOINT,
    LOG_START_CHECKPOINT,
    RECOVERY_POINT_CHECKPOINT,
    CheckpointError,
    TopicPartition,
    read_offsets,
    write_offsets,
)
from wirebroker.storage.directory_identity import (
    META_PROPERTIES,
    LogDirectoryError,
    check_is_log_directory,
    identify,
)
from wirebroker.storage.file_names import partition_of
from wirebroker.storage.meta_properties import MetaProperties
from wirebroker.storage.partition_metadata import (
    PARTITION_METADATA,
    content_for,
    topic_id_in,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from wirebroker.storage.descriptors import DirectoryLock, Volume
    from wirebroker.storage.files import Files

CLEAN_SHUTDOWN_MARKER = ".kafka_cleanshutdown"
DELETE_SUFFIX = "-delete"
STRAY_SUFFIX = "-stray"
FUTURE_SUFFIX = "-future"

_MAX_NAME_BYTES = 255


class PartitionDirectory(NamedTuple):
    """A partition found on disk."""

    topic: str
    partition: int
    path: str
    topic_id: bytes | None  # None if partition.metadata is missing or damaged


class LogDirectory:
    """An opened and locked log directory.

    Attributes:
        path: Without a trailing slash.
        previous_broker_epoch: Of the last clean stop; -1 if unknown.
        to_delete: Paths for the owner to remove (`Files.remove_tree`).
        futures: Partitions with an unfinished copy here.
        strays: Paths, which are kept.
        unknown_directories: Names, which are kept.
        problems: Ignored problems, for the broker's log.
        has_failed: Whether it could not be opened; only its path is valid then.
        is_new: Whether `open` created its identity.
    """

    __slots__ = (
        "_files",
        "_lock",
        "cluster_id",
        "directory_id",
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
        "unknown_directories",
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
        self.unknown_directories: list[str] = []
        self.problems: list[str] = []
        self.has_failed = lock is None
        self.is_new = False

    @classmethod
    def failed(cls, path: str, files: Files) -> LogDirectory:
        """Return a placeholder for a directory that could not be opened."""
        return cls(path, files, None, MetaProperties("", -1, bytes(16)))

    @classmethod
    def open(
        cls, path: str, files: Files, *, node_id: int, cluster_id: str | None = None
    ) -> LogDirectory:
        """Create or open a directory: lock, identity, clean-stop marker, partitions.

        In an existing directory, whose ids must match, only missing identity fields are written;
        call `remove_clean_shutdown_marker` before any other change. Without `cluster_id` any is
        accepted, or one is generated.

        Raises:
            LogDirectoryError: It is in use, belongs to another node or cluster, is damaged, or is
                not a log directory but has subdirectories named like partitions.
            OSError: The disk failed.
        """
        path = path.rstrip("/") or "/"
        is_new = not files.exists(path)
        if not is_new:
            check_is_log_directory(path, files)
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
            properties = identify(path, files, node_id=node_id, cluster_id=cluster_id)
            directory = cls(path, files, lock, properties)
            directory.is_new = is_new
            directory._read_clean_shutdown_marker()
            directory._list_partitions()
        except BaseException:
            lock.release()
            raise
        return directory

    def partition_path(self, topic: str, partition: int) -> str:
        """Return the path of a partition's directory."""
        return f"{self.path}/{topic}-{partition}"

    def create_partition_directory(self, topic: str, partition: int, topic_id: bytes) -> str:
        """Create a partition's directory and return its path.

        Nothing is synced, because the metadata log has the topic id as well.
        """
        path = self.partition_path(topic, partition)
        self._files.make_directory(path)
        self.write_topic_id(path, topic_id)
        return path

    def future_path(self, topic: str, partition: int) -> str:
        """Return a new path for a log copy in this directory."""
        return f"{self.path}/{_suffixed(topic, partition, FUTURE_SUFFIX)}"

    def create_future_directory(self, path: str, topic_id: bytes) -> None:
        """Create the directory of a log copy. Blocks.

        Its name is synced, because the log will briefly have no other.
        """
        self._files.make_directory(path)
        self.write_topic_id(path, topic_id)
        self._files.sync_directory(self.path)

    def use_future_directory(self, path: str, topic: str, partition: int) -> str:
        """Rename a complete copy to the partition's path."""
        new_path = self.partition_path(topic, partition)
        self._files.rename(path, new_path)
        return new_path

    def keep_partition_directory(self, path: str, topic: str, partition: int) -> None:
        """Undo a deletion: rename the directory back."""
        self._files.rename(path, self.partition_path(topic, partition))

    def write_topic_id(self, partition_path: str, topic_id: bytes) -> None:
        """Write a partition's `partition.metadata`."""
        path = f"{partition_path}/{PARTITION_METADATA}"
        self._files.write_file(path, content_for(topic_id), sync=False)

    def delete_partition_directory(self, topic: str, partition: int) -> str:
        """Rename a partition's directory; the owner removes it after file.delete.delay.ms."""
        return self._rename_aside(topic, partition, DELETE_SUFFIX)

    def remove_partition_directory(self, topic: str, partition: int) -> None:
        """Remove a partition's directory tree, if it exists."""
        self._files.remove_tree(self.partition_path(topic, partition))

    def stray_partition_directory(self, topic: str, partition: int) -> str:
        """Rename the directory of a partition placed elsewhere."""
        return self._rename_aside(topic, partition, STRAY_SUFFIX)

    def stray_future_directory(self, path: str, topic: str, partition: int) -> str:
        """Rename an abandoned copy."""
        new_path = f"{self.path}/{_suffixed(topic, partition, STRAY_SUFFIX)}"
        self._files.rename(path, new_path)
        return new_path

    def read_recovery_points(self) -> dict[TopicPartition, int]:
        """Return the recovery points; empty if damaged, like the next two."""
        return self._read_checkpoint(RECOVERY_POINT_CHECKPOINT)

    def read_log_start_offsets(self) -> dict[TopicPartition, int]:
        """Return the log start offsets."""
        return self._read_checkpoint(LOG_START_CHECKPOINT)

    def read_high_watermarks(self) -> dict[TopicPartition, int]:
        """Return the high watermarks."""
        return self._read_checkpoint(HIGH_WATERMARK_CHECKPOINT)

    def write_recovery_points(self, offsets: Mapping[TopicPartition, int]) -> None:
        """Replace the recovery points. Blocks, like the next two methods."""
        write_offsets(self._files, f"{self.path}/{RECOVERY_POINT_CHECKPOINT}", offsets)

    def write_log_start_offsets(self, offsets: Mapping[TopicPartition, int]) -> None:
        """Replace the log start offsets; those at 0 may be omitted."""
        write_offsets(self._files, f"{self.path}/{LOG_START_CHECKPOINT}", offsets)

    def write_high_watermarks(self, offsets: Mapping[TopicPartition, int]) -> None:
        """Replace the high watermarks."""
        write_offsets(self._files, f"{self.path}/{HIGH_WATERMARK_CHECKPOINT}", offsets)

    def mark_clean_shutdown(self, *, broker_epoch: int) -> None:
        """Write the clean-stop marker, before `close`."""
        content = json.dumps(
            {"version": 0, "brokerEpoch": broker_epoch}, separators=(",", ":")
        ).encode()
        self._files.write_file(f"{self.path}/{CLEAN_SHUTDOWN_MARKER}", content)

    def sync_names(self) -> None:
        """Sync the names of the partitions' directories. Blocks."""
        self._files.sync_directory(self.path)

    @property
    def closing_threads(self) -> int:
        """See Files."""
        return self._files.closing_threads

    def open_volume(self) -> Volume | None:
        """See Files.open_volume."""
        return self._files.open_volume(self.path)

    def remove_clean_shutdown_marker(self) -> None:
        """Start to use the directory: a crash now is an unclean stop."""
        if self.was_clean:
            self._files.unlink(f"{self.path}/{CLEAN_SHUTDOWN_MARKER}")
        # If a power loss brought the marker back, the next start would skip recovery. Sync always,
        # because a broker killed here may have removed it unsynced.
        self._files.sync_directory(self.path)

    def check_in_place(self) -> None:
        """Raise FileNotFoundError if the directory is no longer at its path. Blocks."""
        if self._lock is not None and not self._lock.is_in_place():
            raise FileNotFoundError(
                errno.ENOENT,
                "it was moved, deleted or replaced while the broker uses it: stop the broker, put"
                " the directory back and start again",
                self.path,
            )

    def free_bytes(self) -> int:
        """See Files.free_bytes."""
        return self._files.free_bytes(self.path)

    def total_bytes(self) -> int:
        """See Files.total_bytes."""
        return self._files.total_bytes(self.path)

    def forget_identity(self) -> None:
        """Remove a new directory's identity, but not its logs."""
        assert self.is_new, "the directory is not new"
        self._files.unlink(f"{self.path}/{META_PROPERTIES}")
        self._files.sync_directory(self.path)

    def close(self) -> None:
        """Release the lock."""
        if self._lock is not None:
            self._lock.release()

    def _read_checkpoint(self, name: str) -> dict[TopicPartition, int]:
        try:
            return read_offsets(self._files, f"{self.path}/{name}")
        except CheckpointError as error:
            self.problems.append(f"{error}; treating it as empty")
            return {}

    def _read_clean_shutdown_marker(self) -> None:
        path = f"{self.path}/{CLEAN_SHUTDOWN_MARKER}"
        try:
            content = self._files.read_file(path)
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
            parsed = partition_of(name)
            if parsed is None:
                self.unknown_directories.append(name)
            elif parsed.aside == "delete":
                self.to_delete.append(path)
            elif parsed.aside == "stray":
                self.strays.append(path)
            else:
                topic_id = self._read_topic_id(path)
                partition = PartitionDirectory(parsed.topic, parsed.partition, path, topic_id)
                (self.futures if parsed.aside else self.partitions).append(partition)

    def _read_topic_id(self, partition_path: str) -> bytes | None:
        path = f"{partition_path}/{PARTITION_METADATA}"
        try:
            return topic_id_in(self._files.read_file(path))
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
    """Return whether a topic's full name fits into a future path."""
    return len(topic) + len(_ending(partition, FUTURE_SUFFIX)) <= _MAX_NAME_BYTES


def _suffixed(topic: str, partition: int, suffix: str) -> str:
    ending = _ending(partition, suffix)
    return f"{topic[: _MAX_NAME_BYTES - len(ending)]}{ending}"


def _ending(partition: int, suffix: str) -> str:
    return f"-{partition}.{random_uuid().hex()}{suffix}"
