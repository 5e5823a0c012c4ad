"""Lookup and reads of the partitions of one Fetch.

max_bytes limits the whole response and each partition; but the first partition with records returns
at least one batch, so that a consumer never gets stuck.

As in Kafka, unknown partitions come last, those of unknown ids first among them, and do not end the
wait; a partition that fails during a read does.

    consumer up to v10    up to the high watermark or last stable offset, from the leader only
    consumer from v11     the same, from any replica (KIP-392); a leader may name a nearer one

Source: Kafka's KafkaApis.handleFetchRequest, ReplicaManager.readFromLog, Partition.readRecords.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from wirebroker.api.data.absent_partitions import missing_partition_error
from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.codecs.hot.fetch_response import FetchPartitionResult
from wirebroker.codecs.permissions import READ_TOPIC
from wirebroker.codecs.primitives import ZERO_UUID
from wirebroker.replica.nearest_replica import nearest_replica
from wirebroker.request.fetch_session import Results, SessionPartition, records_length
from wirebroker.request.fetch_sessions import TOPIC_ID_VERSION
from wirebroker.storage.files import FileSlice
from wirebroker.storage.log.read import aborted_in

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from wirebroker.api.broker import Broker
    from wirebroker.authorization.access import RequestAccess
    from wirebroker.base.clock import Steps
    from wirebroker.codecs.hot.fetch import FetchRequest
    from wirebroker.replica.partition import Partition
    from wirebroker.storage.log.log import Log

READ_COMMITTED = 1
# First version with KAFKA_STORAGE_ERROR (KIP-112).
_STORAGE_ERROR_VERSION = 6
# First version that may read from any replica (KIP-392).
_ANY_REPLICA_VERSION = 11
# First version that names new leaders (KIP-951), with the errors _MOVED.
_LEADER_VERSION = 16
# Faults of the client, or of a disk, which is counted elsewhere.
_UNCOUNTED_ERRORS = frozenset(
    {
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.OFFSET_OUT_OF_RANGE,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
    }
)
_MOVED = frozenset({ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH})


class PartitionReads:
    """The reads of one consumer's Fetch.

    Attributes:
        found: Existing partitions in the order of service; positions are their numbers.
        results: After `look`, the results of those, then of the others.
        size: Bytes of records in the results.
        has_failed: Whether an error ends the wait.
        may_block: Whether `look` blocks on the disk; otherwise it raises ColdPagesError.
    """

    __slots__ = (
        "_absent",
        "_access",
        "_broker",
        "_by_id",
        "_client_rack",
        "_is_of_leader",
        "_is_read_committed",
        "_max_bytes",
        "_version",
        "found",
        "has_failed",
        "max_wait_ms",
        "may_block",
        "min_bytes",
        "results",
        "size",
    )

    def __init__(
        self,
        broker: Broker,
        request: FetchRequest,
        version: int,
        access: RequestAccess | None = None,
    ) -> None:
        """Prepare the reads; without `access` the client may read all topics."""
        self._access = access
        self._broker = broker
        self._version = version
        self._by_id = version >= TOPIC_ID_VERSION
        self._is_of_leader = version < _ANY_REPLICA_VERSION
        self._client_rack = request.rack_id
        self._is_read_committed = request.isolation_level == READ_COMMITTED
        self._max_bytes = min(request.max_bytes, broker.config.int("fetch.max.bytes"))
        self.min_bytes = min(request.min_bytes, self._max_bytes)
        self.max_wait_ms = request.max_wait_ms
        self.may_block = False
        self.found: list[tuple[SessionPartition, Partition]] = []
        self._absent: Results = []
        self.results: Results = []
        self.size = 0
        self.has_failed = False

    def limit(self, most_bytes: int) -> None:
        """Limit the response's bytes, except for a single batch."""
        self._max_bytes = min(self._max_bytes, most_bytes)
        self.min_bytes = min(self.min_bytes, self._max_bytes)

    def appended_bytes(self) -> Sequence[int]:
        """Return the numbers of partitions that may have grown between the read and the watch."""
        return ()  # a consumer's read changes nothing

    def find(self, partitions: list[SessionPartition]) -> Steps[None]:
        """Look up the requested partitions."""
        by_id = self._by_id
        unknown: Results = []
        find = self._broker.replicas.find
        for requested in partitions:
            by_index, missing = find(requested.topic, requested.topic_id, by_id=by_id)
            if self._access is not None and not self._may_read(requested):
                denied = _failure(requested, ErrorCode.TOPIC_AUTHORIZATION_FAILED)
                denied.aborted_transactions = ()
                unknown.append((requested, denied))
                continue
            partition = by_index.get(requested.wanted.index)
            if by_id and by_index and not requested.topic:
                # Sessions keep the name.
                name = next(iter(by_index.values())).topic
                requested = SessionPartition(name, requested.topic_id, requested.wanted)  # noqa: PLW2901 - the same, with its name
            if (
                partition is None
                and by_id
                and missing == ErrorCode.UNKNOWN_TOPIC_ID
                and requested.topic
            ):
                # The topic was deleted after the session saw it, and perhaps created again.
                partition = find(requested.topic, b"", by_id=False)[0].get(requested.wanted.index)
                missing = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            if partition is None:
                missing = missing_partition_error(
                    self._broker,
                    missing,
                    requested.wanted.index,
                    name=requested.topic,
                    topic_id=requested.topic_id if by_id else ZERO_UUID,
                )
                result = _failure(requested, missing)
                result.aborted_transactions = ()
                is_unnamed = missing == ErrorCode.UNKNOWN_TOPIC_ID
                (self._absent if is_unnamed else unknown).append((requested, result))
            else:
                self.found.append((requested, partition))
            yield
        if unknown:
            self._absent += unknown

    def _may_read(self, requested: SessionPartition) -> bool:
        assert self._access is not None
        name = requested.topic
        if not name and self._by_id:
            topic = self._broker.metadata.image.topics_by_id.get(requested.topic_id)
            if topic is None:
                return True
            name = topic.name
        return self._access.may(READ_TOPIC, name)

    def look(self) -> Steps[None]:
        """Read every partition once."""
        results: Results = []
        remaining_bytes = self._max_bytes
        size = 0
        has_failed = False
        for requested, partition in self.found:
            partition.traffic.fetch_requests += 1
            try:
                result = self._read(
                    requested,
                    partition,
                    min(requested.wanted.max_bytes, remaining_bytes),
                    min_one=not size,
                    may_block=self.may_block,
                )
            except KafkaError as error:
                has_failed = True
                if error.code not in _UNCOUNTED_ERRORS:
                    partition.traffic.failed_fetches += 1
                result = self._failed(requested, partition, self._code(error.code))
            if result.diverging_epoch is not None or result.preferred_read_replica >= 0:
                has_failed = True
            length = records_length(result)
            size += length
            remaining_bytes = max(0, remaining_bytes - length)
            results.append((requested, result))
            yield
        if self._absent:
            results += self._absent
        self.results = results
        self.size = size
        self.has_failed = has_failed

    def note_sent(self) -> None:
        """Count the bytes sent to a consumer."""
        pairs = self.found
        if len(pairs) == 1:
            pairs[0][1].traffic.bytes_out += self.size
        elif self.size:
            for (_, partition), (_, result) in zip(pairs, self.results):  # noqa: B905 - absent ones come last
                partition.traffic.bytes_out += records_length(result)

    def is_ready(self) -> bool:
        """Return whether the response need not wait."""
        return (
            self.size >= self.min_bytes
            or self.has_failed
            or self.max_wait_ms <= 0
            or self.must_respond_now
            or not self.found
            or any(map(self._ends_early, range(len(self.found))))
        )

    def leaders(self) -> set[int]:
        """Return the leaders that the results name."""
        current_leaders = [result.current_leader for _, result in self.results]
        return {leader[0] for leader in current_leaders if leader is not None}

    @property
    def must_respond_now(self) -> bool:
        """Whether the broker shuts down."""
        return self._broker.is_stopping

    def available(self, number: int) -> int | None:
        """Return a partition's available bytes; None if the response must not wait."""
        requested, partition = self.found[number]
        try:
            result = self._read(
                requested, partition, requested.wanted.max_bytes, min_one=True, may_block=True
            )
        except KafkaError:
            return None
        if result.preferred_read_replica >= 0:
            return None
        if result.diverging_epoch is not None or self._is_of_old_segment(partition, result):
            return None
        return records_length(result)

    @property
    def wakes_on_any_change(self) -> bool:
        """Whether any change completes the wait, so that nothing is counted."""
        return False

    @property
    def notifies_once(self) -> bool:
        """Whether `watch` reports only the next growth."""
        return False

    def watch(self, partition: Partition, on_growth: Callable[[], None]) -> None:
        """Call back when more is visible."""
        partition.watch(on_growth)

    def sees_all(self, log: Log) -> bool:
        """Return whether all of a log is visible, and commits call back."""
        return self._end(log) == log.log_end_offset

    def _end(self, log: Log) -> int:
        return log.last_stable_offset if self._is_read_committed else log.high_watermark

    def _ends_early(self, number: int) -> bool:
        """Return whether a partition's result cannot grow; Kafka does not wait then, either."""
        return self._is_of_old_segment(self.found[number][1], self.results[number][1])

    def _is_of_old_segment(self, partition: Partition, result: FetchPartitionResult) -> bool:
        """Return whether records are not from the visible log's last segment."""
        records = result.records
        if not isinstance(records, FileSlice):
            return False
        log = partition.log
        return records.file is not log.segments[log.segments.floor_index(self._end(log))].log

    def _read(
        self,
        requested: SessionPartition,
        partition: Partition,
        max_bytes: int,
        *,
        min_one: bool,
        may_block: bool,
    ) -> FetchPartitionResult:
        fetch_partition = requested.wanted
        if self._by_id and requested.topic_id != partition.topic_id:
            raise KafkaError(ErrorCode.INCONSISTENT_TOPIC_ID)
        # Unlike in ListOffsets, any negative epoch means none.
        self._admit(partition, max(fetch_partition.current_leader_epoch, -1))
        log = partition.log
        result = FetchPartitionResult(
            fetch_partition.index,
            0,
            log.high_watermark,
            log.last_stable_offset,
            log.log_start_offset,
        )
        result.records = b""
        if self._client_rack or fetch_partition.last_fetched_epoch >= 0:
            self._redirect(requested, partition, result)
            if result.preferred_read_replica >= 0 or result.diverging_epoch is not None:
                return result
        up_to_offset = self._end(log)
        if max_bytes < 0 and fetch_partition.fetch_offset < up_to_offset:
            raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)
        try:
            read = log.read(
                fetch_partition.fetch_offset,
                max_bytes,
                up_to_offset=up_to_offset,
                min_one=min_one,
                may_block=may_block,
            )
            if self._is_read_committed:
                result.aborted_transactions = [entry[:2] for entry in aborted_in(log, read)]
        except OSError as error:
            self._broker.replicas.disk_failed(partition, error)
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR) from error
        if read.slice is not None:
            result.records = read.slice
        elif max_bytes > 0 and fetch_partition.fetch_offset < up_to_offset:
            # A batch exists but does not fit: as in Kafka, without aborted transactions.
            result.aborted_transactions = None
        return result

    def _admit(self, partition: Partition, current_leader_epoch: int) -> None:
        if self._is_of_leader or partition.is_leader:
            partition.check_leader(current_leader_epoch)
        else:
            partition.check_readable(current_leader_epoch)

    def _redirect(
        self, requested: SessionPartition, partition: Partition, result: FetchPartitionResult
    ) -> None:
        fetch_partition = requested.wanted
        if self._client_rack and partition.is_leader:
            result.preferred_read_replica = self._nearer_replica(
                partition, fetch_partition.fetch_offset
            )
            if result.preferred_read_replica >= 0:
                return
        if fetch_partition.last_fetched_epoch >= 0:
            result.diverging_epoch = _divergence(partition, requested)

    def _nearer_replica(self, partition: Partition, fetch_offset: int) -> int:
        if not self._broker.config.optional_str("replica.selector.class"):
            return -1
        return nearest_replica(
            partition,
            self._broker.metadata.image.brokers,
            client_rack=self._client_rack,
            fetch_offset=fetch_offset,
        )

    def _failed(
        self, requested: SessionPartition, partition: Partition, code: ErrorCode
    ) -> FetchPartitionResult:
        result = _failure(requested, code)
        if code in _MOVED and self._version >= _LEADER_VERSION:
            result.current_leader = (partition.leader, partition.leader_epoch)
        return result

    def _code(self, code: ErrorCode) -> ErrorCode:
        if code == ErrorCode.KAFKA_STORAGE_ERROR and self._version < _STORAGE_ERROR_VERSION:
            return ErrorCode.NOT_LEADER_OR_FOLLOWER
        return code


def _failure(requested: SessionPartition, code: ErrorCode) -> FetchPartitionResult:
    return FetchPartitionResult(requested.wanted.index, code, records=b"")


def _divergence(partition: Partition, requested: SessionPartition) -> tuple[int, int] | None:
    fetch_partition = requested.wanted
    epoch, end_offset = partition.end_offset_for_epoch(fetch_partition.last_fetched_epoch)
    if epoch < 0 or end_offset < 0 or fetch_partition.fetch_offset < partition.log.log_start_offset:
        raise KafkaError(ErrorCode.OFFSET_OUT_OF_RANGE)
    if epoch < fetch_partition.last_fetched_epoch or end_offset < fetch_partition.fetch_offset:
        return epoch, end_offset
    return None
