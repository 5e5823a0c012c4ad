"""Transitions between the states of a replica.

    Unattached   -> Unattached (later epoch, or a vote), Prospective, Follower
    Prospective  -> Unattached, Prospective (a vote), Candidate, Follower
    Candidate    -> Unattached, Prospective, Leader, Follower
    Leader       -> Resigned, Unattached, Follower
    Follower     -> Unattached, Prospective, Follower (later epoch, or better endpoints)
    Resigned     -> Unattached, Prospective (as the only voter), Follower

A transition that changes the epoch, the leader or the vote persists it before any later action.

Source: Kafka's QuorumState.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from wirebroker.codecs.errors import ErrorCode
from wirebroker.coordinator.raft.model.replica_key import destination_of
from wirebroker.coordinator.raft.model.vote_tally import VoteTally
from wirebroker.coordinator.raft.protocol.actions import LeaderChanged, Persist
from wirebroker.coordinator.raft.protocol.messages import LogFetchResponse, VoterChangeResponse
from wirebroker.coordinator.raft.states.epoch_states import (
    NEVER,
    CandidateState,
    FollowerState,
    ProspectiveState,
    ResignedState,
    UnattachedState,
)
from wirebroker.coordinator.raft.states.leader_state import LeaderState
from wirebroker.coordinator.raft.states.replica_core import MAX_EPOCH

if TYPE_CHECKING:
    from wirebroker.coordinator.raft.model.replica_key import Endpoints, ReplicaKey
    from wirebroker.coordinator.raft.states.replica_core import RaftState, ReplicaCore

TRANSITIONS: Final[dict[type, tuple[type, ...]]] = {
    UnattachedState: (UnattachedState, ProspectiveState, FollowerState),
    ProspectiveState: (UnattachedState, ProspectiveState, CandidateState, FollowerState),
    CandidateState: (UnattachedState, ProspectiveState, LeaderState, FollowerState),
    LeaderState: (ResignedState, UnattachedState, FollowerState),
    FollowerState: (UnattachedState, ProspectiveState, FollowerState),
    ResignedState: (UnattachedState, ProspectiveState, FollowerState),
}


def enter(core: ReplicaCore, state: RaftState) -> None:
    """Continue in another state."""
    former = core.state
    assert type(state) in TRANSITIONS[type(former)], (former, state)
    assert state.epoch >= former.epoch, (former, state)
    core.give_up_download()
    core.state = state
    persist(core)
    core.requests.forget_all()
    if isinstance(former, LeaderState):
        _refuse_waiting(core, former)
    start_offset = state.start_offset if isinstance(state, LeaderState) else None
    leader_id = _acting_leader(core, state)
    if (leader_id, state.epoch) != (_acting_leader(core, former), former.epoch):
        core.actions.append(LeaderChanged(leader_id, state.epoch, start_offset))


def _acting_leader(core: ReplicaCore, state: RaftState) -> int | None:
    """Return the leader; a leader that resigned leads no more."""
    has_resigned = state.leader_id == core.key.replica_id and not isinstance(state, LeaderState)
    return None if has_resigned else state.leader_id


def persist(core: ReplicaCore) -> None:
    """Write what must be remembered of the present state, if it is new."""
    election = core.election_state()
    version = core.history.kraft_version
    if (election, version) == (core.persisted, core.persisted_version):
        return
    assert core.persisted.may_become(election), (core.persisted, election)
    core.persisted, core.persisted_version = election, version
    core.actions.append(Persist(election, version))


def to_unattached(core: ReplicaCore, epoch: int, leader_id: int | None, now_ms: int) -> None:
    """Wait for news of a leader, in a later epoch or after a lost pre-vote."""
    state = core.state
    if core.is_voter:
        deadline_ms = _remaining_deadline(state)
        if deadline_ms is None:
            deadline_ms = now_ms + core.election_timeout_ms()
    else:
        deadline_ms = NEVER
    voted = state.voted if epoch == state.epoch else None
    enter(core, UnattachedState(epoch, leader_id, voted, deadline_ms))


def _remaining_deadline(state: RaftState) -> int | None:
    """Return the present election deadline: a later epoch of a peer does not postpone it."""
    if isinstance(state, CandidateState | UnattachedState | ResignedState):
        return state.election_deadline_ms
    if isinstance(state, ProspectiveState) and not state.tally.is_rejected:
        return state.election_deadline_ms
    return None


def to_prospective(core: ReplicaCore, now_ms: int) -> None:
    """Ask for pre-votes."""
    state = core.state
    assert core.is_voter, core.history.last_voters
    tally = VoteTally(core.history.last_voters.keys, core.key.replica_id)
    deadline_ms = now_ms + core.election_timeout_ms()
    enter(
        core,
        ProspectiveState(
            state.epoch, state.leader_id, state.endpoints, state.voted, tally, deadline_ms
        ),
    )


def to_candidate(core: ReplicaCore, now_ms: int) -> None:
    """Vote for itself in the next epoch."""
    assert core.is_voter, core.history.last_voters
    tally = VoteTally(core.history.last_voters.keys, core.key.replica_id)
    deadline_ms = now_ms + core.election_timeout_ms()
    enter(core, CandidateState(core.state.epoch + 1, core.key, tally, deadline_ms))


def to_follower(
    core: ReplicaCore, epoch: int, leader_id: int, endpoints: Endpoints, now_ms: int
) -> None:
    """Follow a leader."""
    assert leader_id != core.key.replica_id, leader_id
    voted = core.state.voted if epoch == core.state.epoch else None
    fetch_deadline_ms = now_ms + core.settings.fetch_timeout_ms
    enter(
        core,
        FollowerState(epoch, leader_id, endpoints, voted, fetch_deadline_ms, fetch_deadline_ms),
    )


def to_resigned(core: ReplicaCore, now_ms: int) -> None:
    """Stop leading."""
    leader = core.state
    assert isinstance(leader, LeaderState), leader
    voter_ids = set(core.history.last_voters.ids) - {core.key.replica_id}
    enter(
        core,
        ResignedState(
            leader.epoch,
            leader.leader_id,
            leader.endpoints,
            voter_ids,
            now_ms + core.election_timeout_ms(),
            leader.successors(),
        ),
    )


def add_vote(core: ReplicaCore, candidate: ReplicaKey, now_ms: int) -> None:
    """Remember the vote for a candidate of this epoch, and give it time to win."""
    state = core.state
    assert state.voted is None, state
    assert candidate.replica_id != core.key.replica_id, candidate
    deadline_ms = now_ms + core.election_timeout_ms()
    if isinstance(state, UnattachedState):
        enter(core, UnattachedState(state.epoch, state.leader_id, candidate, deadline_ms))
        return
    assert isinstance(state, ProspectiveState), state
    tally = VoteTally(core.history.last_voters.keys, core.key.replica_id)
    enter(
        core,
        ProspectiveState(
            state.epoch, state.leader_id, state.endpoints, candidate, tally, deadline_ms
        ),
    )


def learn_leader(
    core: ReplicaCore, epoch: int, leader_id: int | None, endpoints: Endpoints, now_ms: int
) -> bool:
    """Follow news of an epoch and its leader; return whether the state changed.

    A leader without a known address counts as unknown.
    """
    if not _is_news(core, epoch, leader_id, endpoints):
        return False
    if leader_id == core.key.replica_id:
        # An earlier life of this node, with another directory, leads. Never vote in its epoch.
        to_unattached(core, epoch, leader_id, now_ms)
        return True
    name = core.identity.listener_name
    if leader_id is not None and destination_of(leader_id, endpoints, name) is not None:
        to_follower(core, epoch, leader_id, endpoints, now_ms)
        return True
    if epoch > core.state.epoch:
        to_unattached(core, epoch, None, now_ms)
        return True
    return False


def _is_news(core: ReplicaCore, epoch: int, leader_id: int | None, endpoints: Endpoints) -> bool:
    """Return whether a message says more than is known here.

    Two leaders of one epoch are impossible unless a replica lost its directory: such a message is
    reported.
    """
    state = core.state
    if epoch != state.epoch:
        return state.epoch < epoch <= MAX_EPOCH
    if leader_id in (None, core.key.replica_id):
        return False
    if state.leader_id is None:
        return True
    if leader_id != state.leader_id:
        core.violation(f"epoch {epoch} has two leaders, {state.leader_id} and {leader_id}")
        return False
    return len(endpoints) > len(state.endpoints)


def _refuse_waiting(core: ReplicaCore, leader: LeaderState) -> None:
    """Respond to the requests that a leader held."""
    response = LogFetchResponse(ErrorCode.NOT_LEADER_OR_FOLLOWER, core.known_leader())
    for token in core.waiting:
        core.respond(token, response)
    core.waiting.clear()
    if leader.pending is not None and leader.pending.token is not None:
        # The next leader will finish the change of voters, or undo it.
        refusal = VoterChangeResponse(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        core.respond(leader.pending.token, refusal)
