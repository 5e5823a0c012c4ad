"""Up to where the logs of one directory are compacted (`cleaner-offset-checkpoint`).

A deleted topic leaves the file at the next write. If a crash comes first and the name is used
again, the new log's beginning counts as clean: it is compacted with what follows, only later.

Source: Kafka's LogCleanerManager.updateCheckpoints.
"""

from __future__ import annotations

import logging
import threading
from typing import TYPE_CHECKING

from wirebroker.storage.checkpoints import (
    CLEANER_CHECKPOINT,
    CheckpointError,
    read_offsets,
    write_offsets,
)

if TYPE_CHECKING:
    from wirebroker.disks.data_directory import DataDirectory, StoredPartition
    from wirebroker.storage.files import Files

logger = logging.getLogger(__name__)


class CleanerCheckpoint:
    """The first dirty offset of each log that was ever compacted."""

    __slots__ = ("_directory", "_files", "_has_foreign", "_offsets", "_path", "_write_lock")

    def __init__(self, directory: DataDirectory, files: Files) -> None:
        """Read the file; one that is damaged is none: everything is compacted once more.

        Raises:
            OSError: The disk failed.
        """
        self._directory = directory
        self._files = files
        self._path = f"{directory.path}/{CLEANER_CHECKPOINT}"
        self._write_lock = threading.Lock()
        try:
            rows = read_offsets(files, self._path)
        except CheckpointError as error:
            logger.warning("%s; every log will be compacted from its start", error)
            rows = {}
        self._offsets: dict[StoredPartition, int] = {}
        for partition in directory.partitions:
            offset = rows.get((partition.topic, partition.index))
            if offset is not None:
                self._offsets[partition] = offset
        self._has_foreign = len(rows) > len(self._offsets)  # deleted, with a crash behind it

    def get(self, partition: StoredPartition) -> int | None:
        """Return a log's first dirty offset; None if it was never compacted."""
        return self._offsets.get(partition)

    def set(self, partition: StoredPartition, offset: int) -> None:
        """Note a log's first dirty offset; `write` keeps it."""
        self._offsets[partition] = offset

    def forget_deleted(self) -> bool:
        """Take out partitions that are gone; return whether `write` is to say so.

        A topic of the same name would take their offsets for its own after a restart.
        """
        gone = [partition for partition in self._offsets if partition.is_retired]
        for partition in gone:
            del self._offsets[partition]
        has_changed = bool(gone) or self._has_foreign
        self._has_foreign = False
        return has_changed

    def write(self) -> None:
        """Write the file. Blocks for the disk.

        Raises:
            OSError: The disk failed.
        """
        with self._write_lock:
            rows = {
                (partition.topic, partition.index): offset
                for partition, offset in list(self._offsets.items())
                if not partition.is_retired
            }
            if self._directory.is_online:
                write_offsets(self._files, self._path, rows)
