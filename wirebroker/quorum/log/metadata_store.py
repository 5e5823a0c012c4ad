"""The metadata log's files: segments, snapshots and epochs of `__cluster_metadata-0`.

The directory has Kafka's format (storage/README.md). A segment ends only at a snapshot's end
offset, so a start need not read the whole history.
"""

from __future__ import annotations

import logging
from bisect import bisect_right
from functools import partial
from typing import TYPE_CHECKING

from wirebroker.codecs.primitives import uuid_text
from wirebroker.codecs.records.batch import whole_batches
from wirebroker.config.rows.row import StartError
from wirebroker.quorum.log.metadata_recovery import INDEX_INTERVAL_BYTES, RecoveredLog
from wirebroker.quorum.log.metadata_snapshot import SnapshotId, snapshot_ids
from wirebroker.storage.log.leader_epochs import LeaderEpochs
from wirebroker.storage.log.segment.segment import Segment
from wirebroker.storage.log.segment.segment_files import segment_base_offsets

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from wirebroker.base.clock import Clock
    from wirebroker.codecs.primitives import Buffer
    from wirebroker.codecs.records.batch import BatchHeader
    from wirebroker.quorum.log.metadata_recovery import Batch
    from wirebroker.storage.files import Files, FileSlice

TOPIC = "__cluster_metadata"
DIRECTORY_NAME = f"{TOPIC}-0"
# The same in every cluster.
TOPIC_ID = bytes(15) + b"\x01"
# Files left by a crash, and Apache Kafka's producer snapshots.
_LEFTOVERS = (".tmp", ".part", ".deleted", ".cleaned", ".swap", ".snapshot")

LOGGER = logging.getLogger(__name__)


class MetadataStore:
    """The files of the metadata log in one log directory."""

    __slots__ = (
        "_clock",
        "_directory",
        "_epochs",
        "_files",
        "_has_new_segment",
        "_segments",
        "bytes_since_snapshot",
        "end_offset",
        "snapshot_bytes",
        "snapshots",
    )

    def __init__(self, files: Files, log_directory: str, clock: Clock) -> None:
        self._files = files
        self._clock = clock
        self._directory = f"{log_directory}/{DIRECTORY_NAME}"
        # By base offset; never empty once open.
        self._segments: list[Segment] = []
        self._epochs = LeaderEpochs(files, self._directory)
        # A new segment whose name is not on disk yet.
        self._has_new_segment = False
        self.snapshots: list[SnapshotId] = []  # oldest first
        self.end_offset = 0  # perhaps not synced
        self.bytes_since_snapshot = 0
        self.snapshot_bytes = 0  # of the newest one, or 0

    @property
    def directory(self) -> str:
        """The path of the log's directory."""
        return self._directory

    @property
    def start_offset(self) -> int:
        """The first offset of the log."""
        return self._segments[0].base_offset

    @property
    def epochs(self) -> list[tuple[int, int]]:
        """Each epoch with records and its first offset, oldest first."""
        return self._epochs.entries

    def snapshot_size(self, snapshot: SnapshotId) -> int:
        """Return the length of a snapshot's file in bytes."""
        return self._files.data(f"{self._directory}/{snapshot.file_name}").size()

    # Loading

    def open(self) -> None:
        """Create the directory if it is missing, and list its contents."""
        files, directory = self._files, self._directory
        if not files.exists(directory):
            files.make_directory(directory)
            files.sync_directory(directory.rpartition("/")[0])
        if not files.exists(f"{directory}/partition.metadata"):
            text = f"version: 0\ntopic_id: {uuid_text(TOPIC_ID)}"
            files.write_file(f"{directory}/partition.metadata", text.encode())
        names = files.list_files(directory)
        self.snapshots = snapshot_ids(names)
        for base_offset in segment_base_offsets(names):
            self._segments.append(self._segment(base_offset))

    def remove_leftovers(self) -> None:
        """Remove files that a crash left incomplete."""
        for name in self._files.list_files(self._directory):
            if name.endswith(_LEFTOVERS):
                self._files.unlink(f"{self._directory}/{name}")

    def read_snapshot(self) -> bytes | None:
        """Return the contents of the newest snapshot, if any."""
        if not self.snapshots:
            return None
        content = self._files.read_file(f"{self._directory}/{self.snapshots[-1].file_name}")
        self.snapshot_bytes = len(content)
        return content

    def recover(self, *, may_refetch: bool = False) -> list[Batch]:
        """Check the whole log, truncate an incomplete end, and return batches after the snapshot.

        `may_refetch` says that missing records can be fetched again (metadata_recovery.py).

        Raises:
            StartError: Records are missing after the snapshot or between segments.
        """
        newest = self.snapshots[-1] if self.snapshots else SnapshotId(0, 0)
        start = newest.end_offset
        log = RecoveredLog(self._directory, start=start, may_refetch=may_refetch)
        log.recover(self._segments)
        # The log may be empty. Or it may end, by offset or epoch, before a snapshot of its leader:
        # a crash happened before the snapshot replaced the log. See Kafka's
        # truncateToLatestSnapshot.
        is_replaced = log.end_offset is None or log.end_offset < start
        is_replaced = is_replaced or log.last_epoch < newest.epoch
        if is_replaced or not log.check_start():
            log.delete()
            log.segments.append(self._new_segment(start))
        if log.has_deleted:
            self._files.sync_directory(self._directory)
        self._segments = log.segments
        # A killed process may have created the last segment without syncing the directory.
        self._has_new_segment = True
        self.end_offset = start if log.end_offset is None else log.end_offset
        self._check_epochs(log)
        self._delete_snapshots_before_start()
        self.bytes_since_snapshot = sum(len(batch) for _, batch in log.batches)
        return log.batches

    def _check_epochs(self, log: RecoveredLog) -> None:
        """Write the epochs of the batches to their file, which is not synced and may be older.

        Raises:
            StartError: An epoch is invalid; the checksum does not cover it.
        """
        for epoch, base_offset in log.epochs:
            if epoch < 0:
                raise StartError(
                    f"{self._directory} has the invalid epoch {epoch} at offset {base_offset}",
                    "restore the directory from a backup",
                )
        if self._epochs.entries == log.epochs:
            return
        self._epochs.clear()
        for epoch, base_offset in log.epochs:
            self._epochs.assign(epoch, base_offset)
        self._epochs.persist()

    def _delete_snapshots_before_start(self) -> None:
        """Delete snapshots that end before the log begins: no follower can begin with them."""
        for old in self.snapshots[:-1]:
            if old.end_offset < self.start_offset:
                self._files.unlink(f"{self._directory}/{old.file_name}")
                self.snapshots.remove(old)

    # Writing

    def append(self, buffers: Sequence[Buffer], headers: Sequence[BatchHeader]) -> None:
        """Append batches whose offsets follow `end_offset`, in one write.

        Raises:
            OSError: Nothing was appended.
        """
        next_offset = self.end_offset
        for header in headers:
            assert header.base_offset == next_offset, "offsets have no gaps"
            next_offset = header.last_offset + 1
            if header.leader_epoch > self._epochs.latest_epoch:
                self._epochs.assign(header.leader_epoch, header.base_offset)
        self._epochs.persist()
        self._segments[-1].append(buffers, headers, index_interval_bytes=INDEX_INTERVAL_BYTES)
        self.end_offset = next_offset
        self.bytes_since_snapshot += sum(map(len, buffers))

    def sync(self) -> None:
        """Wait until everything appended is on disk. Blocks."""
        self._segments[-1].log.sync()
        if self._has_new_segment:
            self._has_new_segment = False  # before the sync: another one may begin meanwhile
            self._files.sync_directory(self._directory)

    def roll(self) -> None:
        """Begin a new segment at the end of the log."""
        if self._segments[-1].base_offset == self.end_offset:
            return
        self._segments[-1].close()
        self._segments.append(self._new_segment(self.end_offset))
        self.bytes_since_snapshot = 0

    def truncate_to(self, offset: int) -> Iterator[Callable[[], None]]:
        """Remove the batches that contain `offset` or follow it.

        Yield each sync; the caller performs it before it continues. A sync blocks.
        """
        count = len(self._segments)
        while len(self._segments) > 1 and self._segments[-1].base_offset > offset:
            self._segments.pop().delete()
        if len(self._segments) < count:
            # Before the truncation: later segments must not follow a gap.
            yield partial(self._files.sync_directory, self._directory)
        self._segments[-1].truncate_to(offset)
        self.end_offset = min(self.end_offset, offset)
        self._epochs.truncate_from_end(self.end_offset)
        self._epochs.persist()
        # Otherwise a power failure may leave one of these batches before a later leader's.
        yield self._segments[-1].log.sync

    def restart_at(self, snapshot: SnapshotId) -> None:
        """Delete all segments and continue after a snapshot on disk."""
        old, self._segments = self._segments, []
        for segment in old:
            segment.delete()
        self._segments = [self._new_segment(snapshot.end_offset)]
        self._epochs.clear()
        self._epochs.persist()
        self.end_offset = snapshot.end_offset
        self.bytes_since_snapshot = 0
        self.advance_start(snapshot)

    def write_snapshot(self, snapshot: SnapshotId, content: bytes) -> None:
        """Write and sync a snapshot's file. Blocks."""
        self._files.write_file(f"{self._directory}/{snapshot.file_name}", content)
        self.snapshot_bytes = len(content)

    def advance_start(self, snapshot: SnapshotId) -> None:
        """Remove the files that a snapshot on disk replaces."""
        for old in self.snapshots:
            if old != snapshot:
                self._files.unlink(f"{self._directory}/{old.file_name}")
        self.snapshots = [snapshot]
        while len(self._segments) > 1 and self._segments[1].base_offset <= snapshot.end_offset:
            self._segments.pop(0).delete()
        self._epochs.truncate_from_start(self.start_offset)
        self._epochs.persist()

    # Reading, for followers

    def slice_from(self, offset: int, end_offset: int, max_bytes: int) -> FileSlice | None:
        """Return whole batches of one segment, if any, from a batch's offset to `end_offset`.

        The first batch may exceed `max_bytes`. There are none if a snapshot has replaced `offset`.
        """
        if not self.start_offset <= offset < end_offset:
            return None
        bases = [segment.base_offset for segment in self._segments]
        segment = self._segments[bisect_right(bases, offset) - 1]
        end_batch = segment.position_for_offset(end_offset)
        end = segment.size if end_batch is None else end_batch[0]
        part = segment.read_slice(offset, max_bytes, end_position=end, min_one=True)
        return part if part is not None and part.length else None

    def read_snapshot_part(
        self, snapshot: SnapshotId, position: int, max_bytes: int
    ) -> tuple[int, bytes]:
        """Return a snapshot's size and the bytes at a position. Blocks.

        Raises:
            FileNotFoundError: The snapshot does not exist.
        """
        file = self._files.data(f"{self._directory}/{snapshot.file_name}")
        try:
            return file.size(), file.read_at(position, max_bytes)
        finally:
            file.close()

    def close(self) -> None:
        """Finish the indexes and close the files."""
        for segment in self._segments:
            try:
                segment.close()
            except OSError as error:  # a start rebuilds the indexes
                LOGGER.warning("cannot finish the indexes of %s: %s", segment, error)

    def _segment(self, base_offset: int) -> Segment:
        return Segment(self._files, self._directory, base_offset, created_ms=self._clock.now_ms())

    def _new_segment(self, base_offset: int) -> Segment:
        """Create a segment; the next sync makes its name durable with its first records."""
        segment = self._segment(base_offset)
        segment.create()
        self._has_new_segment = True
        return segment


def read_batches(piece: FileSlice) -> memoryview:
    """Read the whole batches of a slice. Blocks."""
    content = memoryview(piece.read())
    return content[: whole_batches(content)]
