"""BeginQuorumEpoch and EndQuorumEpoch: a leader announces itself, or its resignation.

Source: Kafka's KafkaRaftClient (handlers of both requests, pollLeader, pollResigned).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from wirebroker.codecs.errors import ErrorCode
from wirebroker.coordinator.raft.handlers.responses import (
    handle_common_result,
    refuse_other_cluster,
)
from wirebroker.coordinator.raft.handlers.votes import voter_request_error
from wirebroker.coordinator.raft.model.replica_key import are_bounded
from wirebroker.coordinator.raft.protocol.messages import (
    BeginQuorumEpochRequest,
    BeginQuorumEpochResponse,
    EndQuorumEpochRequest,
    EndQuorumEpochResponse,
    RequestFailure,
)
from wirebroker.coordinator.raft.states.epoch_states import FollowerState, ResignedState
from wirebroker.coordinator.raft.states.transitions import learn_leader, to_unattached

if TYPE_CHECKING:
    from wirebroker.coordinator.raft.model.replica_key import ReplicaKey
    from wirebroker.coordinator.raft.protocol.messages import RaftResponse
    from wirebroker.coordinator.raft.states.leader_state import LeaderState
    from wirebroker.coordinator.raft.states.replica_core import ReplicaCore


def handle_begin_request(
    core: ReplicaCore, token: object, request: BeginQuorumEpochRequest, now_ms: int
) -> None:
    """Follow the leader that announces itself."""
    if refuse_other_cluster(core, token, request.cluster_id):
        return
    error = _learn(core, request, now_ms)
    is_other = request.voter is not None and not request.voter.matches(core.key)
    if error is ErrorCode.NONE and is_other:
        error = ErrorCode.INVALID_VOTER_KEY
    core.respond(token, BeginQuorumEpochResponse(error, core.known_leader()))


def handle_end_request(
    core: ReplicaCore, token: object, request: EndQuorumEpochRequest, now_ms: int
) -> None:
    """Begin an election soon: the first of the preferred voters at once, the others later."""
    if refuse_other_cluster(core, token, request.cluster_id):
        return
    error = _learn(core, request, now_ms)
    follower = core.state
    if (
        error is ErrorCode.NONE
        and isinstance(follower, FollowerState)
        and follower.leader_id == request.leader_id
    ):
        backoff_ms = election_backoff_ms(core, request.preferred)
        follower.fetch_deadline_ms = now_ms + backoff_ms
    core.respond(token, EndQuorumEpochResponse(error, core.known_leader()))


def _learn(
    core: ReplicaCore, request: BeginQuorumEpochRequest | EndQuorumEpochRequest, now_ms: int
) -> ErrorCode:
    error = voter_request_error(core, request.leader_id, request.epoch)
    if error is not ErrorCode.NONE:
        return error
    if not are_bounded(request.endpoints):
        return ErrorCode.INVALID_REQUEST
    if request.leader_id == core.key.replica_id:
        core.violation(f"another node says that it leads epoch {request.epoch} under this one's id")
        return ErrorCode.INVALID_REQUEST
    endpoints = request.endpoints or core.history.last_voters.endpoints(request.leader_id)
    learn_leader(core, request.epoch, request.leader_id, endpoints, now_ms)
    is_consistent = core.state.leader_id in (None, request.leader_id)
    return ErrorCode.NONE if is_consistent else ErrorCode.INVALID_REQUEST


def election_backoff_ms(core: ReplicaCore, preferred: tuple[ReplicaKey, ...]) -> int:
    """Return how long to leave an election to voters with longer logs."""
    longest_ms = core.settings.election_backoff_max_ms
    position = next(
        (position for position, key in enumerate(preferred) if key.matches(core.key)),
        len(preferred),
    )
    if position == 0:
        return 0
    if position == len(preferred):
        return longest_ms
    return min(longest_ms, (longest_ms >> len(preferred) - 1) << position - 1)


def handle_begin_response(core: ReplicaCore, response: RaftResponse, now_ms: int) -> bool:
    """Follow news of a later epoch; return whether the voter can get another request at once."""
    if isinstance(response, RequestFailure):
        return False
    assert isinstance(response, BeginQuorumEpochResponse), response
    handled = handle_common_result(core, response.error, response.leader, now_ms)
    return response.error is ErrorCode.NONE if handled is None else handled


def handle_end_response(
    core: ReplicaCore, voter_id: int, response: RaftResponse, now_ms: int
) -> bool:
    """Note that a voter knows of the resignation; see handle_begin_response."""
    if isinstance(response, RequestFailure):
        return False
    assert isinstance(response, EndQuorumEpochResponse), response
    handled = handle_common_result(core, response.error, response.leader, now_ms)
    if handled is not None:
        return handled
    if response.error is ErrorCode.NONE and isinstance(core.state, ResignedState):
        core.state.unacknowledged.discard(voter_id)
    return response.error is ErrorCode.NONE


def poll_announcements(core: ReplicaCore, leader: LeaderState, now_ms: int) -> int:
    """Announce the leader to voters that do not fetch; return when to look again."""
    if now_ms >= leader.begin_epoch_deadline_ms:
        interval_ms = core.settings.begin_epoch_interval_ms
        for voter in leader.silent_voters(now_ms - interval_ms):
            destination = core.history.last_voters.destination(
                voter.replica_id, core.identity.listener_name
            )
            if destination is not None:
                request = BeginQuorumEpochRequest(
                    core.identity.cluster_id,
                    voter,
                    leader.leader_id,
                    leader.epoch,
                    leader.endpoints,
                )
                core.send(destination, request, now_ms)
        leader.begin_epoch_deadline_ms = now_ms + interval_ms
    return leader.begin_epoch_deadline_ms


def poll_resigned(core: ReplicaCore, now_ms: int) -> int:
    """Tell the voters of the resignation; after a while wait for another leader."""
    state = core.state
    assert isinstance(state, ResignedState), state
    wake_ms = state.election_deadline_ms
    if core.shutdown_deadline_ms is not None:
        wake_ms = core.shutdown_deadline_ms
    elif now_ms >= state.election_deadline_ms:
        to_unattached(core, state.epoch + 1, None, now_ms)
        return now_ms
    voters = core.history.last_voters
    for voter_id in sorted(state.unacknowledged):
        destination = voters.destination(voter_id, core.identity.listener_name)
        if destination is None:
            continue
        request = EndQuorumEpochRequest(
            core.identity.cluster_id,
            state.leader_id,
            state.epoch,
            state.preferred,
            state.endpoints,
        )
        core.send(destination, request, now_ms)
        wake_ms = min(wake_ms, core.requests.ready_at(voter_id, now_ms))
    return wake_ms
