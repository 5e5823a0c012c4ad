"""DescribeQuorum: who votes on the metadata log and how far they are (KIP-642).

v0, v1 times (KIP-836), v2 messages, directories and nodes (KIP-853). This node is the only voter,
so the log's end is its high watermark. The controller has no listener of its own.

Source: Kafka's KafkaRaftClient.handleDescribeQuorumRequest.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from wirebroker.api.registry import Request, handles
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import ErrorCode
from wirebroker.coordinator.topic_names import CLUSTER_METADATA_TOPIC

if TYPE_CHECKING:
    from wirebroker.broker import Broker

# The first version that lists the nodes.
_HAS_NODES = 2


@handles(ApiKey.DESCRIBE_QUORUM)
def describe_quorum(broker: Broker, request: Request, body: Any) -> dict[str, Any]:
    """Describe partition 0 of the metadata log if that and nothing else is asked for."""
    asked = [
        (topic.topic_name, each.partition_index)
        for topic in body.topics
        for each in topic.partitions
    ]
    if asked != [(CLUSTER_METADATA_TOPIC, 0)]:
        return _unknown(body)
    end_offset = broker.metadata.image.offset
    now_ms = broker.clock.now_ms()
    voter = {
        "replica_id": broker.node_id,
        "log_end_offset": end_offset,
        "last_fetch_timestamp": now_ms,
        "last_caught_up_timestamp": now_ms,
    }
    partition = {
        "partition_index": 0,
        "error_message": "",
        "leader_id": broker.node_id,
        "leader_epoch": broker.metadata.epoch,
        "high_watermark": end_offset,
        "current_voters": [voter],
    }
    return {
        "error_message": "",
        "topics": [{"topic_name": CLUSTER_METADATA_TOPIC, "partitions": [partition]}],
        "nodes": [{"node_id": broker.node_id}] if request.version >= _HAS_NODES else [],
    }


def _unknown(body: Any) -> dict[str, Any]:
    return {
        "error_message": "",
        "topics": [
            {
                "topic_name": topic.topic_name,
                "partitions": [
                    {
                        "partition_index": each.partition_index,
                        "error_code": int(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
                        "error_message": "This is not the partition of the metadata log.",
                    }
                    for each in topic.partitions
                ],
            }
            for topic in body.topics
        ],
    }
