"""A follower's requests about its own vote: UpdateRaftVoter, and joining as a voter.

A voter states its listeners and versions when the recorded ones differ; with static voters once for
each leader. A controller that is not a voter joins, if that is configured: it removes the
voter with its node id, whose directory is gone, and adds itself.

Source: Kafka's KafkaRaftClient.pollFollowerAsVoter and pollFollowerAsObserver.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from wirebroker.codecs.errors import ErrorCode
from wirebroker.coordinator.raft.handlers.responses import handle_common_result
from wirebroker.coordinator.raft.model.replica_key import destination_of
from wirebroker.coordinator.raft.model.voter_set import DYNAMIC_VOTERS
from wirebroker.coordinator.raft.protocol.messages import (
    AddRaftVoterRequest,
    RemoveRaftVoterRequest,
    RequestFailure,
    UpdateRaftVoterRequest,
    UpdateRaftVoterResponse,
    VoterChangeResponse,
)
from wirebroker.coordinator.raft.states.epoch_states import FollowerState

if TYPE_CHECKING:
    from wirebroker.coordinator.raft.protocol.messages import RaftRequest, RaftResponse
    from wirebroker.coordinator.raft.states.replica_core import ReplicaCore


def poll_voter_update(core: ReplicaCore, follower: FollowerState, now_ms: int) -> bool:
    """Send a request about this node's own vote if one is due; return whether it was sent."""
    if now_ms < follower.update_voter_deadline_ms:
        return False
    request = _own_update(core, follower) if core.is_voter else _own_join(core)
    if request is None:
        follower.update_voter_deadline_ms = now_ms + core.settings.fetch_timeout_ms
        return False
    leader = destination_of(follower.leader_id, follower.endpoints, core.identity.listener_name)
    assert leader is not None, follower
    if not core.send(leader, request, now_ms):
        return False
    follower.update_voter_deadline_ms = now_ms + core.settings.fetch_timeout_ms
    return True


def _own_update(core: ReplicaCore, follower: FollowerState) -> RaftRequest | None:
    if core.history.kraft_version < DYNAMIC_VOTERS:
        is_due = not follower.has_updated_leader
    else:
        is_due = core.history.last_voters.needs_update(core.own_voter)
    if not is_due:
        return None
    identity = core.identity
    return UpdateRaftVoterRequest(
        identity.cluster_id,
        core.state.epoch,
        core.key,
        identity.endpoints,
        *identity.supported_versions,
    )


def _own_join(core: ReplicaCore) -> RaftRequest | None:
    identity = core.identity
    is_possible = core.history.kraft_version >= DYNAMIC_VOTERS and identity.is_voter_capable
    if not is_possible or not core.settings.is_auto_join:
        return None
    former = core.history.last_voters.key_with_id(core.key.replica_id)
    if former is not None:
        return RemoveRaftVoterRequest(identity.cluster_id, former)
    return AddRaftVoterRequest(
        identity.cluster_id,
        core.key,
        identity.endpoints,
        core.settings.request_timeout_ms,
        ack_when_committed=False,
    )


def handle_update_response(core: ReplicaCore, response: RaftResponse, now_ms: int) -> bool:
    """Note that the leader knows this voter; return whether it can get another request at once."""
    if isinstance(response, RequestFailure):
        return False
    assert isinstance(response, UpdateRaftVoterResponse), response
    handled = handle_common_result(core, response.error, response.leader, now_ms)
    if handled is not None:
        return handled
    follower = core.state
    is_known = response.error in (ErrorCode.NONE, ErrorCode.UNSUPPORTED_VERSION)
    if not is_known or not isinstance(follower, FollowerState):
        return False
    follower.has_updated_leader = True
    core.leader_responded(follower, now_ms)
    return True


def handle_join_response(core: ReplicaCore, response: RaftResponse, now_ms: int) -> bool:
    """Wait for the effect of a join; return whether the leader can get another request at once."""
    follower = core.state
    if not isinstance(response, VoterChangeResponse) or not isinstance(follower, FollowerState):
        return False
    is_accepted = response.error in (
        ErrorCode.NONE,
        ErrorCode.REQUEST_TIMED_OUT,
        ErrorCode.DUPLICATE_VOTER,
        ErrorCode.VOTER_NOT_FOUND,
    )
    if is_accepted:
        follower.update_voter_deadline_ms = now_ms + core.settings.fetch_timeout_ms
    return is_accepted
