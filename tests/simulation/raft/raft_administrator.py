"""An administrator that adds and removes voters while everything else fails.

It never makes a quorum impossible: it removes dead voters first, and a wiped disk stays a minority.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.simulation.raft.raft_addresses import endpoints_of
from wirebroker.codecs.errors import ErrorCode
from wirebroker.coordinator.raft.protocol.events import RequestReceived
from wirebroker.coordinator.raft.protocol.messages import (
    AddRaftVoterRequest,
    DescribeQuorumRequest,
    DescribeQuorumResponse,
    RemoveRaftVoterRequest,
    VoterChangeResponse,
)

if TYPE_CHECKING:
    from tests.simulation.raft.raft_node import RaftNode
    from tests.simulation.raft.raft_world import RaftWorld

_EXPECTED = {
    ErrorCode.NONE,
    ErrorCode.REQUEST_TIMED_OUT,
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.DUPLICATE_VOTER,
    ErrorCode.BROKER_NOT_AVAILABLE,
}


class RaftAdministrator:
    def __init__(self, world: RaftWorld) -> None:
        self.world = world
        self.changes = 0
        self.requests = 0

    def act(self) -> None:
        # A paused leader would get the request later, when it may be impossible.
        leaders = [
            node
            for node in self.world.nodes.values()
            if node.leads and self.world.now >= node.paused_until
        ]
        if not leaders:
            return
        leader = self.world.random.choice(leaders)
        core = leader.core
        if core.history.kraft_version == 0:
            leader.upgrade()
            return
        request = self._next_change(leader)
        if request is not None:
            self._ask(leader, request)
        self._ask(leader, DescribeQuorumRequest())

    def _ask(self, leader: RaftNode, request) -> None:
        self.requests += 1
        leader.handle(RequestReceived(("administrator", self.requests), request))

    def _next_change(self, leader: RaftNode):
        world, random = self.world, self.world.random
        voters = leader.core.history.last_voters
        dead = [key for key in voters.keys if world.faults.is_wiped(key)]
        if dead:
            return RemoveRaftVoterRequest(world.cluster_id, random.choice(dead))
        candidates = [
            node
            for node in world.nodes.values()
            if node.node_id not in voters.ids and node.node_id not in world.broker_ids
        ]
        if len(voters) > 2 and random.random() < 0.4:
            return RemoveRaftVoterRequest(world.cluster_id, random.choice(voters.keys))
        if candidates and len(voters) < 5:
            node = random.choice(candidates)
            return AddRaftVoterRequest(
                world.cluster_id,
                node.key,
                endpoints_of(node.node_id),
                1_000,
                random.random() < 0.5,
            )
        return None

    def answered(self, token, response) -> None:
        del token
        if isinstance(response, VoterChangeResponse):
            assert response.error in _EXPECTED, response
            self.changes += response.error is ErrorCode.NONE
        else:
            assert isinstance(response, DescribeQuorumResponse)
            if response.error is ErrorCode.NONE:
                assert response.voters
