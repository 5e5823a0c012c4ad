"""What a replica is at a time: it leads, or it follows. Entered by leader epoch.

    image --this node leads--> LeaderRole     takes appends, counts what its followers have
          --others, nobody---> FollowerRole   appends what the leader has, and takes its word for
                                              what is committed

A role lasts as long as its leader epoch; what changes within one (ISR, assignment) has a partition
epoch of its own. No network and no disk here: a role is told what happened and answers what counts.

Source: Kafka's Partition.makeLeader, makeFollower and PartitionState.
"""

from __future__ import annotations

from wirebroker.coordinator.controller.image.cluster_image import NO_LEADER

# Of a peer that doesn't say which it believes in, and of a replica that was told of none.
UNKNOWN_EPOCH = -1


class Role:
    """What every role says of its partition.

    Attributes:
        leader: The node that leads; NO_LEADER if none does.
        leader_epoch: Under which it does; never falls.
        partition_epoch: Of the newest change that was taken over; rises with every change.
    """

    __slots__ = ("leader", "leader_epoch", "partition_epoch")

    def __init__(self, *, leader: int, leader_epoch: int, partition_epoch: int) -> None:
        assert leader >= NO_LEADER, leader
        self.leader = leader
        self.leader_epoch = leader_epoch
        self.partition_epoch = partition_epoch


class FollowerRole(Role):
    """Follows `leader` under `leader_epoch`: whom to fetch from, and what to fence against."""

    __slots__ = ()


def unassigned() -> FollowerRole:
    """Return the role of a replica that no metadata has told anything yet."""
    return FollowerRole(leader=NO_LEADER, leader_epoch=UNKNOWN_EPOCH, partition_epoch=UNKNOWN_EPOCH)
