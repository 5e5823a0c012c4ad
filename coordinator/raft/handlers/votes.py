"""Elections: requests and responses of Vote, pre-votes included.

A vote is granted to one candidate of an epoch, whose log is at least as long as this replica's: by
the epoch of the last record first, then by offset. A pre-vote changes no epoch and is granted
unless the leader works as far as this replica knows (KIP-996).

Source: Kafka's KafkaRaftClient.handleVoteRequest and handleVoteResponse.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from wirebroker.codecs.errors import ErrorCode
from wirebroker.coordinator.raft.handlers.leadership import become_leader
from wirebroker.coordinator.raft.handlers.responses import (
    handle_common_result,
    refuse_other_cluster,
)
from wirebroker.coordinator.raft.model.replica_key import destination_of
from wirebroker.coordinator.raft.protocol.messages import RequestFailure, VoteRequest, VoteResponse
from wirebroker.coordinator.raft.states.epoch_states import (
    NEVER,
    CandidateState,
    ProspectiveState,
)
from wirebroker.coordinator.raft.states.replica_core import MAX_EPOCH
from wirebroker.coordinator.raft.states.transitions import (
    add_vote,
    to_candidate,
    to_follower,
    to_prospective,
    to_unattached,
)

if TYPE_CHECKING:
    from wirebroker.coordinator.raft.protocol.messages import RaftResponse
    from wirebroker.coordinator.raft.states.replica_core import ReplicaCore


def voter_request_error(core: ReplicaCore, sender_id: int, epoch: int) -> ErrorCode:
    """Return why a request that only voters send must be refused, or NONE."""
    if epoch < core.state.epoch:
        return ErrorCode.FENCED_LEADER_EPOCH
    if sender_id < 0 or epoch > MAX_EPOCH:
        return ErrorCode.INVALID_REQUEST
    return ErrorCode.NONE


def handle_vote_request(
    core: ReplicaCore, token: object, request: VoteRequest, now_ms: int
) -> None:
    """Grant or reject a vote."""
    if refuse_other_cluster(core, token, request.cluster_id):
        return
    error = _error_of(core, request)
    if error is ErrorCode.NONE and request.epoch > core.state.epoch:
        to_unattached(core, request.epoch, None, now_ms)
    if error is ErrorCode.NONE and request.voter not in (None, core.key):
        assert request.voter is not None
        if not request.voter.matches(core.key):
            error = ErrorCode.INVALID_VOTER_KEY
    is_granted = error is ErrorCode.NONE and core.state.grants(
        request.candidate,
        is_up_to_date=request.log_end >= core.log.end,
        is_pre_vote=request.is_pre_vote,
    )
    if is_granted and not request.is_pre_vote and core.state.voted is None:
        add_vote(core, request.candidate, now_ms)
    core.respond(token, VoteResponse(error, core.known_leader(), is_granted))


def _error_of(core: ReplicaCore, request: VoteRequest) -> ErrorCode:
    # A candidate's epoch is new, so no log contains it.
    last_epoch_limit = request.epoch if request.is_pre_vote else request.epoch - 1
    is_own = request.candidate.replica_id == core.key.replica_id
    if request.log_end.offset < 0 or not 0 <= request.log_end.epoch <= last_epoch_limit or is_own:
        return ErrorCode.INVALID_REQUEST
    return voter_request_error(core, request.candidate.replica_id, request.epoch)


def handle_vote_response(
    core: ReplicaCore, voter_id: int, response: RaftResponse, now_ms: int
) -> bool:
    """Count a vote; return whether the voter can be asked again at once."""
    state = core.state
    if isinstance(response, RequestFailure):
        if response.error is ErrorCode.UNSUPPORTED_VERSION and isinstance(state, ProspectiveState):
            # The voter has no pre-votes, so an election begins without them.
            start_candidacy(core, now_ms)
            return True
        return False
    assert isinstance(response, VoteResponse), response
    handled = handle_common_result(core, response.error, response.leader, now_ms)
    if handled is not None:
        return handled
    if response.error is not ErrorCode.NONE:
        return False
    if isinstance(core.state, ProspectiveState | CandidateState):
        core.state.tally.record(voter_id, is_granted=response.is_granted)
        advance_election(core, now_ms)
    return True


def advance_election(core: ReplicaCore, now_ms: int) -> None:
    """Continue an election if enough votes are known."""
    state = core.state
    if isinstance(state, ProspectiveState):
        if state.tally.is_granted:
            start_candidacy(core, now_ms)
        elif state.tally.is_rejected:
            end_pre_vote(core, now_ms)
    elif isinstance(state, CandidateState) and state.tally.is_granted:
        become_leader(core, now_ms)


def start_pre_vote(core: ReplicaCore, now_ms: int) -> None:
    """Ask whether an election could be won."""
    to_prospective(core, now_ms)
    advance_election(core, now_ms)


def start_candidacy(core: ReplicaCore, now_ms: int) -> None:
    """Begin an election in the next epoch."""
    if core.state.epoch >= MAX_EPOCH:
        core.violation(f"epoch {core.state.epoch} is the last one; no election is possible")
        end_pre_vote(core, now_ms)
        return
    to_candidate(core, now_ms)
    advance_election(core, now_ms)


def end_pre_vote(core: ReplicaCore, now_ms: int) -> None:
    """Return to the known leader, or wait for one."""
    state = core.state
    assert isinstance(state, ProspectiveState), state
    leader_id = state.leader_id
    name = core.identity.listener_name
    if leader_id is not None and destination_of(leader_id, state.endpoints, name) is not None:
        to_follower(core, state.epoch, leader_id, state.endpoints, now_ms)
    else:
        to_unattached(core, state.epoch, leader_id, now_ms)


def poll_election(core: ReplicaCore, now_ms: int) -> int:
    """Ask for missing votes, or give up; return when to look again."""
    state = core.state
    assert isinstance(state, ProspectiveState | CandidateState), state
    is_pre_vote = isinstance(state, ProspectiveState)
    if core.shutdown_deadline_ms is None and now_ms >= state.election_deadline_ms:
        if is_pre_vote:
            end_pre_vote(core, now_ms)
        else:
            start_pre_vote(core, now_ms)
        return now_ms
    wake_ms = state.election_deadline_ms if core.shutdown_deadline_ms is None else NEVER
    if state.tally.is_rejected:
        return wake_ms
    for voter in state.tally.missing:
        destination = core.history.last_voters.destination(
            voter.replica_id, core.identity.listener_name
        )
        if destination is None:
            continue
        request = VoteRequest(
            core.identity.cluster_id, voter, core.key, state.epoch, core.log.end, is_pre_vote
        )
        core.send(destination, request, now_ms)
        wake_ms = min(wake_ms, core.requests.ready_at(voter.replica_id, now_ms))
    return wake_ms
