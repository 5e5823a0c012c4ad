"""What each state does as time passes.

Source: Kafka's KafkaRaftClient.pollCurrentState.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from wirebroker.coordinator.raft.handlers.follower_fetch import poll_bootstrap, poll_fetch
from wirebroker.coordinator.raft.handlers.leader_fetch import complete_waiting
from wirebroker.coordinator.raft.handlers.quorum_epochs import poll_announcements, poll_resigned
from wirebroker.coordinator.raft.handlers.voter_changes import poll_voter_change
from wirebroker.coordinator.raft.handlers.voter_updates import poll_voter_update
from wirebroker.coordinator.raft.handlers.votes import (
    poll_election,
    start_pre_vote,
)
from wirebroker.coordinator.raft.states.epoch_states import (
    CandidateState,
    FollowerState,
    ProspectiveState,
    ResignedState,
    UnattachedState,
)
from wirebroker.coordinator.raft.states.leader_state import LeaderState
from wirebroker.coordinator.raft.states.transitions import to_resigned

if TYPE_CHECKING:
    from wirebroker.coordinator.raft.states.replica_core import ReplicaCore

# Follower, prospective, candidate, leader: no step needs more transitions than a whole election.
_MAX_TRANSITIONS: Final = 8


def poll(core: ReplicaCore, now_ms: int) -> int:
    """Do the work that is due in the present state; return when to poll again."""
    for _ in range(_MAX_TRANSITIONS):
        state = core.state
        wake_ms = _poll_state(core, now_ms)
        if core.state is state:
            if core.shutdown_deadline_ms is not None:
                wake_ms = min(wake_ms, core.shutdown_deadline_ms)
            return wake_ms
    raise AssertionError(f"{core.state} does not come to rest")


def _poll_state(core: ReplicaCore, now_ms: int) -> int:
    match core.state:
        case LeaderState() as leader:
            return _poll_leader(core, leader, now_ms)
        case FollowerState() as follower:
            return _poll_follower(core, follower, now_ms)
        case UnattachedState() as unattached:
            return _poll_unattached(core, unattached, now_ms)
        case ProspectiveState() | CandidateState():
            return poll_election(core, now_ms)
        case ResignedState():
            return poll_resigned(core, now_ms)


def _poll_leader(core: ReplicaCore, leader: LeaderState, now_ms: int) -> int:
    change_deadline_ms = poll_voter_change(core, leader, now_ms)
    quorum_deadline_ms = leader.quorum_deadline_ms
    is_over = leader.resign_is_requested or now_ms >= quorum_deadline_ms
    if is_over or core.shutdown_deadline_ms is not None:
        to_resigned(core, now_ms)
        return now_ms
    return min(
        complete_waiting(core, now_ms),
        change_deadline_ms,
        poll_announcements(core, leader, now_ms),
        quorum_deadline_ms,
    )


def _poll_unattached(core: ReplicaCore, unattached: UnattachedState, now_ms: int) -> int:
    is_electing = core.is_voter and core.may_elect
    if is_electing and now_ms >= unattached.election_deadline_ms:
        start_pre_vote(core, now_ms)
        return now_ms
    wake_ms = poll_bootstrap(core, now_ms)
    return min(wake_ms, unattached.election_deadline_ms) if is_electing else wake_ms


def _poll_follower(core: ReplicaCore, follower: FollowerState, now_ms: int) -> int:
    is_electing = core.is_voter and core.may_elect
    if is_electing and now_ms >= follower.fetch_deadline_ms:
        start_pre_vote(core, now_ms)
        return now_ms
    poll_voter_update(core, follower, now_ms)
    wake_ms = poll_fetch(core, follower, now_ms)
    return min(wake_ms, follower.fetch_deadline_ms) if is_electing else wake_ms
