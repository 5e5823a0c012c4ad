"""Which handler an event has.

Source: Kafka's KafkaRaftClient.handleRequest and handleResponse.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from wirebroker.codecs.errors import ErrorCode
from wirebroker.coordinator.raft.handlers.follower_fetch import handle_fetch_response
from wirebroker.coordinator.raft.handlers.leader_fetch import (
    handle_fetch_request,
    handle_fetch_snapshot_request,
)
from wirebroker.coordinator.raft.handlers.leadership import log_is_synced
from wirebroker.coordinator.raft.handlers.quorum_epochs import (
    handle_begin_request,
    handle_begin_response,
    handle_end_request,
    handle_end_response,
)
from wirebroker.coordinator.raft.handlers.quorum_progress import handle_describe_request
from wirebroker.coordinator.raft.handlers.snapshot_download import (
    handle_fetch_snapshot_response,
    snapshot_is_installed,
    snapshot_is_rejected,
)
from wirebroker.coordinator.raft.handlers.voter_changes import (
    handle_add_request,
    handle_api_versions_response,
    handle_remove_request,
    handle_update_request,
)
from wirebroker.coordinator.raft.handlers.voter_updates import (
    handle_join_response,
    handle_update_response,
)
from wirebroker.coordinator.raft.handlers.votes import handle_vote_request, handle_vote_response
from wirebroker.coordinator.raft.protocol.events import (
    LogSynced,
    RequestCancelled,
    RequestReceived,
    ResignationRequested,
    ResponseReceived,
    ShutdownRequested,
    SnapshotCreated,
    SnapshotInstalled,
    SnapshotRejected,
    Tick,
)
from wirebroker.coordinator.raft.protocol.messages import (
    AddRaftVoterRequest,
    BeginQuorumEpochRequest,
    DescribeQuorumRequest,
    EndQuorumEpochRequest,
    FetchSnapshotRequest,
    KRaftVersionsRequest,
    KRaftVersionsResponse,
    LogFetchRequest,
    RemoveRaftVoterRequest,
    UpdateRaftVoterRequest,
    VoteRequest,
)
from wirebroker.coordinator.raft.states.leader_state import LeaderState

if TYPE_CHECKING:
    from wirebroker.coordinator.raft.protocol.events import RaftEvent
    from wirebroker.coordinator.raft.protocol.messages import RaftRequest
    from wirebroker.coordinator.raft.states.replica_core import ReplicaCore


def handle_event(core: ReplicaCore, event: RaftEvent, now_ms: int) -> None:
    """Handle an event; `polling.poll` follows."""
    match event:
        case Tick():
            pass
        case RequestReceived(token, request):
            handle_request(core, token, request, now_ms)
        case ResponseReceived():
            _handle_response(core, event, now_ms)
        case LogSynced(point):
            log_is_synced(core, point)
        case RequestCancelled(token):
            _cancel(core, token)
        case SnapshotCreated():
            _note_snapshot(core, event)
        case SnapshotInstalled():
            snapshot_is_installed(core, event)
        case SnapshotRejected(point):
            snapshot_is_rejected(core, point)
        case ShutdownRequested(timeout_ms):
            core.shutdown_deadline_ms = now_ms + timeout_ms
        case ResignationRequested(epoch):
            if isinstance(core.state, LeaderState) and core.state.epoch == epoch:
                core.state.resign_is_requested = True


def handle_request(core: ReplicaCore, token: object, request: RaftRequest, now_ms: int) -> None:
    """Respond to a request, or hold it."""
    match request:
        case LogFetchRequest():
            handle_fetch_request(core, token, request, now_ms)
        case VoteRequest():
            handle_vote_request(core, token, request, now_ms)
        case BeginQuorumEpochRequest():
            handle_begin_request(core, token, request, now_ms)
        case EndQuorumEpochRequest():
            handle_end_request(core, token, request, now_ms)
        case FetchSnapshotRequest():
            handle_fetch_snapshot_request(core, token, request, now_ms)
        case AddRaftVoterRequest():
            handle_add_request(core, token, request, now_ms)
        case RemoveRaftVoterRequest():
            handle_remove_request(core, token, request, now_ms)
        case UpdateRaftVoterRequest():
            handle_update_request(core, token, request, now_ms)
        case DescribeQuorumRequest():
            handle_describe_request(core, token, now_ms)
        case KRaftVersionsRequest():
            versions = core.identity.supported_versions
            core.respond(token, KRaftVersionsResponse(ErrorCode.NONE, versions))


def _handle_response(core: ReplicaCore, event: ResponseReceived, now_ms: int) -> None:
    node_id = event.destination.node_id
    request = core.requests.expected(node_id, event.request_id, now_ms)
    if request is not None:
        is_success = _handle_expected(core, request, event, now_ms)
        core.requests.finished(node_id, event.request_id, is_success=is_success, now_ms=now_ms)


def _handle_expected(
    core: ReplicaCore, request: RaftRequest, event: ResponseReceived, now_ms: int
) -> bool:
    node_id, response = event.destination.node_id, event.response
    is_success = False
    match request:
        case LogFetchRequest():
            is_success = handle_fetch_response(core, response, now_ms)
        case VoteRequest():
            is_success = handle_vote_response(core, node_id, response, now_ms)
        case BeginQuorumEpochRequest():
            is_success = handle_begin_response(core, response, now_ms)
        case EndQuorumEpochRequest():
            is_success = handle_end_response(core, node_id, response, now_ms)
        case FetchSnapshotRequest():
            is_success = handle_fetch_snapshot_response(core, response, now_ms)
        case UpdateRaftVoterRequest():
            is_success = handle_update_response(core, response, now_ms)
        case AddRaftVoterRequest() | RemoveRaftVoterRequest():
            is_success = handle_join_response(core, response, now_ms)
        case KRaftVersionsRequest():
            is_success = handle_api_versions_response(core, node_id, response, now_ms)
        case DescribeQuorumRequest():
            raise AssertionError("no replica sends DescribeQuorum")
    return is_success


def _cancel(core: ReplicaCore, token: object) -> None:
    core.waiting.pop(token, None)
    pending = core.state.pending if isinstance(core.state, LeaderState) else None
    if pending is not None and pending.token == token:
        pending.token = None


def _note_snapshot(core: ReplicaCore, event: SnapshotCreated) -> None:
    assert event.point.offset <= (core.high_watermark or 0), (event, core.high_watermark)
    core.log.add_snapshot(event.point, event.size)
    core.history.forget_before(event.point.offset)
    if event.is_log_start:
        core.log.delete_before(event.point)
