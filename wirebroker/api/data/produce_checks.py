"""Checks of a Produce request before the log is used, in Kafka's order.

    whole request   malformed batch start, transactional records without an id, unknown codec
    each partition  no batch, invalid acks, internal topic, not the leader, too few in sync

Source: Kafka's RequestUtils.hasTransactionalRecords, ProduceRequest.validateRecords,
ReplicaManager.appendToLocalLog.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from wirebroker.api.data.transaction_guards import Refusal
from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.codecs.hot.produce import ProduceTopic
from wirebroker.codecs.permissions import WRITE_TRANSACTIONAL_ID
from wirebroker.codecs.records.codec import Codec
from wirebroker.codecs.records.layout import (
    CODEC_MASK,
    HEADER_BYTES,
    LENGTH_MAGIC_FLAGS,
    MAGIC,
    OVERHEAD_BYTES,
    TRANSACTIONAL_FLAG,
)
from wirebroker.coordinator.controller.image.topic_names import is_internal
from wirebroker.storage.log.validation.batch_shape import (
    LARGEST_LENGTH,
    SMALLEST_LENGTH,
    RefusedBatchError,
    check_codec,
    check_start,
    only_header,
)

if TYPE_CHECKING:
    from wirebroker.authorization.access import RequestAccess
    from wirebroker.codecs.hot.produce import ProducePartition, ProduceRequest
    from wirebroker.replica.partition import Partition
    from wirebroker.request.request import Request
    from wirebroker.storage.log.producers.verification import VerificationGuard

# Only this client may append to internal topics (Kafka's AdminUtils.ADMIN_CLIENT_ID).
_ADMIN_CLIENT_ID = "__admin_client"


def check_first_batches(body: ProduceRequest, access: RequestAccess | None = None) -> None:
    """Check the first batch of each partition, up to the first transactional one, as Kafka does.

    Without `access` any transactional id is allowed.

    Raises:
        KafkaError: For the whole request.
    """
    for topic in body.topics:
        for _, records in topic.partitions:
            if records is None:
                continue
            if len(records) < HEADER_BYTES:
                check_start(records)
                continue
            length, magic, attributes = LENGTH_MAGIC_FLAGS.unpack_from(records)
            if not SMALLEST_LENGTH <= length <= LARGEST_LENGTH or magic > MAGIC:
                check_start(records)
            if (
                attributes & TRANSACTIONAL_FLAG
                and magic == MAGIC
                and length + OVERHEAD_BYTES <= len(records)
            ):
                transactional_id = body.transactional_id
                if transactional_id is None or not (
                    access is None or access.may(WRITE_TRANSACTIONAL_ID, transactional_id)
                ):
                    raise KafkaError(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
                return


def refuse_unknown_codecs(body: ProduceRequest) -> None:
    """Refuse unknown codecs, as Kafka does when it looks for zstd.

    Raises:
        KafkaError: UNKNOWN_SERVER_ERROR for the whole request.
    """
    for topic in body.topics:
        for _, records in topic.partitions:
            if records is None or len(records) < HEADER_BYTES:
                continue
            length, magic, attributes = LENGTH_MAGIC_FLAGS.unpack_from(records)
            if (
                attributes & CODEC_MASK > Codec.ZSTD
                and magic == MAGIC
                and length + OVERHEAD_BYTES <= len(records)
            ):
                raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)


def has_duplicate_partitions(topics: list[ProduceTopic]) -> bool:
    """Return whether a request repeats a partition."""
    if len(topics) == 1 and len(topics[0].partitions) == 1:
        return False
    if len({(topic.name, topic.topic_id) for topic in topics}) < len(topics):
        return True
    return any(
        len(topic.partitions) > 1
        and len({index for index, _ in topic.partitions}) < len(topic.partitions)
        for topic in topics
    )


def last_of_each(topics: list[ProduceTopic]) -> list[ProduceTopic]:
    """Keep the last entry of each partition, as in Kafka's map."""
    last_entries: dict[tuple[str, bytes], dict[int, ProducePartition]] = {}
    for topic in topics:
        partitions = last_entries.setdefault((topic.name, topic.topic_id), {})
        partitions.update((entry[0], entry) for entry in topic.partitions)
    return [
        ProduceTopic(name, topic_id, list(partitions.values()))
        for (name, topic_id), partitions in last_entries.items()
    ]


def check_partition(
    partition: Partition,
    records: memoryview | None,
    request: Request,
    body: ProduceRequest,
    guard: VerificationGuard | Refusal | None,
) -> memoryview:
    """Check what needs no log.

    The log checks whether the records are one batch, unless another error would come first.

    Raises:
        KafkaError: The records are refused.
    """
    if records is None or len(records) < HEADER_BYTES:
        raise RefusedBatchError(
            ErrorCode.INVALID_RECORD, "there is no record batch", is_request_fault=True
        )
    if isinstance(guard, Refusal):
        _check_shape(records, request)
        return records
    if not -1 <= body.acks <= 1:
        _check_shape(records, request)
        raise KafkaError(ErrorCode.INVALID_REQUIRED_ACKS)
    if is_internal(partition.topic) and request.client_id != _ADMIN_CLIENT_ID:
        raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION)
    partition.check_leader()
    if body.acks == -1:
        partition.check_in_sync()
    return records


def _check_shape(records: memoryview, request: Request) -> None:
    _, header = only_header(records)
    check_codec(header, request.version)
