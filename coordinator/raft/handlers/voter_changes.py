"""Changes of the voters: AddRaftVoter, RemoveRaftVoter, UpdateRaftVoter, and kraft.version.

One change at a time: a change begins only when the record of the one before is committed, and a
record of the leader's epoch as well. So the majorities of consecutive sets of voters overlap, also
across leaders. A set counts as soon as it is in a replica's log.

| step of an addition | fails with |
| --- | --- |
| the leader asks the new voter for its range of kraft.version | REQUEST_TIMED_OUT |
| it must support the present level | INVALID_REQUEST |
| it must have fetched up to the end of the log | REQUEST_TIMED_OUT |
| the voters are appended, and committed by the new majority | REQUEST_TIMED_OUT |

A leader that removed itself resigns once that is committed.

Source: Kafka's AddVoterHandler, RemoveVoterHandler, UpdateVoterHandler and LeaderState (KIP-853).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.codecs.primitives import ZERO_UUID
from wirebroker.codecs.records.control import KRaftVersion, Voter
from wirebroker.coordinator.raft.handlers.leadership import append_controls
from wirebroker.coordinator.raft.model.replica_key import are_bounded, destination_of
from wirebroker.coordinator.raft.model.voter_set import DYNAMIC_VOTERS
from wirebroker.coordinator.raft.protocol.messages import (
    KRaftVersionsRequest,
    KRaftVersionsResponse,
    RequestFailure,
    UpdateRaftVoterResponse,
    VoterChangeResponse,
)
from wirebroker.coordinator.raft.states.epoch_states import NEVER
from wirebroker.coordinator.raft.states.leader_state import (
    LeaderState,
    PendingAddition,
    PendingRemoval,
)

if TYPE_CHECKING:
    from wirebroker.codecs.records.control import ControlRecord
    from wirebroker.coordinator.raft.protocol.messages import (
        AddRaftVoterRequest,
        RaftResponse,
        RemoveRaftVoterRequest,
        UpdateRaftVoterRequest,
    )
    from wirebroker.coordinator.raft.states.replica_core import ReplicaCore

# Letters of a text of a request that a response repeats.
_LONGEST_SHOWN: Final = 100


def handle_add_request(
    core: ReplicaCore, token: object, request: AddRaftVoterRequest, now_ms: int
) -> None:
    """Begin to add a voter."""
    refusal = _change_refusal(core, request)
    key = request.voter
    name = core.identity.listener_name
    destination = destination_of(key.replica_id, request.endpoints, name)
    voters = core.history.last_voters
    if refusal is None and destination is None:
        refusal = VoterChangeResponse(
            ErrorCode.INVALID_REQUEST, f"the voter has no listener {name}"
        )
    elif refusal is None and not are_bounded(request.endpoints):
        refusal = VoterChangeResponse(
            ErrorCode.INVALID_REQUEST, "the voter has too many listeners, or too long names"
        )
    elif refusal is None:
        refusal = _pending_refusal(core, now_ms)
    if refusal is None and key.replica_id in voters.ids:
        refusal = VoterChangeResponse(
            ErrorCode.DUPLICATE_VOTER, f"node {key.replica_id} is a voter already"
        )
    leader = core.state
    if refusal is None and destination is not None and isinstance(leader, LeaderState):
        if core.send(destination, KRaftVersionsRequest(), now_ms):
            deadline_ms = now_ms + core.settings.request_timeout_ms
            leader.pending = PendingAddition(
                token, key, request.endpoints, request.ack_when_committed, deadline_ms
            )
            return
        refusal = VoterChangeResponse(
            ErrorCode.REQUEST_TIMED_OUT, f"node {key.replica_id} cannot get a request now"
        )
    assert refusal is not None
    core.respond(token, refusal)


def handle_remove_request(
    core: ReplicaCore, token: object, request: RemoveRaftVoterRequest, now_ms: int
) -> None:
    """Begin to remove a voter."""
    refusal = _change_refusal(core, request) or _pending_refusal(core, now_ms)
    voters = core.history.last_voters.with_removed(request.voter)
    if refusal is None and voters is None:
        refusal = VoterChangeResponse(
            ErrorCode.VOTER_NOT_FOUND, "this replica is not a voter, or the last one"
        )
    leader = core.state
    if refusal is not None or voters is None or not isinstance(leader, LeaderState):
        assert refusal is not None
        core.respond(token, refusal)
        return
    end_offset = append_controls(core, leader, (voters.to_record(),))
    deadline_ms = now_ms + core.settings.request_timeout_ms
    leader.pending = PendingRemoval(token, end_offset, deadline_ms)


def _change_refusal(
    core: ReplicaCore, request: AddRaftVoterRequest | RemoveRaftVoterRequest
) -> VoterChangeResponse | None:
    if not core.accepts_cluster(request.cluster_id):
        return VoterChangeResponse(
            ErrorCode.INCONSISTENT_CLUSTER_ID,
            f"{str(request.cluster_id)[:_LONGEST_SHOWN]} is not this cluster's id, "
            f"{core.identity.cluster_id}",
        )
    error = core.leader_error(core.state.epoch)
    if error is not ErrorCode.NONE:
        return VoterChangeResponse(error, "")
    if request.voter.replica_id < 0 or request.voter.directory_id == ZERO_UUID:
        return VoterChangeResponse(ErrorCode.INVALID_REQUEST, "the request names no voter")
    return None


def _pending_refusal(core: ReplicaCore, now_ms: int) -> VoterChangeResponse | None:
    leader = core.state
    assert isinstance(leader, LeaderState), leader
    if poll_voter_change(core, leader, now_ms) != NEVER:
        return VoterChangeResponse(
            ErrorCode.REQUEST_TIMED_OUT, "another change of voters is in progress"
        )
    if leader.high_watermark is None:
        return VoterChangeResponse(
            ErrorCode.REQUEST_TIMED_OUT, "the leader has not committed a record of its epoch"
        )
    if core.history.kraft_version < DYNAMIC_VOTERS:
        return VoterChangeResponse(
            ErrorCode.UNSUPPORTED_VERSION,
            f"voters cannot change with kraft.version {core.history.kraft_version}",
        )
    if not _is_last_change_committed(core, leader):
        return VoterChangeResponse(
            ErrorCode.REQUEST_TIMED_OUT, "the last change of voters is not committed"
        )
    return None


def _is_last_change_committed(core: ReplicaCore, leader: LeaderState) -> bool:
    offset = core.history.last_offset
    return offset is not None and offset < (leader.high_watermark or 0)


def handle_api_versions_response(
    core: ReplicaCore, voter_id: int, response: RaftResponse, now_ms: int
) -> bool:
    """Append the voters with the new one; return whether it can get another request at once."""
    leader = core.state
    if not isinstance(leader, LeaderState):
        return True
    pending = leader.pending
    if (
        not isinstance(pending, PendingAddition)
        or pending.end_offset is not None
        or pending.key.replica_id != voter_id
    ):
        return True
    error = response.error if isinstance(response, RequestFailure | KRaftVersionsResponse) else None
    if error is not ErrorCode.NONE:
        _finish(core, leader, ErrorCode.REQUEST_TIMED_OUT, f"the new voter's response: {error}")
        return False
    assert isinstance(response, KRaftVersionsResponse), response
    level = core.history.kraft_version
    lowest, highest = response.supported_versions or (0, 0)
    if not lowest <= level <= highest:
        text = f"the new voter supports kraft.version {lowest} to {highest}, not {level}"
        _finish(core, leader, ErrorCode.INVALID_REQUEST, text)
        return True
    if not leader.is_caught_up(pending.key, now_ms):
        _finish(core, leader, ErrorCode.REQUEST_TIMED_OUT, "the new voter is lagging behind")
        return True
    voter = Voter(*pending.key, pending.endpoints, lowest, highest)
    voters = core.history.last_voters.with_added(voter)
    assert voters is not None, (core.history.last_voters, pending)
    pending.end_offset = append_controls(core, leader, (voters.to_record(),))
    if not pending.ack_when_committed:
        core.respond(pending.token, VoterChangeResponse(ErrorCode.NONE))
        pending.token = None
    return True


def poll_voter_change(core: ReplicaCore, leader: LeaderState, now_ms: int) -> int:
    """Finish a change that is committed or takes too long; return when to look again."""
    pending = leader.pending
    if pending is None:
        return NEVER
    end_offset = pending.end_offset
    if end_offset is not None and (leader.high_watermark or 0) >= end_offset:
        _finish(core, leader, ErrorCode.NONE, None)
        if isinstance(pending, PendingRemoval) and not core.is_voter:
            leader.resign_is_requested = True
        return NEVER
    if now_ms >= pending.deadline_ms:
        _finish(core, leader, ErrorCode.REQUEST_TIMED_OUT, None)
        return NEVER
    return pending.deadline_ms


def _finish(core: ReplicaCore, leader: LeaderState, error: ErrorCode, message: str | None) -> None:
    pending = leader.pending
    assert pending is not None
    leader.pending = None
    if pending.token is not None:
        core.respond(pending.token, VoterChangeResponse(error, message))


def handle_update_request(
    core: ReplicaCore, token: object, request: UpdateRaftVoterRequest, now_ms: int
) -> None:
    """Record a voter's listeners and versions."""
    error = _update_error(core, request, now_ms)
    leader = core.state
    if error is ErrorCode.NONE and isinstance(leader, LeaderState):
        versions = (request.min_supported_version, request.max_supported_version)
        error = _update(core, leader, Voter(*request.voter, request.endpoints, *versions))
        if error is ErrorCode.NONE:
            deadline_ms = now_ms + core.settings.check_quorum_timeout_ms
            leader.voter_is_alive(request.voter, deadline_ms)
    core.respond(token, UpdateRaftVoterResponse(error, core.known_leader()))


def _update_error(core: ReplicaCore, request: UpdateRaftVoterRequest, now_ms: int) -> ErrorCode:
    if not core.accepts_cluster(request.cluster_id):
        return ErrorCode.INCONSISTENT_CLUSTER_ID
    error = core.leader_error(request.epoch)
    leader = core.state
    if error is not ErrorCode.NONE or not isinstance(leader, LeaderState):
        return error
    key = request.voter
    lowest, highest = request.min_supported_version, request.max_supported_version
    is_named = key.replica_id >= 0 and key.directory_id != ZERO_UUID
    name = core.identity.listener_name
    has_listener = destination_of(key.replica_id, request.endpoints, name) is not None
    is_valid = is_named and has_listener and are_bounded(request.endpoints)
    if not is_valid or not 0 <= lowest <= highest:
        return ErrorCode.INVALID_REQUEST
    is_pending = poll_voter_change(core, leader, now_ms) != NEVER
    if is_pending or leader.high_watermark is None:
        return ErrorCode.REQUEST_TIMED_OUT
    level = core.history.kraft_version
    is_static = level < DYNAMIC_VOTERS
    if leader.volatile_voters is None if is_static else not _is_last_change_committed(core, leader):
        return ErrorCode.REQUEST_TIMED_OUT
    return ErrorCode.NONE if lowest <= level <= highest else ErrorCode.INVALID_REQUEST


def _update(core: ReplicaCore, leader: LeaderState, voter: Voter) -> ErrorCode:
    if core.history.kraft_version < DYNAMIC_VOTERS:
        assert leader.volatile_voters is not None
        updated = leader.volatile_voters.with_updated(voter, any_directory=True)
        if updated is not None:
            leader.volatile_voters = updated
    else:
        updated = core.history.last_voters.with_updated(voter)
        if updated is not None:
            append_controls(core, leader, (updated.to_record(),))
    return ErrorCode.VOTER_NOT_FOUND if updated is None else ErrorCode.NONE


def upgrade_kraft_version(core: ReplicaCore, epoch: int, level: int, *, is_dry_run: bool) -> bool:
    """Raise kraft.version, which writes the voters into the log; return whether it is news.

    Raises:
        KafkaError: NOT_LEADER_OR_FOLLOWER; INVALID_UPDATE_VERSION: a downgrade, or a voter does not
            support the level or has not described itself to this leader.
    """
    leader = core.state
    if not isinstance(leader, LeaderState) or leader.epoch != epoch:
        raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER, f"this node does not lead epoch {epoch}")
    present = core.history.kraft_version
    if present == level:
        return False
    voters = leader.volatile_voters
    if level < present or voters is None:
        raise KafkaError(
            ErrorCode.INVALID_UPDATE_VERSION, f"kraft.version cannot go from {present} to {level}"
        )
    if not voters.supports(level) or any(key.directory_id == ZERO_UUID for key in voters.keys):
        raise KafkaError(
            ErrorCode.INVALID_UPDATE_VERSION, f"not all voters support kraft.version {level}"
        )
    if not is_dry_run:
        controls: tuple[ControlRecord, ...] = (KRaftVersion(level), voters.to_record())
        leader.volatile_voters = None
        append_controls(core, leader, controls)
    return True
