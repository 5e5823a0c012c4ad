"""A copy of a log's files in another directory, made beside its use, until both are the same.

    begin          a directory beside the partitions, named `...-future`, as Kafka names it
    next_piece     on the loop: what the copy lacks, oldest first; None: it lacks nothing
    copy           in a thread: some bytes of a segment, or the indexes of one that is closed
    finish         in a thread while nobody appends: the rest, the small files, all of it synced

Segments are copied byte for byte. What a closed segment is changes only when it goes (retention),
or another takes its place (compaction): then its copy goes as well. A log that was cut is copied
anew.

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
# Of indexes and small files, at a time.
_CHUNK_BYTES: Final = 1 << 20


class Piece(NamedTuple):
    """Something that the copy lacks.

    Attributes:
        segment: What it is of.
        position: Where it begins in the segment's batches.
        length: Bytes of batches; 0: the segment is closed and its indexes are lacking.
    """

    segment: Segment
    position: int
    length: int


class LogCopy:
    """One copy; the log's owner calls `next_piece`, `is_complete`, and takes it into use.

    Attributes:
        directory: Where it is made.
    """

    __slots__ = ("_copied", "_cuts", "_files", "_log", "_whole", "directory")

    def __init__(self, log: Log, files: Files, directory: str) -> None:
        self._log = log
        self._files = files
        self.directory = directory
        self._cuts = log.cuts
        # Bytes of batches by segment, and the segments whose indexes are there as well.
        self._copied: dict[Segment, int] = {}
        self._whole: set[Segment] = set()

    @property
    def copied_bytes(self) -> int:
        """How many bytes of batches are there."""
        return sum(self._copied.values())

    @property
    def lag(self) -> int:
        """About how many offsets are lacking."""
        for segment in self._log.segments:
            if self._copied.get(segment, 0) < segment.size:
                return self._log.log_end_offset - max(
                    segment.base_offset, self._log.log_start_offset
                )
        return 0

    @property
    def lacking_bytes(self) -> int:
        """How many bytes of batches are lacking."""
        return sum(each.size - self._copied.get(each, 0) for each in self._log.segments)

    def next_piece(self, most_bytes: int) -> Piece | None:
        """Return what is to be copied next; of the active segment its batches alone."""
        log = self._log
        for segment in log.segments:
            copied = self._copied.get(segment, 0)
            if copied < segment.size:
                return Piece(segment, copied, min(most_bytes, segment.size - copied))
            if segment is not log.segments.active and segment not in self._whole:
                return Piece(segment, copied, 0)
        return None

    def is_of_the_active(self, piece: Piece) -> bool:
        """Tell whether a piece is of the segment that is appended to."""
        return piece.segment is self._log.segments.active

    def copy(self, piece: Piece) -> None:
        """Copy a piece. Blocks.

        Raises:
            OSError: A disk failed; FileNotFoundError: the segment has gone meanwhile.
        """
        segment = piece.segment
        if piece.length:
            self._copy_range(segment.log.path, LOG_SUFFIX, segment, piece.position, piece.length)
            return
        self._copy_indexes(segment)
        self._sync(segment)

    def note_copied(self, piece: Piece) -> None:
        """Count a piece that `copy` is through with, unless it has gone meanwhile."""
        segment = piece.segment
        if self._log.cuts != self._cuts or segment not in set(self._log.segments):
            return
        self._copied[segment] = piece.position + piece.length
        if not piece.length:
            self._whole.add(segment)

    def drop_gone(self) -> list[str]:
        """Forget what is no longer part of the log; return the paths to be removed before more."""
        now = set(self._log.segments if self._log.cuts == self._cuts else ())
        self._cuts = self._log.cuts
        gone = [segment for segment in self._copied if segment not in now]
        for segment in gone:
            del self._copied[segment]
            self._whole.discard(segment)
        return [
            segment_path(self.directory, segment.base_offset, suffix)
            for segment in gone
            for suffix in (LOG_SUFFIX, *_INDEXES)
        ]

    def finish(self) -> None:
        """Copy what else belongs to the log, and have all of it on the disk. Blocks.

        Nobody may append meanwhile; the epochs are in their file, and `next_piece` is None.
        """
        log, files = self._log, self._files
        for segment in log.segments:
            if not segment.size:  # there was nothing of it to be copied
                self._copy_range(segment.log.path, LOG_SUFFIX, segment, 0, 0)
        self._copy_indexes(log.segments.active)
        self._sync(log.segments.active)
        names = [snapshot_name(each) for each in tuple(log.producer_state.snapshots.offsets)]
        for name in (LEADER_EPOCHS_NAME, *names):
            source = f"{log.directory}/{name}"
            if files.exists(source):
                files.write_whole(f"{self.directory}/{name}", files.read_whole(source))
        files.sync_directory(self.directory)

    @property
    def is_complete(self) -> bool:
        """Whether it is the log's present self but for small files."""
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
        """Copy bytes of one file to the same place in its copy, which is as long afterwards."""
        reader = self._files.data(source)
        writer = self._files.data(segment_path(self.directory, segment.base_offset, suffix))
        try:
            writer.create()
            if writer.size() > position:
                writer.truncate(position)  # what a piece that failed has left
            end = position + length
            while position < end:
                data = reader.read_at(position, min(_CHUNK_BYTES, end - position))
                if not data:
                    raise FileNotFoundError(source)  # it was cut meanwhile
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
