"""A copy of a log's files in another directory, made while the log is in use.

    next_piece     on the event loop
    copy           in a thread
    finish         in a thread without concurrent appends

A closed segment only changes when it is deleted (retention) or replaced (compaction); its copy is
then removed too. After a truncation the log is copied again.

Source: Kafka's ReplicaAlterLogDirsThread, which fetches from the log like a follower.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from wirebroker.storage.log.leader_epochs import FILE_NAME as LEADER_EPOCHS_NAME
from wirebroker.storage.log.producers.producer_snapshot import snapshot_name
from wirebroker.storage.log.segment.segment_files import (
    INDEX_SUFFIX,
    LOG_SUFFIX,
    TIME_INDEX_SUFFIX,
    TXN_INDEX_SUFFIX,
    segment_path,
)

if TYPE_CHECKING:
    from wirebroker.storage.files import Files
    from wirebroker.storage.log.log import Log
    from wirebroker.storage.log.segment.segment import Segment

_INDEXES: Final = (INDEX_SUFFIX, TIME_INDEX_SUFFIX, TXN_INDEX_SUFFIX)
_CHUNK_BYTES: Final = 1 << 20


class Piece(NamedTuple):
    """A missing piece of the copy."""

    segment: Segment
    position: int
    length: int  # bytes of batches; 0 for the indexes of a closed segment


class LogCopy:
    """One copy of a log, in `directory`."""

    __slots__ = ("_complete_segments", "_copied", "_cuts", "_files", "_log", "directory")

    def __init__(self, log: Log, files: Files, directory: str) -> None:
        self._log = log
        self._files = files
        self.directory = directory
        self._cuts = log.cuts
        # Bytes of batches.
        self._copied: dict[Segment, int] = {}
        self._complete_segments: set[Segment] = set()  # with indexes

    @property
    def copied_bytes(self) -> int:
        """Copied bytes of batches."""
        return sum(self._copied.values())

    @property
    def lag(self) -> int:
        """The approximate number of missing offsets."""
        for segment in self._log.segments:
            if self._copied.get(segment, 0) < segment.size:
                return self._log.log_end_offset - max(
                    segment.base_offset, self._log.log_start_offset
                )
        return 0

    @property
    def lacking_bytes(self) -> int:
        """Missing bytes of batches."""
        return sum(segment.size - self._copied.get(segment, 0) for segment in self._log.segments)

    def next_piece(self, most_bytes: int) -> Piece | None:
        """Return the oldest missing piece, without the active segment's indexes, or None."""
        log = self._log
        for segment in log.segments:
            copied = self._copied.get(segment, 0)
            if copied < segment.size:
                return Piece(segment, copied, min(most_bytes, segment.size - copied))
            if segment is not log.segments.active and segment not in self._complete_segments:
                return Piece(segment, copied, 0)
        return None

    def is_of_the_active(self, piece: Piece) -> bool:
        """Return whether a piece belongs to the active segment."""
        return piece.segment is self._log.segments.active

    def copy(self, piece: Piece) -> None:
        """Copy a piece. Blocks.

        Raises:
            OSError: A disk failed; FileNotFoundError: the segment was deleted.
        """
        segment = piece.segment
        if piece.length:
            self._copy_range(segment.log.path, LOG_SUFFIX, segment, piece.position, piece.length)
            return
        self._copy_indexes(segment)
        self._sync(segment)

    def note_copied(self, piece: Piece) -> None:
        """Count a copied piece, unless its segment was deleted."""
        segment = piece.segment
        if self._log.cuts != self._cuts or segment not in set(self._log.segments):
            return
        self._copied[segment] = piece.position + piece.length
        if not piece.length:
            self._complete_segments.add(segment)

    def drop_removed(self) -> list[str]:
        """Forget segments that left the log; return their paths, to remove them first."""
        current = set(self._log.segments if self._log.cuts == self._cuts else ())
        self._cuts = self._log.cuts
        removed = [segment for segment in self._copied if segment not in current]
        for segment in removed:
            del self._copied[segment]
            self._complete_segments.discard(segment)
        return [
            segment_path(self.directory, segment.base_offset, suffix)
            for segment in removed
            for suffix in (LOG_SUFFIX, *_INDEXES)
        ]

    def finish(self) -> None:
        """Copy the remaining files of the log and sync everything. Blocks.

        No appends may run, the epochs must be in their file, and `next_piece` must be None.
        """
        log, files = self._log, self._files
        for segment in log.segments:
            if not segment.size:  # `copy` had nothing to do
                self._copy_range(segment.log.path, LOG_SUFFIX, segment, 0, 0)
        self._copy_indexes(log.segments.active)
        self._sync(log.segments.active)
        names = [snapshot_name(offset) for offset in tuple(log.producer_state.snapshots.offsets)]
        for name in (LEADER_EPOCHS_NAME, *names):
            source = f"{log.directory}/{name}"
            if files.exists(source):
                files.write_file(f"{self.directory}/{name}", files.read_file(source))
        files.sync_directory(self.directory)

    @property
    def is_complete(self) -> bool:
        """Whether the copy equals the log, except for small files."""
        return (
            self._log.cuts == self._cuts
            and self.next_piece(1) is None
            and set(self._copied) <= set(self._log.segments)
        )

    def _copy_indexes(self, segment: Segment) -> None:
        for suffix in _INDEXES:
            source = segment_path(self._log.directory, segment.base_offset, suffix)
            if self._files.exists(source):
                file = self._files.data(source)
                self._copy_range(source, suffix, segment, 0, file.size())

    def _copy_range(
        self, source: str, suffix: str, segment: Segment, position: int, length: int
    ) -> None:
        reader = self._files.data(source)
        writer = self._files.data(segment_path(self.directory, segment.base_offset, suffix))
        try:
            writer.create()
            if writer.size() > position:
                writer.truncate(position)  # left by a failed piece
            end = position + length
            while position < end:
                data = reader.read_at(position, min(_CHUNK_BYTES, end - position))
                if not data:
                    raise FileNotFoundError(source)  # it was truncated meanwhile
                writer.write_at(position, data)
                position += len(data)
        finally:
            reader.close()
            writer.close()

    def _sync(self, segment: Segment) -> None:
        for suffix in (LOG_SUFFIX, *_INDEXES):
            path = segment_path(self.directory, segment.base_offset, suffix)
            if self._files.exists(path):
                file = self._files.data(path)
                file.sync()
                file.close()
