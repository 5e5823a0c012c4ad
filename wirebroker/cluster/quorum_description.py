"""DescribeQuorum: who votes on the metadata log and how far they are (KIP-642).

v0, v1 times (KIP-836), v2 messages, directories and nodes (KIP-853). The active controller is the
only voter, so it is always caught up.

Source: Kafka's KafkaRaftClient.handleDescribeQuorumRequest.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from wirebroker.codecs.errors import ErrorCode
from wirebroker.coordinator.controller.topic_names import CLUSTER_METADATA_TOPIC

if TYPE_CHECKING:
    from wirebroker.coordinator.controller.controller import ControllerRequest

# The first version that lists the nodes.
_HAS_NODES = 2


def describe_quorum(
    request: ControllerRequest, *, voter_id: int, epoch: int, end_offset: int, now_ms: int
) -> dict[str, Any]:
    """Describe partition 0 of the metadata log if that and nothing else is asked for."""
    body = request.body
    asked = [
        (topic.topic_name, each.partition_index)
        for topic in body.topics
        for each in topic.partitions
    ]
    if asked != [(CLUSTER_METADATA_TOPIC, 0)]:
        return _unknown(body)
    voter = {
        "replica_id": voter_id,
        "log_end_offset": end_offset,
        "last_fetch_timestamp": now_ms,
        "last_caught_up_timestamp": now_ms,
    }
    partition = {
        "partition_index": 0,
        "error_message": "",
        "leader_id": voter_id,
        "leader_epoch": epoch,
        "high_watermark": end_offset,
        "current_voters": [voter],
    }
    return {
        "error_message": "",
        "topics": [{"topic_name": CLUSTER_METADATA_TOPIC, "partitions": [partition]}],
        "nodes": [{"node_id": voter_id}] if request.version >= _HAS_NODES else [],
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
