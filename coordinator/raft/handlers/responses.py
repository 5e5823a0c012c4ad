"""What all requests and responses have in common: the cluster's id, and news of the leader.

Source: Kafka's KafkaRaftClient.maybeHandleCommonResponse.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from wirebroker.codecs.errors import ErrorCode
from wirebroker.coordinator.raft.protocol.messages import NO_LEADER, RequestFailure
from wirebroker.coordinator.raft.states.transitions import learn_leader

if TYPE_CHECKING:
    from wirebroker.coordinator.raft.protocol.messages import KnownLeader
    from wirebroker.coordinator.raft.states.replica_core import ReplicaCore

# Errors of a peer that knows another epoch or leader.
_OUTDATED: Final = frozenset({ErrorCode.FENCED_LEADER_EPOCH, ErrorCode.NOT_LEADER_OR_FOLLOWER})

_USELESS: Final = frozenset({ErrorCode.INVALID_VOTER_KEY, ErrorCode.INVALID_REQUEST})


def refuse_other_cluster(core: ReplicaCore, token: object, cluster_id: str | None) -> bool:
    """Refuse a request of another cluster; return whether it was one."""
    if core.accepts_cluster(cluster_id):
        return False
    core.respond(token, RequestFailure(ErrorCode.INCONSISTENT_CLUSTER_ID))
    return True


def handle_common_result(
    core: ReplicaCore, error: ErrorCode, leader: KnownLeader, now_ms: int
) -> bool | None:
    """Follow a response's news of the leader.

    Returns:
        Whether the peer can get another request at once, if nothing else is to be done; None if the
        response belongs to this epoch and its contents count.
    """
    epoch = core.state.epoch
    if leader.epoch < epoch or error is ErrorCode.UNKNOWN_LEADER_EPOCH:
        return error is ErrorCode.NONE
    leader_id = None if leader.leader_id == NO_LEADER else leader.leader_id
    endpoints = leader.endpoints
    if leader_id is not None and not endpoints:
        endpoints = core.history.last_voters.endpoints(leader_id)
    if leader.epoch > epoch or error in _OUTDATED:
        # Without news, the same request would fail again at once.
        return learn_leader(core, leader.epoch, leader_id, endpoints, now_ms)
    if not core.state.endpoints and leader_id is not None:
        learn_leader(core, leader.epoch, leader_id, endpoints, now_ms)
        return None if error is ErrorCode.NONE else True
    if error is ErrorCode.INVALID_REQUEST:
        core.violation("a peer found a request of this node invalid")
    return False if error in _USELESS else None
