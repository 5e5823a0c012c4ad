"""The log that a one-voter controller writes: offsets, epochs, voters and files.

Source: Kafka's KafkaRaftClient and SnapshotGenerator, for a quorum of one voter (KIP-595, KIP-630).
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from wirebroker.base.clock import Slices
from wirebroker.base.threads import Work, in_thread
from wirebroker.codecs.records.control import (
    KRaftVersion,
    KRaftVoters,
    LeaderChange,
    QuorumVoter,
)
from wirebroker.config.rows.row import StartError
from wirebroker.coordinator.controller.image.cluster_image import ClusterImage
from wirebroker.coordinator.controller.image.image_builder import ImageBuilder
from wirebroker.disks.data_directory import is_disk_failure
from wirebroker.quorum.log.metadata_batches import BatchBuilder, decode_batch, framed
from wirebroker.quorum.log.metadata_snapshot import (
    FORMATTED,
    SnapshotContents,
    control_records,
    read_snapshot,
)
from wirebroker.quorum.log.metadata_store import MetadataStore
from wirebroker.quorum.log.quorum_state import read_quorum_state, write_quorum_state
from wirebroker.quorum.log.snapshot_writer import SnapshotWriter

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from wirebroker.base.clock import Clock, Steps
    from wirebroker.codecs.metadata_records import MetadataRecord
    from wirebroker.codecs.records.control import ControlRecord
    from wirebroker.config import Config
    from wirebroker.quorum.log.metadata_batches import EncodedBatches
    from wirebroker.storage.files import Files

LOGGER = logging.getLogger(__name__)


class MetadataLog:
    """The metadata log in one log directory; used on one event loop.

    Attributes:
        epoch: The epoch that this node leads, from lead() on.
        is_unused: Whether load() found no data record outside the first snapshot, by Apache
            Kafka's storage tool: no controller has initialized the cluster yet.
    """

    __slots__ = (
        "_clock",
        "_files",
        "_last_timestamp_ms",
        "_node_id",
        "epoch",
        "is_unused",
        "snapshots",
        "store",
    )

    def __init__(
        self, log_directory: str, *, files: Files, clock: Clock, config: Config, node_id: int
    ) -> None:
        self.store = MetadataStore(files, log_directory, clock)
        self._files = files
        self._clock = clock
        self._node_id = node_id
        self.epoch = 0
        self.is_unused = False
        self._last_timestamp_ms = 0
        self.snapshots = SnapshotWriter(self.store, clock=clock, config=config)

    @property
    def directory(self) -> str:
        """The path of the log's directory."""
        return self.store.directory

    @property
    def end_offset(self) -> int:
        """The offset after the last record, on disk or not."""
        return self.store.end_offset

    async def close(self) -> None:
        """Close the files."""
        await self.snapshots.settle()
        self.store.close()

    # Loading and leading

    async def load(self) -> ClusterImage:
        """Return the image of the whole log. The files are only read.

        Raises:
            StartError: Records are missing, or there are other voters.
            KafkaError, MalformedFrameError: A record is unreadable or unknown.
            OSError: The disk failed.
        """
        self.store.open()
        slices = Slices(self._clock)
        builder = ImageBuilder(ClusterImage())
        offset = epoch = 0
        content = self.store.read_snapshot()
        if content is not None:
            snapshot = read_snapshot(content)
            await self._replay_snapshot(builder, snapshot, slices)
            offset, epoch = self.store.snapshots[-1]
        self.is_unused = (offset, epoch) == FORMATTED
        for header, batch in self.store.recover():
            epoch = header.leader_epoch
            self._last_timestamp_ms = header.max_timestamp
            if header.is_control:
                self._note_voters(control_records(batch, header))
                continue
            self.is_unused = False
            for record in decode_batch(batch, header, from_offset=offset):
                builder.apply(record)
                await slices.turn()
        image, _ = await slices.run(builder.finish(offset=self.store.end_offset, epoch=epoch))
        return image

    async def _replay_snapshot(
        self, builder: ImageBuilder, snapshot: SnapshotContents, slices: Slices
    ) -> None:
        self._note_voters(snapshot.voters)
        self._last_timestamp_ms = snapshot.timestamp_ms
        for header, batch in snapshot.batches:
            for record in decode_batch(batch, header):
                builder.apply(record)
                await slices.turn()

    def _note_voters(self, records: Iterable[ControlRecord]) -> None:
        records = list(records)
        self.snapshots.note_voters(records)
        for record in records:
            if isinstance(record, KRaftVoters):
                other_voters = {voter.voter_id for voter in record.voters} - {self._node_id}
                if other_voters:
                    raise StartError(
                        f"{self.store.directory} has other voters than this node: {other_voters}",
                        "choose a directory whose only voter is this node",
                    )

    def lead(self, image: ClusterImage) -> ClusterImage:
        """Begin the next epoch, whose number is synced before its first record.

        Return the image after the epoch's first records, which are not synced yet.
        """
        self.store.remove_leftovers()
        directory = self.store.directory
        state = read_quorum_state(self._files, directory, node_id=self._node_id)
        self.epoch = max(state.leader_epoch, self.store.latest_epoch, image.epoch) + 1
        is_dynamic = any(
            isinstance(record, KRaftVersion) and record.kraft_version
            for record in self.snapshots.voters
        )
        data_version = 1 if is_dynamic else state.data_version
        state = state._replace(leader_epoch=self.epoch, data_version=data_version)
        write_quorum_state(self._files, directory, state, node_id=self._node_id)
        self.store.begin_epoch(self.epoch)
        self._last_timestamp_ms = self._clock.now_ms()
        batches = self._builder(image.offset)
        voter = (QuorumVoter(self._node_id),)
        # Voters from formatting become part of the log.
        voters = self.snapshots.voters if image.offset == 0 else []
        batches.add_control([LeaderChange(self._node_id, voter, voter), *voters])
        self.store.append(batches.batches)
        return ImageBuilder(image).build(offset=batches.next_offset, epoch=self.epoch)[0]

    # Appending

    def encode(self, records: list[MetadataRecord]) -> Steps[EncodedBatches]:
        """Encode the next records in steps; they count together or not at all.

        Nothing may be appended before their `append`.
        """
        self._last_timestamp_ms = self._clock.now_ms()
        batches = self._builder(self.store.end_offset)
        for record in framed(records):
            batches.add(record)
            yield
        batches.finish_batch()
        return batches.batches

    def append(self, batches: EncodedBatches) -> None:
        """Append encoded batches, for the next sync.

        Raises:
            OSError: Nothing was appended.
        """
        self.store.append(batches)

    async def sync(self) -> None:
        """Wait until everything appended so far is on disk.

        Raises:
            OSError: The content of the disk is unknown.
        """
        await in_thread(Work.METADATA, self.store.sync)

    def _builder(self, base_offset: int) -> BatchBuilder:
        return BatchBuilder(
            base_offset=base_offset,
            leader_epoch=self.epoch,
            timestamp_ms=self._last_timestamp_ms,
        )

    # Snapshots

    def condense(self, image: ClusterImage, on_failure: Callable[[OSError], None]) -> None:
        """Begin a snapshot if one is due; `image` is that of the whole log, all committed.

        `on_failure` is called if the disk fails so that the log is unusable.
        """
        assert image.offset == self.store.end_offset
        if not self.snapshots.is_due or image.open_transaction is not None:
            return
        try:
            self.store.roll()
        except OSError as error:
            if is_disk_failure(error):
                on_failure(error)
            else:
                LOGGER.warning("cannot start a metadata snapshot: %s", error)
            return
        self.snapshots.begin(image, timestamp_ms=self._last_timestamp_ms)
