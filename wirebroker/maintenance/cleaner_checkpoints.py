"""The compacted part of each log in one directory (`cleaner-offset-checkpoint`).

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
        """Read the file; if it is damaged, all logs will be compacted again.

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
        self._has_foreign = len(rows) > len(self._offsets)  # of topics deleted before a crash

    def get(self, partition: StoredPartition) -> int | None:
        """Return a log's first dirty offset."""
        return self._offsets.get(partition)

    def set(self, partition: StoredPartition, offset: int) -> None:
        """Set a log's first dirty offset, for the next `write`."""
        self._offsets[partition] = offset

    def forget_deleted(self) -> bool:
        """Remove deleted partitions; return whether `write` is needed.

        If a crash prevents that, the beginning of a new log of the same name is compacted later.
        """
        deleted = [partition for partition in self._offsets if partition.is_retired]
        for partition in deleted:
            del self._offsets[partition]
        has_changed = bool(deleted) or self._has_foreign
        self._has_foreign = False
        return has_changed

    def write(self) -> None:
        """Write the file. Blocks.

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
