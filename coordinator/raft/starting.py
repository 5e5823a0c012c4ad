"""The state in which a replica starts.

| `quorum-state` says | state |
| --- | --- |
| nothing, or an epoch before the log's last one | Unattached |
| this node leads the epoch | Resigned: it may have lost records that it appended |
| this node voted for itself | Candidate, of the same epoch |
| another node leads | Follower; Unattached if its address is unknown |
| a vote, or only an epoch | Unattached |

The only voter begins an election at once. A broker only observes: if its directory was that of a
voter, it starts in Unattached instead of Resigned or Candidate.

Source: Kafka's QuorumState.initialize.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from wirebroker.coordinator.raft.handlers.votes import advance_election, start_pre_vote
from wirebroker.coordinator.raft.model.replica_key import destination_of
from wirebroker.coordinator.raft.model.vote_tally import VoteTally
from wirebroker.coordinator.raft.states.epoch_states import (
    NEVER,
    CandidateState,
    FollowerState,
    ResignedState,
    UnattachedState,
)
from wirebroker.coordinator.raft.states.transitions import persist

if TYPE_CHECKING:
    from wirebroker.coordinator.raft.states.replica_core import RaftState, ReplicaCore


def enter_first_state(core: ReplicaCore, now_ms: int) -> None:
    """Continue from the stored election state and log."""
    core.state = _first_state(core, now_ms)
    snapshot = core.log.latest_snapshot
    core.commit(max(core.log.start_offset, 0 if snapshot is None else snapshot.offset))
    persist(core)
    if isinstance(core.state, CandidateState):
        advance_election(core, now_ms)
    elif core.is_only_voter:
        start_pre_vote(core, now_ms)


def _first_state(core: ReplicaCore, now_ms: int) -> RaftState:
    election = core.persisted
    deadline_ms = now_ms + core.election_timeout_ms() if core.is_voter else NEVER
    epoch, leader_id, voted = election.epoch, election.leader_id, election.voted
    voters = core.history.last_voters
    if epoch < core.log.last_epoch:
        return UnattachedState(core.log.last_epoch, None, None, deadline_ms)
    if leader_id == core.key.replica_id and not core.identity.is_voter_capable:
        return UnattachedState(epoch, leader_id, voted, NEVER)
    if leader_id is not None and leader_id == core.key.replica_id:
        others = set(voters.ids) - {core.key.replica_id}
        endpoints = core.identity.endpoints
        # Also a former voter leaves this state: the next leader has a later epoch.
        deadline_ms = now_ms + core.election_timeout_ms()
        return ResignedState(epoch, leader_id, endpoints, others, deadline_ms)
    if leader_id is None and voted is not None and voted.matches(core.key) and core.is_voter:
        tally = VoteTally(voters.keys, core.key.replica_id)
        return CandidateState(epoch, core.key, tally, deadline_ms)
    endpoints = () if leader_id is None else voters.endpoints(leader_id)
    name = core.identity.listener_name
    if leader_id is None or destination_of(leader_id, endpoints, name) is None:
        return UnattachedState(epoch, leader_id, voted, deadline_ms)
    fetch_deadline_ms = now_ms + core.settings.fetch_timeout_ms
    return FollowerState(epoch, leader_id, endpoints, voted, fetch_deadline_ms, fetch_deadline_ms)
