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

from wirebroker.api.registry import CloseConnectionError, Reply, Request, handles_raw
from wirebroker.cluster.partition import Partition
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.compression import Codec
from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.codecs.produce import ProduceRequest, ProduceTopic, parse_produce
from wirebroker.codecs.produce_response import PartitionResult, encode_produce
from wirebroker.coordinator.topic_names import is_internal

if TYPE_CHECKING:
    from collections.abc import Awaitable
    from wirebroker.broker import Broker

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

Results = list[tuple[ProduceTopic, list[PartitionResult]]]
# An append that has to wait for its turn, and the answer's place that it fills.
Deferred = tuple[Partition, memoryview, PartitionResult]


@handles_raw(ApiKey.PRODUCE)
def produce(broker: Broker, request: Request) -> Reply | Awaitable[Reply]:
    """Append what the request holds and answer per partition."""
    wanted = parse_produce(request.frame, request.position, request.version)
    deferred: list[Deferred] = []
    to_flush: list[tuple[Partition, PartitionResult]] = []
    results: Results = []
    for topic in wanted.topics:
        answers: list[PartitionResult] = []
        results.append((topic, answers))
        partitions, missing = broker.replicas.find(
            topic.name, topic.topic_id, by_id=request.version >= TOPIC_ID_VERSION
        )
        for index, records in topic.partitions:
            result = PartitionResult(index, ErrorCode.NONE)
            answers.append(result)
            partition = partitions.get(index)
            try:
                if partition is None or records is None:
                    _refuse(partition, missing)
                    continue
                _check(partition, records, request, wanted)
                if partition.must_take_turn(len(records)):
                    deferred.append((partition, records, result))
                else:
                    _append(broker, partition, records, result, request.version)
                    if partition.must_flush:
                        to_flush.append((partition, result))
            except KafkaError as error:
                _note_error(result, error, partition)
    if deferred or to_flush:
        if deferred:
            request.keep()
        return _finish(broker, request, wanted, results, deferred, to_flush)
    return _reply(request, wanted, results)


def _append(
    broker: Broker, partition: Partition, records: memoryview, result: PartitionResult, version: int
) -> None:
    try:
        done = partition.append(records, now_ms=broker.clock.now_ms(), request_version=version)
    except OSError as error:
        broker.replicas.disk_failed(partition, error)
        raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR) from error
    result.base_offset = done.base_offset
    result.log_append_time_ms = done.log_append_time_ms
    result.log_start_offset = done.log_start_offset


async def _finish(
    broker: Broker,
    request: Request,
    wanted: ProduceRequest,
    results: Results,
    deferred: list[Deferred],
    to_flush: list[tuple[Partition, PartitionResult]],
) -> Reply:
    """Do the appends that wait for a turn or a thread, and the flushes that are due; answer."""
    for partition, records, result in deferred:
        try:
            done = await partition.append_in_turn(
                records, now_ms=broker.clock.now_ms(), request_version=request.version
            )
        except OSError as error:
            broker.replicas.disk_failed(partition, error)
            result.error_code = ErrorCode.KAFKA_STORAGE_ERROR
        except KafkaError as error:
            _note_error(result, error, partition)
        else:
            result.base_offset = done.base_offset
            result.log_append_time_ms = done.log_append_time_ms
            result.log_start_offset = done.log_start_offset
            if partition.must_flush:
                to_flush.append((partition, result))
    for partition, result in to_flush:
        try:
            await partition.flush()
        except OSError as error:
            broker.replicas.disk_failed(partition, error)
            result.error_code = ErrorCode.KAFKA_STORAGE_ERROR
    return _reply(request, wanted, results)


def _refuse(partition: Partition | None, missing: ErrorCode) -> None:
    if partition is None:
        raise KafkaError(missing)
    raise KafkaError(ErrorCode.INVALID_RECORD, "Produce requests must hold a record batch.")


def _check(
    partition: Partition, records: memoryview, request: Request, wanted: ProduceRequest
) -> None:
    """Refuse what can be told without the log (Kafka's ProduceRequest.validateRecords first)."""
    size = len(records)
    if size < HEADER_BYTES:
        raise KafkaError(ErrorCode.INVALID_RECORD, "Produce requests must hold a record batch.")
    attributes = records[ATTRIBUTES_POSITION]
    if records[MAGIC_POSITION] == 2 and attributes & 0x07 == Codec.ZSTD:  # noqa: SIM102 - per version
        if request.version < ZSTD_VERSION:
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


def _note_error(result: PartitionResult, error: KafkaError, partition: Partition | None) -> None:
    result.error_code = error.code
    if partition is not None and error.code not in _SILENT:
        result.log_start_offset = partition.log.log_start_offset
    record_errors = getattr(error, "record_errors", ())
    if record_errors:
        result.record_errors = record_errors
    if error.message is not None:
        result.error_message = error.message


def _reply(request: Request, wanted: ProduceRequest, results: Results) -> Reply:
    if wanted.acks != 0:
        return [encode_produce(request.version, results)]
    failed = [
        f"{topic.name or topic.topic_id.hex()}-{result.index} {ErrorCode(result.error_code).name}"
        for topic, answers in results
        for result in answers
        if result.error_code != ErrorCode.NONE
    ]
    if failed:
        raise CloseConnectionError(f"produce with acks=0 failed: {', '.join(failed[:5])}")
    return None
