"""Transaction verification of a Produce: the coordinator confirms a transaction's start (KIP-890).

Clients up to v10 know INVALID_TXN_STATE, v11 TRANSACTION_ABORTABLE; from v12 on Produce adds the
partition to the transaction. An open transaction needs no verification.

Source: Kafka's ReplicaManager.handleProduceAppend.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.codecs.records.batch import NO_PRODUCER_ID
from wirebroker.codecs.records.layout import (
    FLAGS_AT,
    HEADER_BYTES,
    MAGIC,
    MAGIC_AT,
    PRODUCER,
    PRODUCER_ID_AT,
    TRANSACTIONAL_FLAG,
)
from wirebroker.coordination.transactions.transaction_verifier import Support
from wirebroker.coordinator.transactions.partitions import Claim
from wirebroker.storage.log.producers.verification import VerificationGuard

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from wirebroker.api.broker import Broker
    from wirebroker.codecs.hot.produce import ProduceRequest
    from wirebroker.coordinator.transactions.metadata import TopicPartition
    from wirebroker.request.request import Request

FIRST_TOPIC_ID_VERSION = 13
_FIRST_GENERIC_ERROR_VERSION = 11
_FIRST_ADDING_VERSION = 12

# If the coordinator is unavailable, NOT_ENOUGH_REPLICAS makes clients retry without a lookup.
_RETRIABLE_ERRORS = frozenset(
    {
        ErrorCode.NETWORK_EXCEPTION,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
    }
)


class Refusal(NamedTuple):
    """The error of a partition."""

    code: ErrorCode
    message: str | None = None


Guards = Mapping["TopicPartition", VerificationGuard | Refusal]


def guards_for(
    broker: Broker, request: Request, body: ProduceRequest
) -> Guards | Awaitable[Guards]:
    """Return guards for the partitions in which a transaction starts, verified if necessary.

    Raises:
        KafkaError: INVALID_PRODUCER_ID_MAPPING: the batches are of two producers.
    """
    assert body.transactional_id is not None
    version = request.version
    producers: set[tuple[int, int]] = set()
    guards: dict[TopicPartition, VerificationGuard | Refusal] = {}
    for topic in body.topics:
        by_id = version >= FIRST_TOPIC_ID_VERSION
        partitions, _ = broker.replicas.find(topic.name, topic.topic_id, by_id=by_id)
        for index, records in topic.partitions:
            if records is None or not _is_transactional(records):
                continue
            producer_id, epoch, sequence = PRODUCER.unpack_from(records, PRODUCER_ID_AT)
            if producer_id == NO_PRODUCER_ID:
                continue
            producers.add((producer_id, epoch))
            partition = partitions.get(index)
            if partition is None:
                continue
            try:
                partition.check_leader()
                guard = partition.log.producer_state.begin_verification(
                    producer_id,
                    sequence=sequence,
                    producer_epoch=epoch,
                    supports_epoch_bump=version >= _FIRST_ADDING_VERSION,
                    now_ms=broker.clock.now_ms(),
                )
            except KafkaError as error:
                guards[partition.topic, index] = Refusal(error.code)
            else:
                if guard is not None:
                    guards[partition.topic, index] = guard
    if len(producers) > 1:
        raise KafkaError(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
    unverified = frozenset(
        topic_partition
        for topic_partition, guard in guards.items()
        if isinstance(guard, VerificationGuard)
    )
    if not unverified:
        return guards
    ((producer_id, epoch),) = producers
    claim = Claim(body.transactional_id, producer_id, epoch, unverified)
    verdict = broker.transaction_verifier.ask(claim, _support(version))
    if isinstance(verdict, Mapping):
        return _merge(guards, verdict, version)
    return _merge_later(guards, verdict, version)


async def _merge_later(
    guards: dict[TopicPartition, VerificationGuard | Refusal],
    verdict: Awaitable[Mapping[TopicPartition, ErrorCode]],
    version: int,
) -> Guards:
    return _merge(guards, await verdict, version)


def _merge(
    guards: dict[TopicPartition, VerificationGuard | Refusal],
    verdict: Mapping[TopicPartition, ErrorCode],
    version: int,
) -> Guards:
    for partition, error in verdict.items():
        if error is not ErrorCode.NONE:
            guards[partition] = _refuse(error, version)
    return guards


def _refuse(error: ErrorCode, version: int) -> Refusal:
    if error is ErrorCode.INVALID_TXN_STATE:
        return Refusal(error, "Partition was not added to the transaction")
    is_concurrent = error is ErrorCode.CONCURRENT_TRANSACTIONS
    if error in _RETRIABLE_ERRORS or (is_concurrent and version < _FIRST_ADDING_VERSION):
        return Refusal(
            ErrorCode.NOT_ENOUGH_REPLICAS,
            "Cannot verify now that the partition is in the transaction: " + error.name,
        )
    return Refusal(error)


def _is_transactional(records: memoryview) -> bool:
    return (
        len(records) >= HEADER_BYTES
        and records[MAGIC_AT] == MAGIC
        and bool(records[FLAGS_AT] & TRANSACTIONAL_FLAG)
    )


def _support(version: int) -> Support:
    return Support.of_version(
        version, generic_error=_FIRST_GENERIC_ERROR_VERSION, add_partition=_FIRST_ADDING_VERSION
    )
