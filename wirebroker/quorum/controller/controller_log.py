"""The metadata log of the active controller in one epoch, as its engine sees it.

    append()     appends a whole change, if this node still leads the epoch
    RaftNode     syncs and replicates it; a majority of the voters commits it
    follower     publishes each committed change in order; then responses leave

Invariant: `committed_offset` is the offset of the follower's image, so a client that learns of a
topic finds its partitions.

After a failed write or sync nothing is appended until a restart, but committed changes are still
published. A write to a full disk is undone and fails only its own change.

Source: Kafka's RaftClient.prepareAppend and QuorumController.handleCommit (KIP-500, KIP-595).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.disks.data_directory import is_disk_failure
from wirebroker.quorum.log.metadata_batches import BatchBuilder, framed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from wirebroker.base.clock import Clock, Steps
    from wirebroker.codecs.metadata_records import MetadataRecord
    from wirebroker.coordinator.controller.controller_machine import ClusterChange
    from wirebroker.coordinator.outcome import Moment, ProducerEpoch
    from wirebroker.quorum.image.metadata_follower import MetadataFollower
    from wirebroker.quorum.log.metadata_batches import EncodedBatches
    from wirebroker.quorum.raft.raft_node import RaftNode
    from wirebroker.storage.log.producers.verification import VerificationGuard


class ControllerLog:
    """The log in one term of leadership.

    Attributes:
        epoch: The epoch that this node leads.
    """

    __slots__ = ("_clock", "_follower", "_node", "_watchers", "epoch")

    def __init__(
        self, node: RaftNode, follower: MetadataFollower, clock: Clock, *, epoch: int
    ) -> None:
        self.epoch = epoch
        self._node = node
        self._follower = follower
        self._clock = clock
        self._watchers: list[Callable[[], None]] = []

    # The engine's interface

    @property
    def name(self) -> str:
        """The name in messages."""
        return "the metadata log"

    @property
    def end_offset(self) -> int:
        """The end of the log, on disk or not."""
        return self._node.end_offset

    @property
    def committed_offset(self) -> int:
        """The end of the published records."""
        return self._follower.image.offset

    @property
    def failure(self) -> KafkaError | None:
        """KAFKA_STORAGE_ERROR after a disk failure, once everything committed is published."""
        if self._node.failure is None or not self._node.is_applied:
            return None
        return KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, self._node.failure)

    def watch(self, on_advance: Callable[[], None]) -> None:
        """Call `on_advance` after each published change and on a disk failure."""
        self._watchers.append(on_advance)

    def unwatch(self, on_advance: Callable[[], None]) -> None:
        """Remove a callback."""
        self._watchers = [watcher for watcher in self._watchers if watcher != on_advance]

    def append(
        self,
        records: Sequence[ClusterChange],
        now: Moment,
        producer: ProducerEpoch | None = None,
        guard: VerificationGuard | None = None,
    ) -> None:
        """Append a change that was encoded for the end of the log.

        Raises:
            KafkaError: Nothing was appended. NOT_CONTROLLER: this node no longer leads the epoch;
                KAFKA_STORAGE_ERROR.
            OSError: The disk failed.
        """
        del now, guard  # already encoded
        assert producer is None, "producers do not write metadata"
        [change] = records
        if self._node.failure is not None:
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, self._node.failure)
        try:
            self._node.append(self.epoch, change.encoded, change)
        except KafkaError as error:
            raise KafkaError(ErrorCode.NOT_CONTROLLER, error.message) from error
        except OSError as error:
            if is_disk_failure(error):
                raise
            message = f"the metadata log cannot be written now: {error}"
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, message) from error

    def cut(self, records: Sequence[ClusterChange]) -> Iterator[Sequence[ClusterChange]]:
        """Yield each change on its own."""
        for change in records:
            yield [change]

    def disk_failed(self, error: OSError) -> None:
        """End the replica: the log's end on disk is unknown."""
        self._node.fail(error)

    # The controller's interface

    def encode(self, records: list[MetadataRecord]) -> Steps[EncodedBatches]:
        """Encode the next records in steps; they count together or not at all."""
        batches = BatchBuilder(
            base_offset=self._node.end_offset,
            leader_epoch=self.epoch,
            timestamp_ms=self._clock.now_ms(),
        )
        for record in framed(records):
            batches.add(record)
            yield
        batches.finish_batch()
        return batches.batches

    def notify(self) -> None:
        """Have the waiting responses released: a change was published, or the disk has failed."""
        for watcher in tuple(self._watchers):
            watcher()
