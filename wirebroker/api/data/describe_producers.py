"""DescribeProducers: the producers of partitions, and their open transactions (KIP-664).

Source: Kafka's KafkaApis.handleDescribeProducersRequest, ReplicaManager.activeProducerState.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from wirebroker.api.data.absent_partitions import missing_partition_error
from wirebroker.api.registry import handles
from wirebroker.base.clock import Slices
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.codecs.permissions import READ_TOPIC
from wirebroker.coordinator.controller.image.topic_names import check_topic_name
from wirebroker.request.handlers import Cost

if TYPE_CHECKING:
    from wirebroker.api.broker import Broker
    from wirebroker.replica.partition import Partition
    from wirebroker.request.request import Request


@handles(ApiKey.DESCRIBE_PRODUCERS, permissions=(READ_TOPIC,), cost=Cost.BOUNDED)
async def describe_producers(broker: Broker, request: Request, body: Any) -> dict[str, Any]:
    """List the producers of partitions."""
    del request
    slices = Slices(broker.clock)
    topics: list[dict[str, Any]] = []
    for topic in body.topics:
        partitions, missing = broker.replicas.find(topic.name, b"", by_id=False)
        answers: list[dict[str, Any]] = []
        for index in topic.partition_indexes:
            answer: dict[str, Any] = {"partition_index": index}
            try:
                check_topic_name(topic.name)
                partition = partitions.get(index)
                if partition is None:
                    absent = missing_partition_error(broker, missing, index, name=topic.name)
                    raise KafkaError(absent)  # noqa: TRY301 - one place turns errors into codes
                partition.check_readable()
                answer["active_producers"] = await _producers(partition, slices)
            except KafkaError as error:
                answer["error_code"] = ErrorCode(error.code)
                # Kafka has a message only for unknown topics.
                if not partitions:
                    answer["error_message"] = "This server does not host this topic-partition."
            answers.append(answer)
            await slices.turn()
        topics.append({"name": topic.name, "partitions": answers})
        await slices.turn()
    return {"topics": topics}


async def _producers(partition: Partition, slices: Slices) -> list[dict[str, Any]]:
    producers: list[dict[str, Any]] = []
    for producer_id, entry in list(partition.log.producer_state.producers.items()):
        producers.append(
            {
                "producer_id": producer_id,
                "producer_epoch": entry.producer_epoch,
                "last_sequence": entry.last_sequence,
                "last_timestamp": entry.last_timestamp_ms,
                "coordinator_epoch": entry.coordinator_epoch,
                "current_txn_start_offset": entry.current_txn_first_offset,
            }
        )
        await slices.turn()
    return producers
