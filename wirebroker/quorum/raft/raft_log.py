"""The metadata log of a replica, a voter or an observer: its files, and unapplied batches.

The raft machine decides what to append, truncate and commit (coordinator/raft); this class does it.
Only the appends of this node's controller begin here: if the disk refuses them, the machine must be
unchanged.

    files          = snapshot, then batches up to `end_offset`
    unapplied      = the batches from the applied offset to the end, in order

Source: Kafka's KafkaRaftLog and KafkaRaftClient.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from wirebroker.base.threads import Work, in_thread
from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.coordinator.raft.model.log_point import LogPoint, RaftBatch
from wirebroker.coordinator.raft.model.log_view import LogView
from wirebroker.coordinator.raft.model.voter_history import VoterHistory
from wirebroker.quorum.log.metadata_batches import (
    BatchBuilder,
    EncodedBatches,
    FetchedBatch,
    checked_batches,
)
from wirebroker.quorum.log.metadata_snapshot import (
    FORMATTED,
    SnapshotContents,
    SnapshotId,
    control_records,
    read_snapshot,
)
from wirebroker.quorum.log.metadata_store import MetadataStore, read_batches
from wirebroker.quorum.raft.unapplied_batches import UnappliedBatches, WaitingBatch

if TYPE_CHECKING:
    from collections.abc import Sequence

    from wirebroker.base.clock import Clock
    from wirebroker.coordinator.controller.controller_machine import ClusterChange
    from wirebroker.coordinator.raft.model.log_point import LogSlice, SnapshotSlice
    from wirebroker.coordinator.raft.model.voter_set import VoterSet
    from wirebroker.storage.files import DataFile, Files, FileSlice

# The name of a snapshot that is being downloaded, as in Kafka.
_PART = ".part"
_MAX_PIECE_BYTES = 1 << 20


class LoadedLog(NamedTuple):
    """The contents of the disk at the start.

    Attributes:
        view: Offsets and epochs.
        history: The voters at each offset.
        snapshot: The newest snapshot, if there is one.
    """

    view: LogView
    history: VoterHistory
    snapshot: SnapshotContents | None


class RaftLog:
    """The log in one log directory; used on one event loop.

    Attributes:
        generation: Counts truncations and replacements; a read is valid if it stays the same.
        last_timestamp_ms: That of the last batch that was taken to be applied.
    """

    __slots__ = (
        "_clock",
        "_files",
        "_first_data",
        "_is_formatted_only",
        "_part",
        "_unapplied",
        "generation",
        "last_timestamp_ms",
        "store",
    )

    def __init__(self, log_directory: str, *, files: Files, clock: Clock) -> None:
        self.store = MetadataStore(files, log_directory, clock)
        self.generation = 0
        # Whether there is no snapshot but that of a storage tool.
        self._is_formatted_only = True
        # The offset of the first batch with data after the snapshot.
        self._first_data: int | None = None
        self.last_timestamp_ms = 0
        self._files = files
        self._clock = clock
        self._unapplied = UnappliedBatches()
        # The snapshot that is being downloaded.
        self._part: DataFile | None = None

    @property
    def end_offset(self) -> int:
        """The offset after the last record, on disk or not."""
        return self.store.end_offset

    @property
    def is_unused(self) -> bool:
        """Whether there is no data record outside the snapshot that a storage tool wrote."""
        return self._is_formatted_only and self._first_data is None

    @property
    def resident_bytes(self) -> int:
        """The memory of the unapplied batches."""
        return self._unapplied.resident_bytes

    def load(self, static_voters: VoterSet, *, may_refetch: bool = False) -> LoadedLog:
        """Open the log, repair incomplete writes of a crash, and return its content.

        `may_refetch` says that missing records can be fetched again, because this replica is an
        observer, whose copy of the log does not count.

        Raises:
            StartError: Records are missing.
            KafkaError: The snapshot is damaged.
            OSError: The disk failed.
        """
        store = self.store
        store.open()
        content = store.read_snapshot()
        history = VoterHistory(static_voters)
        snapshot: SnapshotContents | None = None
        if content is not None:
            snapshot = read_snapshot(content)
            self._is_formatted_only = store.snapshots[-1] == FORMATTED
            self.last_timestamp_ms = snapshot.timestamp_ms
            history.reset(store.snapshots[-1].end_offset - 1, snapshot.voters)
        for header, batch in store.recover(may_refetch=may_refetch):
            fetched = FetchedBatch(header, batch)
            history.add(raft_batch(fetched))
            self._wait([fetched])
        return LoadedLog(self._view(), history, snapshot)

    def _view(self) -> LogView:
        store = self.store
        return LogView(
            start_offset=store.start_offset,
            end_offset=store.end_offset,
            epochs=store.epochs,
            snapshots=[(point_of(found), store.snapshot_size(found)) for found in store.snapshots],
        )

    def close(self) -> None:
        """Close the files."""
        if self._part is not None:
            self._part.close()
        self.store.close()

    # Writing

    def append(self, batches: Sequence[RaftBatch]) -> None:
        """Append batches of another leader, or control records of this node as leader.

        Raises:
            OSError: Nothing was appended.
        """
        fetched = [self._fetched(batch) for batch in batches]
        self._append(fetched)
        self._wait(fetched)

    def _fetched(self, batch: RaftBatch) -> FetchedBatch:
        """Return a batch of another leader, or encode this node's control records."""
        if batch.payload is not None:
            assert isinstance(batch.payload, FetchedBatch), batch
            return batch.payload
        builder = BatchBuilder(
            base_offset=batch.base_offset,
            leader_epoch=batch.epoch,
            timestamp_ms=self._clock.now_ms(),
        )
        builder.add_control(batch.controls)
        assert builder.next_offset == batch.end_offset, batch
        (fetched,) = _split(builder.batches)
        return fetched

    def append_change(self, batches: EncodedBatches, change: ClusterChange) -> list[RaftBatch]:
        """Append a change of this node's controller; return the batches for the machine.

        Raises:
            OSError: Nothing was appended.
        """
        fetched = _split(batches)
        self._append(fetched)
        self._wait(fetched, change=change)
        return [raft_batch(one) for one in fetched]

    def _append(self, batches: Sequence[FetchedBatch]) -> None:
        self.store.append([batch for _, batch in batches], [header for header, _ in batches])

    def _wait(
        self, batches: Sequence[FetchedBatch], *, change: ClusterChange | None = None
    ) -> None:
        for fetched in batches:
            header = fetched.header
            is_last = fetched is batches[-1]
            if not header.is_control and self._first_data is None:
                self._first_data = header.base_offset
            self._unapplied.add(
                WaitingBatch(
                    header.last_offset + 1,
                    header.leader_epoch,
                    fetched,
                    change if is_last else None,
                    is_part=not is_last and change is not None,
                )
            )

    async def truncate(self, end_offset: int) -> None:
        """Delete the records from an offset on, also on disk.

        Raises:
            OSError: The disk failed.
        """
        self.generation += 1
        for sync in self.store.truncate_to(end_offset):
            await in_thread(Work.METADATA, sync)
        self._unapplied.truncate(end_offset)
        if self._first_data is not None and self._first_data >= end_offset:
            self._first_data = None

    async def sync(self) -> None:
        """Wait until everything appended so far is on disk.

        Raises:
            OSError: The content of the disk is unknown.
        """
        await in_thread(Work.METADATA, self.store.sync)

    async def take_committed(self, high_watermark: int) -> list[WaitingBatch]:
        """Return the next committed batches, each once; none if none are left.

        Raises:
            KafkaError: CORRUPT_MESSAGE: a batch was damaged on disk.
            OSError: The disk failed.
        """
        committed = self._unapplied.take(high_watermark)
        if not committed and (stored := self._unapplied.next_stored(high_watermark)) is not None:
            piece = self.store.slice_from(*stored, _MAX_PIECE_BYTES)
            if piece is None:
                return []  # the high watermark is within a batch
            batches = await in_thread(Work.WARMING, _read_checked, piece)
            committed = [
                WaitingBatch(header.last_offset + 1, header.leader_epoch, FetchedBatch(header, one))
                for header, one in batches
            ]
            self._unapplied.took_stored(committed[-1].end_offset)
        if committed:
            self.last_timestamp_ms = committed[-1].fetched.header.max_timestamp
        return committed

    # Reading

    def slice(self, records: LogSlice) -> FileSlice | None:
        """Return whole batches to read."""
        max_bytes = min(records.max_bytes, _MAX_PIECE_BYTES)
        return self.store.slice_from(records.start_offset, records.end_offset, max_bytes)

    async def read_snapshot(self, point: LogPoint, piece: SnapshotSlice) -> bytes:
        """Return bytes of a snapshot.

        Raises:
            FileNotFoundError: It was replaced.
        """
        snapshot = SnapshotId(point.offset, point.epoch)
        _, data = await in_thread(
            Work.WARMING,
            self.store.read_snapshot_part,
            snapshot,
            piece.position,
            min(piece.max_bytes, _MAX_PIECE_BYTES),
        )
        return data

    # Snapshots that are downloaded

    def write_part(self, point: LogPoint, position: int, data: bytes) -> None:
        """Write bytes of a snapshot that is being downloaded.

        Raises:
            OSError: The disk failed.
        """
        file = self._part_file(point)
        if position == 0:
            file.unlink()
        assert file.size() == position, (point, position)
        file.write_at(position, data)

    async def check_part(self, point: LogPoint) -> tuple[SnapshotContents, bytes]:
        """Read a downloaded snapshot.

        Raises:
            KafkaError: CORRUPT_MESSAGE: it is damaged; it is deleted.
            OSError: The disk failed.
        """
        file = self._part_file(point)
        file.close()
        content = await in_thread(Work.UPKEEP, self._files.read_file, file.path)
        return await in_thread(Work.UPKEEP, read_snapshot, content), content

    def delete_part(self, point: LogPoint) -> None:
        """Delete a downloaded snapshot."""
        self._part_file(point).unlink()
        self._part = None

    async def install(self, point: LogPoint, content: bytes) -> None:
        """Replace the log by a downloaded snapshot.

        Raises:
            OSError: The disk failed.
        """
        snapshot = SnapshotId(point.offset, point.epoch)
        # Not METADATA: votes and their syncs must not wait for this one.
        await in_thread(Work.UPKEEP, self.store.write_snapshot, snapshot, content)
        self.generation += 1
        self._is_formatted_only = False
        self._unapplied.clear()
        self.store.restart_at(snapshot)
        self.delete_part(point)

    def _part_file(self, point: LogPoint) -> DataFile:
        """Return the file of a download: one object, because each keeps a descriptor."""
        name = f"{SnapshotId(point.offset, point.epoch).file_name}{_PART}"
        path = f"{self.store.directory}/{name}"
        if self._part is None or self._part.path != path:
            if self._part is not None:
                self._part.close()
            self._part = self._files.data(path)
        return self._part


def _read_checked(piece: FileSlice) -> list[FetchedBatch]:
    """Read and check the batches of a slice, which is not empty. Blocks.

    Raises:
        KafkaError: CORRUPT_MESSAGE: a batch is damaged or missing.
        OSError: The disk failed.
    """
    batches = checked_batches(read_batches(piece))
    if not batches:
        raise KafkaError(
            ErrorCode.CORRUPT_MESSAGE, f"the metadata log ends within the {piece.length} bytes read"
        )
    return batches


def _split(batches: EncodedBatches) -> list[FetchedBatch]:
    return [
        FetchedBatch(header, buffer)
        for header, buffer in zip(batches.headers, batches.buffers, strict=True)
    ]


def point_of(snapshot: SnapshotId) -> LogPoint:
    """Return a snapshot's end."""
    return LogPoint(snapshot.epoch, snapshot.end_offset)


def raft_batch(fetched: FetchedBatch) -> RaftBatch:
    """Return a batch as the machine sees it."""
    header = fetched.header
    controls = tuple(control_records(fetched.batch, header)) if header.is_control else ()
    return RaftBatch(
        header.base_offset, header.last_offset + 1, header.leader_epoch, controls, fetched
    )
