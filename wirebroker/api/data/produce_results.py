"""The results of one Produce request, and its response.

Source: Kafka's KafkaApis.sendResponseCallback and ReplicaManager.appendToLocalLog (errors).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from wirebroker.api.data.deferred_produce import LEADER_VERSION
from wirebroker.api.data.delayed_produce import withdraw
from wirebroker.api.data.leader_endpoints import leader_endpoints
from wirebroker.api.data.produce_checks import has_duplicate_partitions, last_of_each
from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.codecs.hot.produce_response import PartitionResult, encode_produce
from wirebroker.codecs.records.walk import MAX_REFUSED
from wirebroker.request.request import CloseConnectionError
from wirebroker.storage.log.validation.batch_shape import RefusedBatchError

if TYPE_CHECKING:
    from wirebroker.api.broker import Broker
    from wirebroker.codecs.hot.produce import ProduceRequest, ProduceTopic
    from wirebroker.replica.partition import Partition
    from wirebroker.request.request import Reply, Request

# Errors without a log start offset, not counted as failures (Kafka's
# ReplicaManager.appendToLocalLog).
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

# Record errors in a response, 1 us and 100 bytes each: a request of 1 MB could cause gigabytes.
# Kafka has no such limit.
_MOST_RECORD_ERRORS = MAX_REFUSED


class ProduceResults:
    """A Produce request and its results so far.

    It is a base class, not a part, because a second object per request would cost time.
    """

    __slots__ = (
        "_appended",
        "_body",
        "_broker",
        "_leaders",
        "_record_error_count",
        "_request",
        "_results",
    )

    def __init__(self, broker: Broker, request: Request, body: ProduceRequest) -> None:
        self._broker = broker
        self._request = request
        self._body = body
        self._results: list[tuple[ProduceTopic, list[PartitionResult]]] = []
        # Fields of Appended, for a wait.
        self._appended: list[tuple[Partition, PartitionResult, int, bool]] = []
        # Node ids of leaders in the response (KIP-951).
        self._leaders: set[int] = set()
        self._record_error_count = 0

    def _refuse(self, error: KafkaError) -> Reply:
        topics = self._body.topics
        if has_duplicate_partitions(topics):
            topics = last_of_each(topics)
        refused = [
            (topic, [PartitionResult(index, error.code) for index, _ in topic.partitions])
            for topic in topics
        ]
        if error.code != ErrorCode.UNKNOWN_SERVER_ERROR:  # Kafka sends no message with it
            for _, results in refused:
                for result in results:
                    result.error_message = error.message
        self._results += refused
        return self._reply()

    def _withdraw_lost(self) -> None:
        """Acknowledge nothing on a disk that failed during the wait."""
        for partition, result, _, _ in self._appended:
            if not partition.directory.is_online:
                withdraw(result, ErrorCode.KAFKA_STORAGE_ERROR)

    def _note_error(self, result: PartitionResult, error: KafkaError, partition: Partition) -> None:
        result.error_code = error.code
        traffic = partition.traffic
        traffic.produce_requests += 1
        if error.code not in _SILENT:
            traffic.failed_produces += 1
        is_request_fault = isinstance(error, RefusedBatchError) and error.is_request_fault
        if result.error_code not in _SILENT and not is_request_fault:
            result.log_start_offset = partition.log.log_start_offset
        # As in Kafka, messages are only about single records or malformed batches.
        if isinstance(error, RefusedBatchError) and error.record_errors:
            remaining = _MOST_RECORD_ERRORS - self._record_error_count
            result.record_errors = error.record_errors[:remaining]
            result.error_message = error.message
            self._record_error_count += len(result.record_errors)
        self._name_leader(result, partition)

    def _name_leader(self, result: PartitionResult, partition: Partition) -> None:
        """Name the current leader of a lost partition, if the version can."""
        if (
            result.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
            and self._request.version >= LEADER_VERSION
        ):
            result.current_leader = (partition.leader, partition.leader_epoch)
            self._leaders.add(partition.leader)

    def _note_disk_error(
        self, result: PartitionResult, error: OSError, partition: Partition
    ) -> None:
        self._broker.replicas.disk_failed(partition, error)
        withdraw(result, ErrorCode.KAFKA_STORAGE_ERROR)

    def _reply(self) -> Reply:
        if self._body.acks != 0:
            endpoints = (
                leader_endpoints(self._broker, self._request.session, self._leaders)
                if self._leaders
                else ()
            )
            for _, answers in self._results:
                for result in answers:
                    self._request.count_error(result.error_code)
            version = self._request.version
            return [encode_produce(version, self._results, node_endpoints=endpoints)]
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
