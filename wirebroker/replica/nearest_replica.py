"""Chooses an in-sync replica in the consumer's rack to read from (KIP-392).

Source: Kafka's RackAwareReplicaSelector, ReplicaManager.findPreferredReadReplica.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

    from wirebroker.coordinator.controller.image.cluster_image import BrokerImage
    from wirebroker.replica.partition import Partition

NO_REPLICA: Final = -1


def nearest_replica(
    partition: Partition,
    brokers: Mapping[int, BrokerImage],
    *,
    client_rack: str,
    fetch_offset: int,
) -> int:
    """Return an in-sync follower in the client's rack that has the fetch offset, or NO_REPLICA.

    The highest log end offset wins, then the most recently caught up follower. This node leads;
    `client_rack` is not empty.
    """
    leading = partition.leading
    if leading is None or leading.is_alone:
        return NO_REPLICA
    racks = {
        replica: broker.rack
        for replica in leading.replicas
        if (broker := brokers.get(replica)) is not None and broker.is_active
    }
    if racks.get(leading.leader) == client_rack:
        return NO_REPLICA
    nearest = NO_REPLICA
    best_rank = (-1, -1, 0)
    for replica, follower in leading.followers.items():
        if (
            racks.get(replica) == client_rack
            and replica in leading.isr
            and follower.log_start_offset <= fetch_offset <= follower.log_end_offset
        ):
            rank = (follower.log_end_offset, follower.caught_up_ms, -replica)
            if nearest == NO_REPLICA or rank > best_rank:
                nearest, best_rank = replica, rank
    return nearest
