"""Finds the bounds of a leader's logs for followers whose offset is out of range (ListOffsets).

Source: Kafka's RemoteLeaderEndPoint.fetchOffset.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from wirebroker.codecs.api_keys import ApiKey

if TYPE_CHECKING:
    from collections.abc import Iterable

    from wirebroker.net.client.node import Node
    from wirebroker.replication.fetch_session_handler import PartitionKey
    from wirebroker.replication.followed_partition import FollowedPartition


async def list_offsets(
    node: Node,
    followed_partitions: Iterable[FollowedPartition],
    timestamp: int,
    *,
    node_id: int,
    timeout_s: float,
) -> dict[PartitionKey, int]:
    """Return the start or end offset of a leader's logs; failed partitions are missing.

    Raises:
        PeerError: The request failed.
    """
    topics: dict[str, list[FollowedPartition]] = {}
    for followed in followed_partitions:
        topics.setdefault(followed.partition.topic, []).append(followed)
    answer = await node.request(
        ApiKey.LIST_OFFSETS,
        {
            "replica_id": node_id,
            "topics": [
                {
                    "name": name,
                    "partitions": [
                        {
                            "partition_index": followed.partition.index,
                            "current_leader_epoch": followed.leader_epoch,
                            "timestamp": timestamp,
                        }
                        for followed in group
                    ],
                }
                for name, group in topics.items()
            ],
        },
        timeout_s=timeout_s,
    )
    ids = {name: group[0].partition.topic_id for name, group in topics.items()}
    return {
        (ids[topic.name], result.partition_index): result.offset
        for topic in answer.topics
        if topic.name in ids
        for result in topic.partitions
        if not result.error_code and result.offset >= 0
    }
