"""Nodes under faults whose services clients look up and send requests to."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, cast

from tests.simulation.cluster.coordinating_member import CoordinatingMember
from tests.simulation.cluster.replica_world import ReplicaWorld
from wirebroker.coordinator.groups.partitions import CONSUMER_OFFSETS

if TYPE_CHECKING:
    from wirebroker.codecs.api_keys import ApiKey
    from wirebroker.codecs.errors import ErrorCode
    from wirebroker.coordinator.groups.group import Group


class ServiceWorld(ReplicaWorld):
    """One schedule.

    Attributes:
        answers: The number of responses by kind of request and error.
    """

    member_kind = CoordinatingMember

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.answers: Counter[str] = Counter()

    def totals(self) -> Counter[str]:
        return super().totals() + self.answers

    def member(self, node_id: int) -> CoordinatingMember | None:
        """Return a live node that may coordinate groups, or None."""
        member = self.cluster.members.get(node_id)
        if member is None or not member.replicas.find(CONSUMER_OFFSETS, b"", by_id=False)[0]:
            return None
        return cast("CoordinatingMember", member)

    def anybody(self) -> CoordinatingMember | None:
        return self.member(self.random.choice(list(self.node_ids)))

    def served(self, node: CoordinatingMember, group_id: str) -> Group | None:
        """Return a group if this node is the current leader of its partition."""
        index = node.groups.partition_for(group_id)
        state = self.state(index, CONSUMER_OFFSETS)
        is_leader = state.leader == node.node_id
        if not is_leader or node.epoch_for(group_id) != state.leader_epoch:
            return None
        shard = node.groups.shard_of(group_id)
        return None if shard is None else shard.groups.get(group_id)

    def count(self, key: ApiKey, error: ErrorCode) -> None:
        self.answers[f"{key.name} {error.name}"] += 1
