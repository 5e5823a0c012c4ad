"""A state machine's log: key and value pairs in the record batches of an internal partition.

Source: Kafka's CoordinatorPartitionWriter, TransactionStateManager.appendTransactionToLog;
CoordinatorOperationExceptionHelper for the error codes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.codecs.records.batch import NO_PRODUCER_EPOCH, NO_PRODUCER_ID, build_batch
from wirebroker.codecs.records.codec import Codec
from wirebroker.codecs.records.layout import HEADER_BYTES
from wirebroker.storage.log.append import AppendOrigin
from wirebroker.storage.log.validation.record_validation import Walked
from wirebroker.storage.long_work import TakesLongError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from wirebroker.codecs.coordinator_records import CoordinatorRecord
    from wirebroker.codecs.records.coordinator_batches import KeyValueWalk
    from wirebroker.coordinator.outcome import Marker, Moment, ProducerEpoch
    from wirebroker.replica.partition import Partition
    from wirebroker.storage.log.producers.verification import VerificationGuard

# Upper bounds for a record and a batch.
_RECORD_OVERHEAD_BYTES = 32
_BATCH_OVERHEAD_BYTES = 128
_NO_PRODUCER = (NO_PRODUCER_ID, NO_PRODUCER_EPOCH)
# A Produce version that allows every kind of record.
_REQUEST_VERSION = 13

_APPEND_ERRORS = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.REQUEST_TIMED_OUT: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_LEADER_OR_FOLLOWER: ErrorCode.NOT_COORDINATOR,
    ErrorCode.FENCED_LEADER_EPOCH: ErrorCode.NOT_COORDINATOR,
    ErrorCode.UNKNOWN_LEADER_EPOCH: ErrorCode.NOT_COORDINATOR,
    ErrorCode.KAFKA_STORAGE_ERROR: ErrorCode.NOT_COORDINATOR,
    ErrorCode.MESSAGE_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
    ErrorCode.RECORD_LIST_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
    ErrorCode.INVALID_FETCH_SIZE: ErrorCode.UNKNOWN_SERVER_ERROR,
}


class PartitionLog:
    """One partition in one leader epoch; appends in any other are refused.

    Attributes:
        leader_epoch: The epoch of its election; also the coordinator epoch.
        end_offset: The end of the last append here.
    """

    __slots__ = (
        "_base_sequence",
        "_batch_offset",
        "_codec",
        "_on_disk_failure",
        "_walk",
        "end_offset",
        "leader_epoch",
        "partition",
    )

    def __init__(
        self,
        partition: Partition,
        leader_epoch: int,
        *,
        codec: Codec = Codec.NONE,
        base_sequence: int = 0,
        on_disk_failure: Callable[[Partition, OSError], None],
    ) -> None:
        self.partition = partition
        self.leader_epoch = leader_epoch
        self.end_offset = partition.log.log_end_offset
        self._codec = codec
        self._batch_offset = self.end_offset
        self._walk: KeyValueWalk | None = None
        # In Kafka 0 for the group coordinator, none for the transaction coordinator.
        self._base_sequence = base_sequence
        self._on_disk_failure = on_disk_failure

    @property
    def name(self) -> str:
        """Topic and partition."""
        return f"{self.partition.topic}-{self.partition.index}"

    @property
    def batch_offset(self) -> int:
        """The first offset of the batch that is being replayed, or else was appended last."""
        return self._batch_offset if self._walk is None else self._walk.next_offset

    def replay_by(self, walk: KeyValueWalk | None) -> None:
        """Note the walk that a load replays next, or the end of the load."""
        self._walk = walk

    @property
    def committed_offset(self) -> int:
        """The high watermark."""
        return self.partition.log.high_watermark

    @property
    def failure(self) -> KafkaError | None:
        """NOT_COORDINATOR after a failed sync: open appends will never be committed."""
        if self.partition.directory.is_online:
            return None
        return KafkaError(ErrorCode.NOT_COORDINATOR)

    def watch(self, on_advance: Callable[[], None]) -> None:
        """Call `on_advance` when the high watermark rises or the disk fails."""
        self.partition.watch(on_advance)

    def unwatch(self, on_advance: Callable[[], None]) -> None:
        """Remove a callback."""
        self.partition.unwatch(on_advance)

    def append(
        self,
        records: Sequence[CoordinatorRecord],
        now: Moment,
        producer: ProducerEpoch | None = None,
        guard: VerificationGuard | None = None,
    ) -> None:
        """Append one batch.

        Raises:
            KafkaError: NOT_COORDINATOR, COORDINATOR_NOT_AVAILABLE or UNKNOWN_SERVER_ERROR; with
                `producer` also INVALID_PRODUCER_EPOCH or INVALID_TXN_STATE.
            OSError: The disk failed.
        """
        producer_id, producer_epoch = producer or _NO_PRODUCER
        pairs = [(key, value, ()) for key, value in records]
        batch = build_batch(
            pairs,
            timestamp_ms=now.wall_ms,
            codec=self._codec,
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            base_sequence=self._base_sequence,
            is_transactional=producer is not None,
        )
        # The known result of a walk, which would be refused on the loop for records that
        # decompress to a large size.
        plain = build_batch(pairs, timestamp_ms=now.wall_ms) if self._codec else batch
        walked = Walked(None, now.wall_ms, [], 0, False, len(plain) - HEADER_BYTES)
        try:
            self._check_free()
            result = self.partition.append(
                memoryview(batch),
                now_ms=now.wall_ms,
                request_version=_REQUEST_VERSION,
                origin=AppendOrigin.CLIENT if producer is None else AppendOrigin.COORDINATOR,
                guard=guard,
                walked=walked,
            )
        except KafkaError as error:
            raise KafkaError(_APPEND_ERRORS.get(error.code, error.code), error.message) from error
        except TakesLongError as refusal:
            raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR) from refusal
        self._batch_offset = result.last_offset + 1 - len(records)
        self.end_offset = result.last_offset + 1

    def append_marker(self, marker: Marker, now_ms: int) -> None:
        """Append the end of a producer's transaction.

        Raises:
            KafkaError: INVALID_PRODUCER_EPOCH, TRANSACTION_COORDINATOR_FENCED,
                NOT_ENOUGH_REPLICAS, or from check_leader; REQUEST_TIMED_OUT if a thread is
                appending.
            OSError: The disk failed.
        """
        self._check_free()
        result = self.partition.append_marker(**marker._asdict(), now_ms=now_ms)
        self.end_offset = result.last_offset + 1

    def delete_prefix(self, offset: int) -> None:
        """Delete the records below an offset, as DeleteRecords does.

        Raises:
            KafkaError: OFFSET_OUT_OF_RANGE above the high watermark, or from check_leader;
                REQUEST_TIMED_OUT if a thread is appending.
        """
        self._check_free()
        self.partition.log.increment_log_start_offset(offset)

    def cut(self, records: Sequence[CoordinatorRecord]) -> Iterator[Sequence[CoordinatorRecord]]:
        """Yield the records in pieces that fit into one batch."""
        limit = self.partition.log.settings.max_message_bytes - _BATCH_OVERHEAD_BYTES
        batch: list[CoordinatorRecord] = []
        size = 0
        for record in records:
            record_size = _RECORD_OVERHEAD_BYTES + len(record.key) + len(record.value or b"")
            if batch and size + record_size > limit:
                yield batch
                batch, size = [], 0
            batch.append(record)
            size += record_size
        if batch:
            yield batch

    def disk_failed(self, error: OSError) -> None:
        """Report a failed append."""
        self._on_disk_failure(self.partition, error)

    def _check_free(self) -> None:
        """Check that an append is possible now."""
        partition = self.partition
        partition.check_leader(self.leader_epoch)
        partition.check_in_sync()
        if partition.is_appending:
            # A client appends large batches to the topic itself.
            raise KafkaError(ErrorCode.REQUEST_TIMED_OUT)
