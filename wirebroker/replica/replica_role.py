"""The role of a replica: leader or follower.

A role lasts as long as its leader epoch; changes within it (ISR, assignment) have partition epochs.

Source: Kafka's Partition.makeLeader, makeFollower and PartitionState.
"""

from __future__ import annotations

from wirebroker.coordinator.controller.image.cluster_image import NO_LEADER

# For a peer that sends no epoch, and for a replica without metadata.
UNKNOWN_EPOCH = -1


class Role:
    """State common to all roles.

    Attributes:
        leader: The leader's node id, or NO_LEADER.
        partition_epoch: Of the newest applied change.
    """

    __slots__ = ("leader", "leader_epoch", "partition_epoch")

    def __init__(self, *, leader: int, leader_epoch: int, partition_epoch: int) -> None:
        assert leader >= NO_LEADER, leader
        self.leader = leader
        self.leader_epoch = leader_epoch
        self.partition_epoch = partition_epoch


class FollowerRole(Role):
    """Copies the leader's records and high watermark."""

    __slots__ = ()


def unassigned() -> FollowerRole:
    """Return the role of a replica without metadata."""
    return FollowerRole(leader=NO_LEADER, leader_epoch=UNKNOWN_EPOCH, partition_epoch=UNKNOWN_EPOCH)
