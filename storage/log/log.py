"""The log of one partition: opened, flushed, cut at either end, closed.

    LogBounds          bounds.py       where it begins and ends, what is committed, what is flushed
      ReadableLog      read.py         what readers ask of it
        AppendableLog  appendable.py   prepare, write, commit, roll
          Log                          its life as a whole

Each class changes the fields that it declares, and asks the one that declares the others. Files are
opened when needed; load() of a cleanly stopped log reads nothing but the directory. Times are
arguments.

A power loss must not mix what was cut off with what comes after it. So whoever cuts below the
recovery point writes the lower one into its checkpoint before, and flushes the log afterwards,
before it appends anything.

Source: Kafka's UnifiedLog and LocalLog; on-disk format in storage/README.md.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from wirebroker.storage.log.appendable import AppendableLog
from wirebroker.storage.log.flush import FlushTarget
from wirebroker.storage.log.leader_epochs import FILE_NAME as LEADER_EPOCHS_NAME
from wirebroker.storage.log.retention import expired_count
from wirebroker.storage.log.segment.segment import Segment
from wirebroker.storage.partition_metadata import PARTITION_METADATA
from wirebroker.storage.recovery.log_recovery import load_log, rebuild_producer_state

if TYPE_CHECKING:
    from collections.abc import Callable

    from wirebroker.config.rows.topic import TopicSettings
    from wirebroker.storage.files import Files
    from wirebroker.storage.log.wall_clocks import ClockReading

_DAY_MS: Final = 86_400_000


class Log(AppendableLog):
    """One partition's log.

    Attributes:
        topic: Its topic's name.
        partition: Its number.
        topic_id: 16 bytes.
        on_roll: Called when a segment was rolled, perhaps in a thread: what is closed may be
            flushed (closed_flush_target).
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

    def load(
        self,
        *,
        recovery_point: int,
        clean: bool,
        now_ms: int,
        log_start_offset: int = 0,
    ) -> None:
        """Open what the directory holds (it exists; an empty one becomes an empty log).

        Args:
            recovery_point: From the checkpoint; 0 if it has none.
            clean: The last stop was clean: nothing is checked, nearly nothing read.
            now_ms: The time now.
            log_start_offset: From the checkpoint; 0 if it has none.

        Raises:
            OSError: The disk failed.
            KafkaError: UNSUPPORTED_FOR_MESSAGE_FORMAT: there are flushed batches of magic 0 or 1.
        """
        loaded = load_log(
            self,
            self._files,
            recovery_point=recovery_point,
            clean=clean,
            now_ms=now_ms,
            log_start_offset=log_start_offset,
        )
        self._open_at(
            log_start_offset=loaded.log_start_offset,
            log_end_offset=loaded.log_end_offset,
            recovery_point=loaded.recovery_point,
        )

    # -- cutting ---------------------------------------------------------------------------

    def truncate_to(self, offset: int, *, now_ms: int) -> bool:
        """Drop every batch that holds `offset` or comes after it (a follower that diverged).

        Returns:
            False if the log already ended there or before.
        """
        assert offset >= 0, offset
        if offset >= self.log_end_offset:
            self.leader_epochs.truncate_from_end(self.log_end_offset)
            return False
        if offset < self.segments[0].base_offset:
            self.truncate_fully(offset, now_ms=now_ms)
            return True
        # The segment that begins exactly at `offset` stays, empty, unless it is not the first.
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
        """Drop everything and go on at `offset`."""
        self._drop_segments_from(0)
        segment = Segment(self._files, self.directory, offset, created_ms=now_ms)
        segment.create(self.settings)
        self.segments.add(segment)
        self.mark_touched()
        self.leader_epochs.clear()
        self.producer_state.snapshots.delete_all()
        self.producer_state.reset(offset)
        self._begin_at(offset)

    def _drop_segments_from(self, offset: int) -> None:
        # From the end, so that a crash in between leaves a prefix.
        for segment in reversed(self.segments.remove_from(offset)):
            self.producer_state.snapshots.delete(segment.base_offset)
            segment.delete()

    # -- letting go ------------------------------------------------------------------------

    def delete_old_segments(self, moment: ClockReading) -> list[Segment]:
        """Let go of the segments that retention or DeleteRecords has done with.

        They are no longer part of the log, whose start has moved. What is left to do for each, in
        this order: `set_aside_segment` (removal.py), and `remove` after file.delete.delay.ms. If
        there are MOST_SEGMENTS (retention.py), there may be more to delete.

        Raises:
            OSError: A last segment that has expired too could not be rolled; all are still there.
        """
        segments = self.segments
        count = expired_count(
            list(segments),
            self.settings,
            moment,
            log_start_offset=self.log_start_offset,
            high_watermark=self.high_watermark,
            log_end_offset=self.log_end_offset,
        )
        if not count:
            return []
        if count == len(segments):
            self.roll(now_ms=moment.now_ms)
        new_start = segments[count].base_offset
        if new_start > self.log_start_offset:
            self.increment_log_start_offset(new_start)
        self.mark_flushed(new_start)  # what is gone need not be flushed any more
        self.mark_touched()
        return segments.remove_before(new_start)

    def relocate(self, directory: str) -> None:
        """Go on with a copy of all files in another directory, which is on the disk (log_copy.py).

        Nobody is at work on the log. Slices in flight are sent from whichever file is open. What is
        flushed stays so; the owner notes the rest when the directory's name is on the disk, too.
        """
        for segment in self.segments:
            segment.relocate(directory)
            segment.close_files()
        self.leader_epochs.relocate(directory)
        self.producer_state.snapshots.relocate(directory)
        self.directory = directory
        self.cuts += 1  # a sync that is under way is of the files before
        self.mark_touched()

    # -- the disk --------------------------------------------------------------------------

    def flush_target(self) -> FlushTarget | None:
        """Return what to sync so that everything committed by now is on the disk; None if nothing.

        Call its sync(), in a thread if you like, then mark_flushed(its offset, cuts=its cuts).
        """
        if self.recovery_point >= self.log_end_offset and not self.is_directory_dirty:
            return None
        if self.leader_epochs.is_dirty:
            self.leader_epochs.persist()
            self.is_directory_dirty = True
        small_files = self.producer_state.snapshots.take_unsynced_paths()
        if self.is_directory_dirty:
            small_files += self._kept_small_files()
        target = FlushTarget(
            self.log_end_offset,
            self._files,
            self.directory,
            tuple(self.segments.since_flush(self.recovery_point)),
            tuple(small_files),
            self.is_directory_dirty,
            self.cuts,
        )
        self.is_directory_dirty = False
        return target

    def closed_flush_target(self) -> FlushTarget | None:
        """Return what to sync so that all but the active segment is on the disk; None if it is.

        May go on beside other flushes: it takes nothing off their hands. Use as flush_target.
        """
        base_offset = self.segments.active.base_offset
        if self.recovery_point >= base_offset:
            return None
        return FlushTarget(
            base_offset,
            self._files,
            self.directory,
            tuple(self.segments.since_flush(self.recovery_point)[:-1]),
            (*self.producer_state.snapshots.unsynced_paths, *self._kept_small_files()),
            is_directory_dirty=True,
            cuts=self.cuts,
        )

    def _kept_small_files(self) -> list[str]:
        # Whose topic the log is must be known as long as its records: another may take its name.
        return [f"{self.directory}/{name}" for name in (LEADER_EPOCHS_NAME, PARTITION_METADATA)]

    def flush(self) -> None:
        """Sync everything, here and now. Blocks."""
        target = self.flush_target()
        if target is not None:
            target.sync()
            self.mark_flushed(target.offset)

    def close(self, *, clean: bool, sync: bool = True) -> None:
        """Let go of the files.

        Args:
            clean: Leave the directory as Kafka does after a clean stop: everything synced, a
                producer snapshot at the end, indexes of exact length. Then the next load() reads
                nothing. Blocks. Otherwise (the disk failed, the log is to be deleted) nothing is
                written.
            sync: Wait for the disk, some 8 ms for a log that was written to. Else the caller syncs
                the whole file system before it writes the recovery point and the marker of a
                clean stop: for thousands of logs that is the only quick way.
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
