"""Where a leader's logs begin and end, for a follower whose own lies outside (ListOffsets).

Source: Kafka's RemoteLeaderEndPoint.fetchOffset.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from wirebroker.codecs.api_keys import ApiKey

if TYPE_CHECKING:
    from collections.abc import Iterable

    from wirebroker.net.client.node import Node
    from wirebroker.replication.followed_partition import FollowedPartition
    from wirebroker.replication.follower_session import PartitionKey

LATEST: Final = -1
EARLIEST: Final = -2


async def list_offsets(
    node: Node,
    wanted: Iterable[FollowedPartition],
    timestamp: int,
    *,
    node_id: int,
    timeout_s: float,
) -> dict[PartitionKey, int]:
    """Ask a leader where logs begin or end; who is missing is not known.

    Args:
        node: The leader.
        wanted: Partitions that are followed.
        timestamp: LATEST or EARLIEST.
        node_id: Of the follower.
        timeout_s: For the request.

    Raises:
        PeerError: It has not answered.
    """
    topics: dict[str, list[FollowedPartition]] = {}
    for followed in wanted:
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
                            "partition_index": each.partition.index,
                            "current_leader_epoch": each.leader_epoch,
                            "timestamp": timestamp,
                        }
                        for each in group
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
