"""This broker's copy of a metadata log that controllers elsewhere write.

Records lost in a power failure are fetched again, so only snapshots are synced.

Source: Kafka's KafkaRaftClient (as observer) and SnapshotGenerator (KIP-595, KIP-630).
"""

from __future__ import annotations

import logging
from collections import deque
from typing import TYPE_CHECKING, Final, NamedTuple

from wirebroker.base.clock import Slices
from wirebroker.base.threads import Work, in_thread
from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.codecs.records.batch import batch_crc, read_batch_header
from wirebroker.codecs.records.control import KRaftVersion
from wirebroker.coordinator.controller.image.cluster_image import ClusterImage
from wirebroker.coordinator.controller.image.image_builder import ImageBuilder
from wirebroker.quorum.log.metadata_batches import EncodedBatches, decode_batch
from wirebroker.quorum.log.metadata_snapshot import (
    SnapshotContents,
    SnapshotId,
    control_records,
    read_snapshot,
)
from wirebroker.quorum.log.metadata_store import MetadataStore
from wirebroker.quorum.log.snapshot_writer import SnapshotWriter

if TYPE_CHECKING:
    from wirebroker.base.clock import Clock
    from wirebroker.codecs.records.batch import BatchHeader
    from wirebroker.config import Config
    from wirebroker.storage.files import Files

LOGGER = logging.getLogger(__name__)

_LENGTH_END: Final = 12


class FetchedBatch(NamedTuple):
    """A whole batch and its header."""

    header: BatchHeader
    batch: bytes | bytearray | memoryview


def whole_batches(records: memoryview) -> list[FetchedBatch]:
    """Return the whole batches of a Fetch response, without a partial one at its end.

    Raises:
        KafkaError: CORRUPT_MESSAGE: a batch is malformed, or its checksum differs.
    """
    batches: list[FetchedBatch] = []
    position, end = 0, len(records)
    while end - position >= _LENGTH_END:
        size = int.from_bytes(records[position + 8 : position + 12], signed=True) + _LENGTH_END
        if size > end - position:
            break
        header = read_batch_header(records, position)
        if batch_crc(records, position, header.size) != header.crc:
            raise KafkaError(
                ErrorCode.CORRUPT_MESSAGE,
                f"the CRC-32C does not match at offset {header.base_offset}",
            )
        batches.append(FetchedBatch(header, records[position : position + size]))
        position += size
    return batches


async def image_of_snapshot(
    contents: SnapshotContents, snapshot: SnapshotId, clock: Clock
) -> ClusterImage:
    """Return the image of a snapshot, built in slices.

    Raises:
        KafkaError: UNSUPPORTED_VERSION for unknown records.
        MalformedFrameError: A record is malformed.
    """
    slices = Slices(clock)
    builder = ImageBuilder(ClusterImage())
    for header, batch in contents.batches:
        for record in decode_batch(batch, header):
            builder.apply(record)
            await slices.turn()
    steps = builder.finish(offset=snapshot.end_offset, epoch=snapshot.epoch)
    image, _ = await slices.run(steps)
    return image


class ObservedLog:
    """The copy in one log directory; used on one event loop."""

    __slots__ = (
        "_clock",
        "_last_timestamp_ms",
        "_snapshots",
        "_store",
        "_uncommitted",
    )

    # _uncommitted: the batches from the applied offset to the end, in order.

    def __init__(self, log_directory: str, *, files: Files, clock: Clock, config: Config) -> None:
        self._store = MetadataStore(files, log_directory, clock)
        self._clock = clock
        self._snapshots = SnapshotWriter(self._store, clock=clock, config=config)
        self._uncommitted: deque[FetchedBatch] = deque()
        self._last_timestamp_ms = 0

    @property
    def directory(self) -> str:
        """The path of the log's directory."""
        return self._store.directory

    @property
    def end_offset(self) -> int:
        """The next offset to fetch."""
        return self._store.end_offset

    @property
    def last_epoch(self) -> int:
        """The leader epoch of the last record, or 0."""
        return max(0, self._store.latest_epoch)

    @property
    def kraft_version(self) -> int:
        """The level of kraft.version in the applied part of the log."""
        levels = [
            record.kraft_version
            for record in self._snapshots.voters
            if isinstance(record, KRaftVersion)
        ]
        return levels[-1] if levels else 0

    async def load(self) -> ClusterImage:
        """Return the image of the newest snapshot; later records wait for commits.

        Raises:
            StartError: Records are missing.
            KafkaError, MalformedFrameError: A record is unreadable or unknown.
            OSError: The disk failed.
        """
        store = self._store
        store.open()
        content = store.read_snapshot()
        image = ClusterImage()
        if content is not None:
            contents = read_snapshot(content)
            image = await image_of_snapshot(contents, store.snapshots[-1], self._clock)
            self._snapshots.note_voters(contents.voters)
        store.remove_leftovers()
        self._uncommitted.extend(FetchedBatch(*recovered) for recovered in store.recover())
        return image

    async def close(self) -> None:
        """Close the files."""
        await self._snapshots.settle()
        self._store.close()

    # The leader's instructions

    def append(self, batches: list[FetchedBatch]) -> None:
        """Append the next batches.

        Raises:
            KafkaError: CORRUPT_MESSAGE: offsets or epochs do not follow; earlier batches stay.
            OSError: The disk failed.
        """
        for fetched in batches:
            header = fetched.header
            if header.base_offset != self.end_offset or header.leader_epoch < self.last_epoch:
                raise KafkaError(
                    ErrorCode.CORRUPT_MESSAGE,
                    f"a batch at {header.base_offset} of epoch {header.leader_epoch} does not "
                    f"follow the end {self.end_offset} of epoch {self.last_epoch}",
                )
            if header.leader_epoch > self._store.latest_epoch:
                self._store.begin_epoch(header.leader_epoch)
            self._store.append(EncodedBatches([bytearray(fetched.batch)], [header]))
            self._uncommitted.append(fetched)

    def take_committed(self, high_watermark: int) -> list[FetchedBatch]:
        """Return the newly committed batches, once."""
        committed: list[FetchedBatch] = []
        while self._uncommitted and self._uncommitted[0].header.last_offset < high_watermark:
            fetched = self._uncommitted.popleft()
            self._last_timestamp_ms = fetched.header.max_timestamp
            if fetched.header.is_control:
                self._snapshots.note_voters(control_records(fetched.batch, fetched.header))
            committed.append(fetched)
        return committed

    def truncate(self, epoch: int, end_offset: int) -> None:
        """Truncate to the leader's log, where `epoch` ended at `end_offset`.

        Raises:
            KafkaError: CORRUPT_MESSAGE: it would remove committed records.
            OSError: The disk failed.
        """
        new_end = self._store.common_end(epoch, end_offset)
        committed = self.end_offset
        if self._uncommitted:
            committed = self._uncommitted[0].header.base_offset
        if new_end < committed:
            raise KafkaError(
                ErrorCode.CORRUPT_MESSAGE,
                f"the quorum's log ends at {new_end}, but {committed} records were committed",
            )
        LOGGER.info("truncating the metadata log from %d to %d", self.end_offset, new_end)
        self._store.truncate_to(new_end)
        while self._uncommitted and self._uncommitted[-1].header.last_offset >= new_end:
            self._uncommitted.pop()

    async def install(self, snapshot: SnapshotId, content: bytes) -> ClusterImage:
        """Replace the log by a snapshot; return its image.

        Raises:
            KafkaError, MalformedFrameError: It is damaged, or from a newer Kafka.
            OSError: The disk failed.
        """
        contents = await in_thread(Work.UPKEEP, read_snapshot, content)
        image = await image_of_snapshot(contents, snapshot, self._clock)
        await self._snapshots.settle()
        self._uncommitted.clear()
        self._snapshots.voters = []
        self._snapshots.note_voters(contents.voters)
        await in_thread(Work.METADATA, self._store.write_snapshot, snapshot, content)
        self._store.restart_at(snapshot)
        return image

    # Own snapshots

    def condense(self, image: ClusterImage) -> None:
        """Begin a snapshot of the applied image, if one is due.

        Raises:
            OSError: The disk failed.
        """
        if image.open_transaction is not None or not self._snapshots.is_due:
            return
        self._store.roll()
        self._snapshots.begin(image, timestamp_ms=self._last_timestamp_ms)
