"""Produce: append record batches to partitions (hot path; see DESIGN "One Produce").

v3-12 name topics, v13 gives ids (KIP-516); v7 allows zstd (KIP-110); v8 adds record errors
(KIP-467); v9 is flexible; v10 names the current leader (KIP-951).

acks 0 gets no answer, and a fault closes the connection, which is all that such a producer can
notice. With one replica acks 1 and -1 are the same: the record is committed once it is written.
No task is made unless a partition's append is large or another one is under way there.

Source: Kafka's KafkaApis.handleProduceRequest and ReplicaManager.appendRecords.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from wirebroker.api.registry import CloseConnectionError, handles_raw
from wirebroker.clock import Slices
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.compression import Codec
from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.codecs.produce import parse_produce
from wirebroker.codecs.produce_response import PartitionResult, encode_produce
from wirebroker.coordinator.topic_names import is_internal

if TYPE_CHECKING:
    from collections.abc import Awaitable, Mapping

    from wirebroker.api.registry import Reply, Request
    from wirebroker.broker import Broker
    from wirebroker.cluster.partition import Partition
    from wirebroker.codecs.produce import ProduceRequest, ProduceTopic
    from wirebroker.storage.log_append import AppendResult

TOPIC_ID_VERSION = 13
ZSTD_VERSION = 7

# Byte positions in a batch header, for the two checks that need no parsing.
MAGIC_POSITION = 16
ATTRIBUTES_POSITION = 22
TRANSACTIONAL_BIT = 0x10
HEADER_BYTES = 61

# The only client that may append to internal topics (Kafka's AdminUtils.ADMIN_CLIENT_ID).
ADMIN_CLIENT_ID = "__admin_client"

# Faults whose answer does not tell the log start offset (Kafka's ReplicaManager.appendToLocalLog).
_SILENT = frozenset(
    {
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.MESSAGE_TOO_LARGE,
        ErrorCode.RECORD_LIST_TOO_LARGE,
        ErrorCode.CORRUPT_MESSAGE,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.INVALID_TOPIC_EXCEPTION,
        ErrorCode.INVALID_REQUIRED_ACKS,
    }
)

# More partitions than this are served in slices: each takes about 10 us.
MANY_PARTITIONS = 400


class _Produce:
    """One Produce request: what is asked, and the answer as it grows."""

    __slots__ = ("_broker", "_delayed", "_request", "_results", "_to_flush", "_wanted")

    def __init__(self, broker: Broker, request: Request, wanted: ProduceRequest) -> None:
        self._broker = broker
        self._request = request
        self._wanted = wanted
        self._results: list[tuple[ProduceTopic, list[PartitionResult]]] = []
        # Appends that have to wait for their turn, and partitions that flush.messages wants synced.
        self._delayed: list[tuple[Partition, memoryview, PartitionResult]] = []
        self._to_flush: list[tuple[Partition, PartitionResult]] = []

    def serve(self) -> Reply | Awaitable[Reply]:
        """Append at once whatever can be, and answer unless something has to wait."""
        wanted = self._wanted
        if (
            len(wanted.topics) > 1
            and sum(len(t.partitions) for t in wanted.topics) > MANY_PARTITIONS
        ):
            self._request.keep()
            return self._serve_in_slices()
        for topic in wanted.topics:
            answers, partitions, missing = self._begin(topic)
            for index, records in topic.partitions:
                answers.append(self._append(partitions.get(index), index, records, missing))
        if self._delayed:
            self._request.keep()
            return self._finish()
        return self._finish() if self._to_flush else self._reply()

    async def _serve_in_slices(self) -> Reply:
        slices = Slices(self._broker.clock)
        for topic in self._wanted.topics:
            answers, partitions, missing = self._begin(topic)
            for index, records in topic.partitions:
                answers.append(self._append(partitions.get(index), index, records, missing))
                await slices.turn()
        return await self._finish()

    def _begin(
        self, topic: ProduceTopic
    ) -> tuple[list[PartitionResult], Mapping[int, Partition], ErrorCode]:
        answers: list[PartitionResult] = []
        self._results.append((topic, answers))
        by_id = self._request.version >= TOPIC_ID_VERSION
        partitions, missing = self._broker.replicas.find(topic.name, topic.topic_id, by_id=by_id)
        return answers, partitions, missing

    def _append(
        self,
        partition: Partition | None,
        index: int,
        records: memoryview | None,
        missing: ErrorCode,
    ) -> PartitionResult:
        result = PartitionResult(index)
        if partition is None:
            result.error_code = missing
            return result
        try:
            checked = _check(partition, records, self._request, self._wanted)
            if partition.must_take_turn(len(checked)):
                self._delayed.append((partition, checked, result))
                return result
            now_ms = self._broker.clock.now_ms()
            version = self._request.version
            done = partition.append(checked, now_ms=now_ms, request_version=version)
        except KafkaError as error:
            _note_error(result, error, partition)
        except OSError as error:
            self._note_disk(result, error, partition)
        else:
            self._note_done(result, done, partition)
        return result

    async def _finish(self) -> Reply:
        """Do the appends that wait for a turn or a thread, and the flushes that are due; answer."""
        for partition, records, result in self._delayed:
            now_ms = self._broker.clock.now_ms()
            version = self._request.version
            try:
                done = await partition.append_in_turn(
                    records, now_ms=now_ms, request_version=version
                )
            except KafkaError as error:
                _note_error(result, error, partition)
            except OSError as error:
                self._note_disk(result, error, partition)
            else:
                self._note_done(result, done, partition)
        for partition, result in self._to_flush:
            try:
                await partition.flush()
            except OSError as error:
                self._note_disk(result, error, partition)
        return self._reply()

    def _note_done(self, result: PartitionResult, done: AppendResult, partition: Partition) -> None:
        result.base_offset = done.base_offset
        result.log_append_time_ms = done.log_append_time_ms
        result.log_start_offset = done.log_start_offset
        if partition.must_flush:
            self._to_flush.append((partition, result))

    def _note_disk(self, result: PartitionResult, error: OSError, partition: Partition) -> None:
        self._broker.replicas.disk_failed(partition, error)
        result.error_code = ErrorCode.KAFKA_STORAGE_ERROR
        result.base_offset = -1

    def _reply(self) -> Reply:
        if self._wanted.acks != 0:
            return [encode_produce(self._request.version, self._results)]
        failed = [
            f"{topic.name or topic.topic_id.hex()}-{result.index} "
            f"{ErrorCode(result.error_code).name}"
            for topic, answers in self._results
            for result in answers
            if result.error_code != ErrorCode.NONE
        ]
        if failed:
            raise CloseConnectionError(f"produce with acks=0 failed: {', '.join(failed[:5])}")
        return None


@handles_raw(ApiKey.PRODUCE)
def produce(broker: Broker, request: Request) -> Reply | Awaitable[Reply]:
    """Append what the request holds and answer per partition."""
    wanted = parse_produce(request.frame, request.position, request.version)
    return _Produce(broker, request, wanted).serve()


def _check(
    partition: Partition, records: memoryview | None, request: Request, wanted: ProduceRequest
) -> memoryview:
    """Refuse what can be told without the log (Kafka's ProduceRequest.validateRecords first).

    Raises:
        KafkaError: Why the records are not looked at any further.
    """
    if records is None or len(records) < HEADER_BYTES:
        raise KafkaError(ErrorCode.INVALID_RECORD, "A Produce request must hold a record batch.")
    attributes = records[ATTRIBUTES_POSITION]
    is_zstd = records[MAGIC_POSITION] == 2 and attributes & 0x07 == Codec.ZSTD
    if is_zstd and request.version < ZSTD_VERSION:
        raise KafkaError(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE)
    if not -1 <= wanted.acks <= 1:
        raise KafkaError(ErrorCode.INVALID_REQUIRED_ACKS)
    if is_internal(partition.topic) and request.client_id != ADMIN_CLIENT_ID:
        raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION)
    if attributes & TRANSACTIONAL_BIT:
        # Transactions are not served yet, so no producer can have one open.
        raise KafkaError(ErrorCode.INVALID_TXN_STATE)
    partition.check_leader()
    if wanted.acks == -1:
        partition.check_in_sync()
    return records


def _note_error(result: PartitionResult, error: KafkaError, partition: Partition) -> None:
    result.error_code = error.code
    if error.code not in _SILENT:
        result.log_start_offset = partition.log.log_start_offset
    record_errors = getattr(error, "record_errors", ())
    if record_errors:
        result.record_errors = record_errors
    if error.message is not None:
        result.error_message = error.message
