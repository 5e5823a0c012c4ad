"""What must reach the disk for a log's recovery point to advance; synced in a thread."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from wirebroker.storage.leader_epochs import FILE_NAME as LEADER_EPOCHS_NAME
from wirebroker.storage.log_directory import PARTITION_METADATA

if TYPE_CHECKING:
    from wirebroker.storage.files import Files
    from wirebroker.storage.log import Log
    from wirebroker.storage.segment import Segment


class FlushTarget(NamedTuple):
    """Files to sync; after sync() the log's mark_flushed(offset) may be called."""

    offset: int  # everything below it is on the disk afterwards
    files: Files
    directory: str
    segments: tuple[Segment, ...]
    small_files: tuple[str, ...]  # paths: producer snapshots, leader epochs, topic id
    is_directory_dirty: bool  # files were created or replaced

    def sync(self) -> None:
        """Wait for the disk (fdatasync). Blocks; may run in a thread while the log is used.

        Raises:
            OSError: The disk failed; nothing may be believed flushed.
        """
        for segment in self.segments:
            segment.sync()
        for path in self.small_files:
            if self.files.exists(path):
                file = self.files.data(path)
                file.sync()
                file.close()
        if self.is_directory_dirty:
            self.files.sync_directory(self.directory)


def flush_target(log: Log, files: Files) -> FlushTarget | None:
    """Do what Log.flush_target says."""
    if log.recovery_point >= log.log_end_offset and not log.is_directory_dirty:
        return None
    if log.leader_epochs.is_dirty:
        log.leader_epochs.persist()
        log.is_directory_dirty = True
    small_files = _unsynced_snapshots(log)
    log.producer_state.unsynced_snapshots.clear()
    if log.is_directory_dirty:
        small_files += _kept_small_files(log)
    target = FlushTarget(
        log.log_end_offset,
        files,
        log.directory,
        tuple(log.segments.since_flush(log.recovery_point)),
        tuple(small_files),
        log.is_directory_dirty,
    )
    log.is_directory_dirty = False
    return target


def closed_flush_target(log: Log, files: Files) -> FlushTarget | None:
    """Do what Log.closed_flush_target says."""
    base_offset = log.segments.active.base_offset
    if log.recovery_point >= base_offset:
        return None
    return FlushTarget(
        base_offset,
        files,
        log.directory,
        tuple(log.segments.since_flush(log.recovery_point)[:-1]),
        (*_unsynced_snapshots(log), *_kept_small_files(log)),
        is_directory_dirty=True,
    )


def _unsynced_snapshots(log: Log) -> list[str]:
    state = log.producer_state
    return [state.snapshot_path(offset) for offset in state.unsynced_snapshots]


def _kept_small_files(log: Log) -> list[str]:
    # Whose topic the log is must be known as long as its records: another may take its name.
    return [f"{log.directory}/{name}" for name in (LEADER_EPOCHS_NAME, PARTITION_METADATA)]
