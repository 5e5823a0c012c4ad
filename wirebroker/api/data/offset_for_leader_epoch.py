"""OffsetForLeaderEpoch: the end offset of an epoch, by which a fetcher finds a divergence.

v2 has the current leader epoch (KIP-320).

Source: Kafka's ReplicaManager.lastOffsetForLeaderEpoch and KIP-101.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from wirebroker.api.data.absent_partitions import missing_partition_error
from wirebroker.api.registry import handles
from wirebroker.base.clock import Slices
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.codecs.permissions import CLUSTER_ACTION, DESCRIBE_TOPIC
from wirebroker.request.handlers import Cost

if TYPE_CHECKING:
    from wirebroker.api.broker import Broker
    from wirebroker.request.request import Request


@handles(
    ApiKey.OFFSET_FOR_LEADER_EPOCH, permissions=(CLUSTER_ACTION, DESCRIBE_TOPIC), cost=Cost.BOUNDED
)
async def offset_for_leader_epoch(broker: Broker, request: Request, body: Any) -> dict[str, Any]:
    """Return the end offsets of the largest epochs up to the requested ones."""
    del request
    slices = Slices(broker.clock)
    topics: list[dict[str, Any]] = []
    for topic in body.topics:
        partitions, missing = broker.replicas.find(topic.topic, b"", by_id=False)
        answers: list[dict[str, Any]] = []
        for requested in topic.partitions:
            answer: dict[str, Any] = {"partition": requested.partition}
            try:
                partition = partitions.get(requested.partition)
                if partition is None:
                    error = missing_partition_error(
                        broker, missing, requested.partition, name=topic.topic
                    )
                    raise KafkaError(error)  # noqa: TRY301 - one place turns errors into codes
                partition.check_leader(requested.current_leader_epoch)
                epoch, end_offset = partition.end_offset_for_epoch(requested.leader_epoch)
                answer["leader_epoch"] = epoch
                answer["end_offset"] = end_offset
            except KafkaError as error:
                answer["error_code"] = ErrorCode(error.code)
            answers.append(answer)
            await slices.turn()
        topics.append({"topic": topic.topic, "partitions": answers})
        await slices.turn()
    return {"topics": topics}
