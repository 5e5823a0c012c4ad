"""A leader's own log: the first record of its epoch, appends, and the high watermark.

    LeaderChange (version 0, without directory ids, as Kafka writes it)
    in the same batch: KRaftVersion, KRaftVoters, if kraft.version is 1 and only a storage tool's
    snapshot contains the voters, or they have other listeners or versions of the leader

Source: Kafka's LeaderState.appendStartOfEpochControlRecords and KafkaRaftClient.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.codecs.records.control import KRaftVersion, LeaderChange, QuorumVoter
from wirebroker.coordinator.raft.model.log_point import LogPoint, RaftBatch
from wirebroker.coordinator.raft.model.voter_set import DYNAMIC_VOTERS
from wirebroker.coordinator.raft.states.epoch_states import NEVER, CandidateState
from wirebroker.coordinator.raft.states.leader_state import LeaderState
from wirebroker.coordinator.raft.states.transitions import enter

if TYPE_CHECKING:
    from collections.abc import Sequence

    from wirebroker.codecs.records.control import ControlRecord
    from wirebroker.coordinator.raft.states.replica_core import ReplicaCore


def become_leader(core: ReplicaCore, now_ms: int) -> None:
    """Lead the epoch of a won election."""
    candidate = core.state
    assert isinstance(candidate, CandidateState), candidate
    assert candidate.tally.is_granted, candidate
    voters = core.history.last_voters
    leader = LeaderState(
        core.own_voter,
        core.key,
        epoch=candidate.epoch,
        voters=voters,
        granting=candidate.tally.granting,
        start_offset=core.log.end_offset,
        synced_offset=core.log.synced_offset,
        check_quorum_deadline_ms=now_ms + core.settings.check_quorum_timeout_ms,
        now_ms=now_ms,
    )
    if core.history.kraft_version < DYNAMIC_VOTERS:
        leader.volatile_voters = voters.with_updated(core.own_voter, any_directory=True)
    enter(core, leader)
    append_controls(core, leader, first_records(core, leader))


def first_records(core: ReplicaCore, leader: LeaderState) -> tuple[ControlRecord, ...]:
    """Return the first records of an epoch."""
    change = LeaderChange(
        leader.leader_id,
        tuple(QuorumVoter(voter_id) for voter_id in leader.voters),
        tuple(QuorumVoter(voter_id) for voter_id in leader.granting),
    )
    version = core.history.kraft_version
    if version < DYNAMIC_VOTERS:
        return (change,)
    voters = core.history.last_voters
    is_formatted_only = core.history.last_offset == -1
    if not is_formatted_only and not voters.needs_update(core.own_voter):
        return (change,)
    updated = voters.with_updated(core.own_voter)
    assert updated is not None, (voters, core.key)
    return (change, KRaftVersion(version), updated.to_record())


def append_controls(
    core: ReplicaCore, leader: LeaderState, controls: tuple[ControlRecord, ...]
) -> int:
    """Append a batch of control records; return the log's end after it."""
    start_offset = core.log.end_offset
    batch = RaftBatch(start_offset, start_offset + len(controls), leader.epoch, controls)
    _append(core, leader, (batch,))
    return batch.end_offset


def take_batches(core: ReplicaCore, epoch: int, batches: Sequence[RaftBatch]) -> None:
    """Append batches of this node's controller.

    Raises:
        KafkaError: NOT_LEADER_OR_FOLLOWER: this node does not lead that epoch, or no longer.
    """
    leader = core.state
    if not isinstance(leader, LeaderState) or leader.epoch != epoch:
        raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER, f"this node does not lead epoch {epoch}")
    _append(core, leader, batches)


def _append(core: ReplicaCore, leader: LeaderState, batches: Sequence[RaftBatch]) -> None:
    has_voters = core.append(batches)
    leader.log_end_offset = core.log.end_offset
    if has_voters:
        leader.set_voters(core.history.last_voters)
    core.sync()
    leader.respond_before = max(leader.respond_before, core.log.end_offset)
    advance_commit(core)


def log_is_synced(core: ReplicaCore, point: LogPoint) -> None:
    """Count what is on this node's disk."""
    core.log.is_synced(point)
    if isinstance(core.state, LeaderState):
        core.state.synced_offset = core.log.synced_offset
        advance_commit(core)


def advance_commit(core: ReplicaCore) -> None:
    """Commit what a majority has on disk; all waiting fetches then get a response."""
    leader = core.state
    if isinstance(leader, LeaderState) and leader.advance():
        assert leader.high_watermark is not None
        core.commit(leader.high_watermark)
        leader.respond_before = NEVER
