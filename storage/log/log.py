"""The log of one partition: flush, truncate, delete old segments, close.

A power loss must not mix truncated records with later ones. So a caller that truncates below the
recovery point first writes the lower one to the checkpoint, and flushes the log before it appends.

Source: Kafka's UnifiedLog and LocalLog.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from wirebroker.storage.log.appendable import AppendableLog
from wirebroker.storage.log.flush import FlushTarget
from wirebroker.storage.log.leader_epochs import FILE_NAME as LEADER_EPOCHS_NAME
from wirebroker.storage.log.producer_rebuild import rebuild_producer_state
from wirebroker.storage.log.retention import expired_count
from wirebroker.storage.log.segment.segment import Segment
from wirebroker.storage.partition_metadata import PARTITION_METADATA

if TYPE_CHECKING:
    from collections.abc import Callable

    from wirebroker.config.rows.topic import TopicSettings
    from wirebroker.storage.files import Files
    from wirebroker.storage.log.wall_clocks import ClockReading

_DAY_MS: Final = 86_400_000


class Log(AppendableLog):
    """One partition's log; `load_log` (recovery/log_recovery.py) opens it.

    Attributes:
        topic_id: 16 bytes.
        on_roll: Called after a roll, perhaps in a thread, to flush the closed segment.
    """

    __slots__ = ("on_roll", "partition", "topic", "topic_id")

    def __init__(
        self,
        directory: str,
        files: Files,
        *,
        topic: str,
        partition: int,
        topic_id: bytes,
        settings: TopicSettings,
        producer_id_expiration_ms: int = _DAY_MS,
        walks_records: bool = True,
    ) -> None:
        super().__init__(
            directory,
            files,
            settings=settings,
            producer_id_expiration_ms=producer_id_expiration_ms,
            walks_records=walks_records,
        )
        self.topic = topic
        self.partition = partition
        self.topic_id = topic_id
        self.on_roll: Callable[[Log], None] | None = None

    # -- truncation --------------------------------------------------------------------------

    def truncate_to(self, offset: int, *, now_ms: int) -> bool:
        """Remove `offset` and everything after it; return False if the log ended before."""
        assert offset >= 0, offset
        if offset >= self.log_end_offset:
            self.leader_epochs.truncate_from_end(self.log_end_offset)
            return False
        if offset < self.segments[0].base_offset:
            self.truncate_fully(offset, now_ms=now_ms)
            return True
        # A segment that begins at `offset` stays and becomes empty.
        self._drop_segments_from(offset + 1)
        active = self.segments.active
        active.truncate_to(offset)
        if active.size == 0:
            active.created_ms = now_ms
        self.mark_touched()
        self.leader_epochs.truncate_from_end(offset)
        self._end_at(offset)
        rebuild_producer_state(self, end_offset=offset, now_ms=now_ms)
        return True

    def truncate_fully(self, offset: int, *, now_ms: int) -> None:
        """Remove everything and continue at `offset`."""
        self._drop_segments_from(0)
        segment = Segment(self.files, self.directory, offset, created_ms=now_ms)
        segment.create(self.settings)
        self.segments.add(segment)
        self.mark_touched()
        self.leader_epochs.clear()
        self.producer_state.snapshots.delete_all()
        self.producer_state.reset(offset)
        self._begin_at(offset)

    def _drop_segments_from(self, offset: int) -> None:
        # From the end, so that a crash leaves a prefix.
        for segment in reversed(self.segments.remove_from(offset)):
            self.producer_state.snapshots.delete(segment.base_offset)
            segment.delete()

    # -- removal -----------------------------------------------------------------------------

    def delete_old_segments(self, clocks: ClockReading) -> list[Segment]:
        """Remove expired segments (retention, DeleteRecords) from the log, and return them.

        The caller then removes their files (set_aside_segment). If MOST_SEGMENTS are returned, more
        may have expired.

        Raises:
            OSError: The last segment expired too but could not be rolled; nothing was removed.
        """
        segments = self.segments
        count = expired_count(
            list(segments),
            self.settings,
            clocks,
            log_start_offset=self.log_start_offset,
            high_watermark=self.high_watermark,
            log_end_offset=self.log_end_offset,
        )
        if not count:
            return []
        if count == len(segments):
            self.roll(now_ms=clocks.now_ms)
        new_start = segments[count].base_offset
        if new_start > self.log_start_offset:
            self.increment_log_start_offset(new_start)
        self.mark_flushed(new_start)  # deleted records need no flush
        self.mark_touched()
        return segments.remove_before(new_start)

    def relocate(self, directory: str) -> None:
        """Switch to a synced copy of all files in another directory (log_copy.py).

        No other task may use the log; slices in flight keep their open files.
        """
        for segment in self.segments:
            segment.relocate(directory)
            segment.close_files()
        self.leader_epochs.relocate(directory)
        self.producer_state.snapshots.relocate(directory)
        self.directory = directory
        self.cuts += 1  # a running sync is for the old files
        self.mark_touched()

    # -- the disk --------------------------------------------------------------------------

    def flush_target(self) -> FlushTarget | None:
        """Return the files to sync for everything committed by now, or None.

        Call its sync(), possibly in a thread, then mark_flushed(its offset, cuts=its cuts).
        """
        if self.recovery_point >= self.log_end_offset and not self.is_directory_dirty:
            return None
        if self.leader_epochs.is_dirty:
            self.leader_epochs.persist()
            self.is_directory_dirty = True
        small_files = self.producer_state.snapshots.take_unsynced_paths()
        if self.is_directory_dirty:
            small_files += self._small_files_to_sync()
        target = FlushTarget(
            self.log_end_offset,
            self.files,
            self.directory,
            tuple(self.segments.since_flush(self.recovery_point)),
            tuple(small_files),
            self.is_directory_dirty,
            self.cuts,
        )
        self.is_directory_dirty = False
        return target

    def closed_flush_target(self) -> FlushTarget | None:
        """Return the files to sync for all closed segments, or None; keeps other flushes' state."""
        base_offset = self.segments.active.base_offset
        if self.recovery_point >= base_offset:
            return None
        return FlushTarget(
            base_offset,
            self.files,
            self.directory,
            tuple(self.segments.since_flush(self.recovery_point)[:-1]),
            (*self.producer_state.snapshots.unsynced_paths, *self._small_files_to_sync()),
            is_directory_dirty=True,
            cuts=self.cuts,
        )

    def _small_files_to_sync(self) -> list[str]:
        # While there are records, their topic id is needed: another topic may get the name.
        return [f"{self.directory}/{name}" for name in (LEADER_EPOCHS_NAME, PARTITION_METADATA)]

    def flush(self) -> None:
        """Sync everything now. Blocks."""
        target = self.flush_target()
        if target is not None:
            target.sync()
            self.mark_flushed(target.offset)

    def close(self, *, clean: bool, sync: bool = True) -> None:
        """Close the files.

        With `clean` leave the directory as Kafka does after a clean stop: everything synced, a
        producer snapshot at the end, indexes of exact length; blocks. Otherwise nothing is written.
        Without `sync` the caller syncs the whole file system, which is faster for thousands of
        logs, before it writes the recovery point and the clean-stop marker.
        """
        if clean and (self._is_touched or self.leader_epochs.is_dirty):
            self.producer_state.take_snapshot()
            for segment in self.segments.since_flush(self.recovery_point):
                segment.finish()
            self.is_directory_dirty = True
            target = self.flush_target()
            if target is not None and sync:
                target.sync()
            self.mark_flushed(self.log_end_offset)
            self._is_touched = False
        for segment in self.segments:
            segment.close_files()

    def _note_roll(self) -> None:
        if self.on_roll is not None:
            self.on_roll(self)
