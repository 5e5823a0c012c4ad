"""The partitions of one Fetch, found and read within the limits of the whole answer.

Each read gives a slice of a segment file, no payload. At most max_bytes in all, and per partition
its own; the first partition that has anything gives at least one batch, however large, so that a
consumer never gets stuck.

Partitions that are not known when the request comes are answered last, those of unknown ids first
among them, and hurry nobody; one that fails while it is read has the answer sent at once. All as
in Kafka.

Who asks decides what it sees, and where:

    a consumer up to v10   up to the high watermark or last stable offset, of the leader alone
    a consumer from v11    the same, of any replica (KIP-392); a leader may name a nearer one
    a follower             the whole log, of the leader (follower_reads.py)

Source: Kafka's KafkaApis.handleFetchRequest, ReplicaManager.readFromLog, Partition.readRecords.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from wirebroker.api.data.absent_partitions import absence
from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.codecs.hot.fetch_response import FetchPartitionResult
from wirebroker.codecs.primitives import ZERO_UUID
from wirebroker.replica.nearer_replica import nearer_replica
from wirebroker.request.fetch_sessions import (
    TOPIC_ID_VERSION,
    Results,
    SessionPartition,
    records_length,
)
from wirebroker.request.needs import READ_TOPIC
from wirebroker.storage.files import FileSlice
from wirebroker.storage.log.read import aborted_in

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from wirebroker.api.broker import Broker
    from wirebroker.authorization.access import Asking
    from wirebroker.base.clock import Steps
    from wirebroker.codecs.hot.fetch import FetchRequest
    from wirebroker.replica.partition import Partition
    from wirebroker.storage.log.log import Log

READ_COMMITTED = 1
# From this version on, clients know KAFKA_STORAGE_ERROR (KIP-112).
_STORAGE_ERROR_VERSION = 6
# From this version on, they may read from any replica (KIP-392).
_ANY_REPLICA_VERSION = 11
# From this version on, they are told who leads instead (KIP-951), with these errors.
_LEADER_VERSION = 16
# These say more of who asks, or of a disk that is counted elsewhere, than of the read.
_ASKED_IN_VAIN = frozenset(
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
    """What one consumer's Fetch finds.

    Attributes:
        found: The partitions that are here, in the order of service; their place is their number.
        results: What to answer, after `look`: of those found, then of the others.
        size: Bytes of records in the results.
        has_failed: Whether the answer is urgent because something is wrong.
        min_bytes: As many are worth an answer.
        max_wait_ms: So long may be waited for them.
        may_block: Whether `look` waits for the disk; else it raises ColdPagesError where it had to.
    """

    __slots__ = (
        "_absent",
        "_asking",
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
        self, broker: Broker, request: FetchRequest, version: int, asking: Asking | None = None
    ) -> None:
        """Take a request; `asking` says which topics its client may read, None: all."""
        self._asking = asking
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
        # What is told of partitions that are not here.
        self._absent: Results = []
        self.results: Results = []
        self.size = 0
        self.has_failed = False

    def limit(self, most_bytes: int) -> None:
        """Answer with no more than so many bytes, unless one batch is more."""
        self._max_bytes = min(self._max_bytes, most_bytes)
        self.min_bytes = min(self.min_bytes, self._max_bytes)

    def grown_meanwhile(self) -> Sequence[int]:
        """Return the numbers of partitions that may have grown between the look and the watch."""
        return ()  # nothing else runs between the two, and a consumer's look changes nothing

    def find(self, partitions: list[SessionPartition]) -> Steps[None]:
        """Look up what is asked for."""
        by_id = self._by_id
        unknown: Results = []
        find = self._broker.replicas.find
        for asked in partitions:
            known, missing = find(asked.topic, asked.topic_id, by_id=by_id)
            if self._asking is not None and not self._may_read(asked):
                denied = _failure(asked, ErrorCode.TOPIC_AUTHORIZATION_FAILED)
                denied.aborted_transactions = ()
                unknown.append((asked, denied))
                continue
            partition = known.get(asked.wanted.index)
            if by_id and known and not asked.topic:
                # Sessions keep the name that was found; all partitions have it.
                name = next(iter(known.values())).topic
                asked = SessionPartition(name, asked.topic_id, asked.wanted)  # noqa: PLW2901 - the same, with its name
            if (
                partition is None
                and by_id
                and missing == ErrorCode.UNKNOWN_TOPIC_ID
                and asked.topic
            ):
                # The session has seen the topic: it was deleted meanwhile, perhaps made anew.
                partition = find(asked.topic, b"", by_id=False)[0].get(asked.wanted.index)
                missing = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            if partition is None:
                missing = absence(
                    self._broker,
                    missing,
                    asked.wanted.index,
                    name=asked.topic,
                    topic_id=asked.topic_id if by_id else ZERO_UUID,
                )
                result = _failure(asked, missing)
                result.aborted_transactions = ()
                is_unnamed = missing == ErrorCode.UNKNOWN_TOPIC_ID
                (self._absent if is_unnamed else unknown).append((asked, result))
            else:
                self.found.append((asked, partition))
            yield
        if unknown:
            self._absent += unknown

    def _may_read(self, asked: SessionPartition) -> bool:
        """Return whether a topic may be read; an unknown id is refused later, as unknown."""
        assert self._asking is not None
        name = asked.topic
        if not name and self._by_id:
            topic = self._broker.metadata.image.topics_by_id.get(asked.topic_id)
            if topic is None:
                return True
            name = topic.name
        return self._asking.may(READ_TOPIC, name)

    def look(self) -> Steps[None]:
        """Read every partition once."""
        results: Results = []
        left = self._max_bytes
        size = 0
        has_failed = False
        for asked, partition in self.found:
            partition.traffic.fetch_requests += 1
            try:
                # Once there is something, nobody gets more than the limits any more.
                result = self._read(
                    asked,
                    partition,
                    min(asked.wanted.max_bytes, left),
                    min_one=not size,
                    may_block=self.may_block,
                )
            except KafkaError as error:
                has_failed = True
                if error.code not in _ASKED_IN_VAIN:
                    partition.traffic.failed_fetches += 1
                result = self._failed(asked, partition, self._code(error.code))
            if result.diverging_epoch is not None or result.preferred_read_replica >= 0:
                has_failed = True
            length = records_length(result)
            size += length
            left = max(0, left - length)
            results.append((asked, result))
            yield
        if self._absent:
            results += self._absent
        self.results = results
        self.size = size
        self.has_failed = has_failed

    def note_sent(self) -> None:
        """Count what is read as sent to a consumer."""
        found = self.found
        if len(found) == 1:
            found[0][1].traffic.bytes_out += self.size
        elif self.size:
            for (_, partition), (_, result) in zip(found, self.results):  # noqa: B905 - first those found
                partition.traffic.bytes_out += records_length(result)

    def is_ready(self) -> bool:
        """Tell whether the answer needs no waiting."""
        return (
            self.size >= self.min_bytes
            or self.has_failed
            or self.max_wait_ms <= 0
            or self.is_hurried
            or not self.found
            or any(map(self._ends_early, range(len(self.found))))
        )

    def leaders(self) -> set[int]:
        """Return the ids of nodes that the results name as leaders, whom a consumer will ask."""
        told = [result.current_leader for _, result in self.results]
        return {leader[0] for leader in told if leader is not None}

    @property
    def is_hurried(self) -> bool:
        """Whether nobody may wait any more: the broker stops."""
        return self._broker.is_stopping

    def available(self, number: int) -> int | None:
        """Return how much one partition has now; None if it is to be told without waiting."""
        asked, partition = self.found[number]
        try:
            result = self._read(
                asked, partition, asked.wanted.max_bytes, min_one=True, may_block=True
            )
        except KafkaError:
            return None
        if result.preferred_read_replica >= 0:
            return None
        if result.diverging_epoch is not None or self._is_of_old_segment(partition, result):
            return None
        return records_length(result)

    @property
    def wants_any_news(self) -> bool:
        """Say whether whatever it is told of is worth an answer: nothing has to be counted."""
        return False

    @property
    def is_told_once(self) -> bool:
        """Say whether who watches is told of the next growth alone."""
        return False

    def watch(self, partition: Partition, on_growth: Callable[[], None]) -> None:
        """Call back when there is more to be seen."""
        partition.watch(on_growth)

    def sees_all(self, log: Log) -> bool:
        """Say whether this reader sees all that a log has, and is told of it as it is committed."""
        return self._end(log) == log.log_end_offset

    def _end(self, log: Log) -> int:
        """Return where the log ends for this reader."""
        return log.last_stable_offset if self._is_read_committed else log.high_watermark

    def _ends_early(self, number: int) -> bool:
        """Say whether a found partition's result can't grow: then nobody waits, as in Kafka."""
        return self._is_of_old_segment(self.found[number][1], self.results[number][1])

    def _is_of_old_segment(self, partition: Partition, result: FetchPartitionResult) -> bool:
        """Say whether records come from a segment before the one that the visible log ends in."""
        records = result.records
        if not isinstance(records, FileSlice):
            return False
        log = partition.log
        return records.file is not log.segments[log.segments.floor_index(self._end(log))].log

    def _read(
        self,
        asked: SessionPartition,
        partition: Partition,
        max_bytes: int,
        *,
        min_one: bool,
        may_block: bool,
    ) -> FetchPartitionResult:
        wanted = asked.wanted
        if self._by_id and asked.topic_id != partition.topic_id:
            raise KafkaError(ErrorCode.INCONSISTENT_TOPIC_ID)
        # Here, unlike in ListOffsets, every negative epoch means that none was named.
        self._admit(partition, max(wanted.current_leader_epoch, -1))
        log = partition.log
        result = FetchPartitionResult(
            wanted.index, 0, log.high_watermark, log.last_stable_offset, log.log_start_offset
        )
        result.records = b""
        if self._client_rack or wanted.last_fetched_epoch >= 0:
            self._redirect(asked, partition, result)
            if result.preferred_read_replica >= 0 or result.diverging_epoch is not None:
                return result
        up_to_offset = self._end(log)
        if max_bytes < 0 and wanted.fetch_offset < up_to_offset:
            raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)
        try:
            read = log.read(
                wanted.fetch_offset,
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
        elif max_bytes > 0 and wanted.fetch_offset < up_to_offset:
            # There is a batch, and it does not fit: as in Kafka nothing is said of transactions.
            result.aborted_transactions = None
        return result

    def _admit(self, partition: Partition, current_leader_epoch: int) -> None:
        """Refuse who may not read this here."""
        if self._is_of_leader or partition.is_leader:
            partition.check_leader(current_leader_epoch)
        else:
            partition.check_readable(current_leader_epoch)

    def _redirect(
        self, asked: SessionPartition, partition: Partition, result: FetchPartitionResult
    ) -> None:
        """Have the result tell if another replica is to be read, or another offset."""
        wanted = asked.wanted
        if self._client_rack and partition.is_leader:
            result.preferred_read_replica = self._nearer_replica(partition, wanted.fetch_offset)
            if result.preferred_read_replica >= 0:
                return
        if wanted.last_fetched_epoch >= 0:
            result.diverging_epoch = _divergence(partition, asked)

    def _nearer_replica(self, partition: Partition, fetch_offset: int) -> int:
        """Return the replica that the client is to read from, -1 if it is this one."""
        if not self._broker.config.optional_str("replica.selector.class"):
            return -1
        return nearer_replica(
            partition,
            self._broker.metadata.image.brokers,
            client_rack=self._client_rack,
            fetch_offset=fetch_offset,
        )

    def _failed(
        self, asked: SessionPartition, partition: Partition, code: ErrorCode
    ) -> FetchPartitionResult:
        """Return what is told of a partition that cannot be read, with its leader if it moved."""
        result = _failure(asked, code)
        if code in _MOVED and self._version >= _LEADER_VERSION:
            result.current_leader = (partition.leader, partition.leader_epoch)
        return result

    def _code(self, code: ErrorCode) -> ErrorCode:
        if code == ErrorCode.KAFKA_STORAGE_ERROR and self._version < _STORAGE_ERROR_VERSION:
            return ErrorCode.NOT_LEADER_OR_FOLLOWER
        return code


def _failure(asked: SessionPartition, code: ErrorCode) -> FetchPartitionResult:
    return FetchPartitionResult(asked.wanted.index, code, records=b"")


def _divergence(partition: Partition, asked: SessionPartition) -> tuple[int, int] | None:
    """Return (epoch, end offset) where the fetcher's log leaves ours, None if it doesn't."""
    wanted = asked.wanted
    epoch, end_offset = partition.end_offset_for_epoch(wanted.last_fetched_epoch)
    if epoch < 0 or end_offset < 0 or wanted.fetch_offset < partition.log.log_start_offset:
        raise KafkaError(ErrorCode.OFFSET_OUT_OF_RANGE)
    if epoch < wanted.last_fetched_epoch or end_offset < wanted.fetch_offset:
        return epoch, end_offset
    return None
