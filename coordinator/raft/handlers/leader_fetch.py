"""Fetch and FetchSnapshot at the leader.

A fetch says how far the follower's log is on its disk, so it is what commits records. A fetch with
nothing to return waits until there are records or a higher high watermark.

Source: Kafka's KafkaRaftClient.handleFetchRequest and handleFetchSnapshotRequest.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from wirebroker.codecs.errors import ErrorCode
from wirebroker.coordinator.raft.handlers.leadership import advance_commit
from wirebroker.coordinator.raft.handlers.responses import refuse_other_cluster
from wirebroker.coordinator.raft.model.log_point import FORMATTED_SNAPSHOT, LogSlice, SnapshotSlice
from wirebroker.coordinator.raft.model.log_view import Agreement
from wirebroker.coordinator.raft.protocol.messages import FetchSnapshotResponse, LogFetchResponse
from wirebroker.coordinator.raft.states.epoch_states import NEVER
from wirebroker.coordinator.raft.states.leader_state import LeaderState
from wirebroker.coordinator.raft.states.replica_core import WaitingFetch

if TYPE_CHECKING:
    from wirebroker.coordinator.raft.protocol.messages import FetchSnapshotRequest, LogFetchRequest
    from wirebroker.coordinator.raft.states.replica_core import ReplicaCore

# Beyond this, fetches get an empty response at once: each waiting one takes memory.
MAX_WAITING_FETCHES: Final = 2_000


def handle_fetch_request(
    core: ReplicaCore, token: object, request: LogFetchRequest, now_ms: int
) -> None:
    """Respond with records, or wait for them."""
    if refuse_other_cluster(core, token, request.cluster_id):
        return
    end = request.log_end
    if request.max_wait_ms < 0 or end.offset < 0 or not 0 <= end.epoch <= request.epoch:
        start_offset = core.log.start_offset
        core.respond(
            token,
            LogFetchResponse(
                ErrorCode.INVALID_REQUEST, core.known_leader(), log_start_offset=start_offset
            ),
        )
        return
    response = _response(core, request, now_ms)
    is_final = (
        response.error is not ErrorCode.NONE
        or response.records is not None
        or response.diverging is not None
        or response.snapshot is not None
        or request.high_watermark < response.high_watermark
    )
    if is_final or request.max_wait_ms == 0 or len(core.waiting) >= MAX_WAITING_FETCHES:
        core.respond(token, response)
    else:
        deadline_ms = now_ms + request.max_wait_ms
        core.waiting[token] = WaitingFetch(request, response, deadline_ms)


def _response(core: ReplicaCore, request: LogFetchRequest, now_ms: int) -> LogFetchResponse:
    error = core.leader_error(request.epoch)
    if error is ErrorCode.NONE and request.replica.replica_id == core.key.replica_id:
        # Another replica has this node's id; its progress must not count as the leader's.
        error = ErrorCode.UNKNOWN_SERVER_ERROR
    leader = core.state
    if error is not ErrorCode.NONE or not isinstance(leader, LeaderState):
        return LogFetchResponse(error, core.known_leader(), log_start_offset=core.log.start_offset)
    first_snapshot = core.log.needs_snapshot() if request.log_end.offset == 0 else None
    comparison = core.log.compare(request.log_end)
    records = diverging = None
    snapshot = first_snapshot
    if snapshot is None and comparison.agreement is Agreement.VALID:
        note_progress(core, leader, request, now_ms)
        if request.log_end.offset < core.log.end_offset:
            records = LogSlice(request.log_end.offset, core.log.end_offset, request.max_bytes)
    elif snapshot is None and comparison.agreement is Agreement.SNAPSHOT:
        snapshot = comparison.point
    elif snapshot is None:
        diverging = comparison.point
    return LogFetchResponse(
        ErrorCode.NONE,
        core.known_leader(),
        high_watermark=-1 if leader.high_watermark is None else leader.high_watermark,
        log_start_offset=core.log.start_offset,
        diverging=diverging,
        snapshot=snapshot,
        records=records,
    )


def note_progress(
    core: ReplicaCore, leader: LeaderState, request: LogFetchRequest, now_ms: int
) -> None:
    """Count what is on a follower's disk."""
    if request.replica.replica_id < 0:
        return
    is_voter = leader.follower_fetched(request.replica, request.log_end.offset, now_ms)
    leader.voter_is_alive(request.replica, now_ms + core.settings.check_quorum_timeout_ms)
    if is_voter:
        advance_commit(core)


def complete_waiting(core: ReplicaCore, now_ms: int) -> int:
    """Respond to waiting fetches that can be answered; return the first deadline of the others."""
    leader = core.state
    if not isinstance(leader, LeaderState):
        return NEVER
    while leader.respond_before:
        before, leader.respond_before = leader.respond_before, 0
        for token, waiting in list(core.waiting.items()):
            if waiting.request.log_end.offset < before:
                del core.waiting[token]
                core.respond(token, _response(core, waiting.request, now_ms))
    deadline_ms = NEVER
    for token, waiting in list(core.waiting.items()):
        if now_ms >= waiting.deadline_ms:
            del core.waiting[token]
            core.respond(token, waiting.empty_response)
        else:
            deadline_ms = min(deadline_ms, waiting.deadline_ms)
    return deadline_ms


def handle_fetch_snapshot_request(
    core: ReplicaCore, token: object, request: FetchSnapshotRequest, now_ms: int
) -> None:
    """Respond with a piece of a snapshot."""
    if refuse_other_cluster(core, token, request.cluster_id):
        return
    error = core.leader_error(request.epoch)
    size = core.log.snapshots.get(request.snapshot)
    leader = core.state
    if error is ErrorCode.NONE and (size is None or request.snapshot == FORMATTED_SNAPSHOT):
        error = ErrorCode.SNAPSHOT_NOT_FOUND
    elif error is ErrorCode.NONE and not 0 <= request.position < (size or 0):
        error = ErrorCode.POSITION_OUT_OF_RANGE
    if error is not ErrorCode.NONE or not isinstance(leader, LeaderState) or size is None:
        core.respond(token, FetchSnapshotResponse(error, core.known_leader()))
        return
    if request.replica.replica_id != core.key.replica_id:
        leader.voter_is_alive(request.replica, now_ms + core.settings.check_quorum_timeout_ms)
    core.respond(
        token,
        FetchSnapshotResponse(
            ErrorCode.NONE,
            core.known_leader(),
            snapshot=request.snapshot,
            size=size,
            position=request.position,
            bytes_to_read=SnapshotSlice(request.position, max(0, request.max_bytes)),
        ),
    )
