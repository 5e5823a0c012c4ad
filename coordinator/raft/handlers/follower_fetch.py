"""Fetches of a follower or observer: records, truncations and the high watermark.

A fetch is sent only when the whole log is on disk (if this replica may vote), because the leader
counts the fetched offset as stored. What the leader finds diverging is truncated by epoch; nothing
below the high watermark ever is.

Source: Kafka's KafkaRaftClient.handleFetchResponse and pollFollower.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from wirebroker.codecs.errors import ErrorCode
from wirebroker.coordinator.raft.handlers.responses import handle_common_result
from wirebroker.coordinator.raft.handlers.snapshot_download import next_piece
from wirebroker.coordinator.raft.model.replica_key import destination_of
from wirebroker.coordinator.raft.protocol.messages import (
    LogFetchRequest,
    LogFetchResponse,
    RequestFailure,
)
from wirebroker.coordinator.raft.states.epoch_states import NEVER, FollowerState, SnapshotDownload

if TYPE_CHECKING:
    from wirebroker.coordinator.raft.model.log_point import LogPoint, RaftBatch
    from wirebroker.coordinator.raft.protocol.messages import RaftResponse
    from wirebroker.coordinator.raft.states.replica_core import ReplicaCore


def handle_fetch_response(core: ReplicaCore, response: RaftResponse, now_ms: int) -> bool:
    """Append what the leader sent; return whether it can be asked again at once."""
    if isinstance(response, RequestFailure):
        return False
    assert isinstance(response, LogFetchResponse), response
    handled = handle_common_result(core, response.error, response.leader, now_ms)
    if handled is not None:
        return handled
    follower = core.state
    if response.error is not ErrorCode.NONE or not isinstance(follower, FollowerState):
        return False
    if response.diverging is not None:
        is_valid = _truncate(core, response.diverging)
    elif response.snapshot is not None:
        is_valid = _begin_download(core, follower, response.snapshot)
    else:
        is_valid = _append(core, follower, response.batches)
        core.commit(min(core.log.end_offset, response.high_watermark))
        follower.leader_high_watermark = response.high_watermark
    if is_valid:
        core.leader_responded(follower, now_ms)
    return is_valid


def _truncate(core: ReplicaCore, diverging: LogPoint) -> bool:
    end_offset = core.log.common_end(diverging)
    committed = max(core.high_watermark or 0, core.log.start_offset)
    if end_offset < committed:
        core.violation(
            f"the leader's log ends at {diverging}, before the committed offset {committed}",
            lacks_commits=True,
        )
        return False
    if end_offset < core.log.end_offset:
        core.truncate(end_offset)
    return True


def _begin_download(core: ReplicaCore, follower: FollowerState, snapshot: LogPoint) -> bool:
    if snapshot.epoch < 0 or snapshot.offset < 0:
        core.violation(f"the leader names a snapshot {snapshot}")
        return False
    if snapshot.offset < (core.high_watermark or 0):
        core.violation(
            f"the leader's snapshot {snapshot} ends before committed records", lacks_commits=True
        )
        return False
    if follower.download is not None and follower.download.point == snapshot:
        return True  # a piece was late, so this replica has fetched meanwhile
    if snapshot in core.log.snapshots:
        # This log contains the snapshot already, so the next fetch would get the same response.
        core.violation(f"the leader names the snapshot {snapshot}, which this replica has")
        return False
    core.give_up_download()
    follower.download = SnapshotDownload(snapshot)
    return True


def _append(core: ReplicaCore, follower: FollowerState, batches: tuple[RaftBatch, ...]) -> bool:
    valid: list[RaftBatch] = []
    last_epoch, end_offset = core.log.end
    for batch in batches:
        if batch.base_offset != end_offset or not batch.base_offset < batch.end_offset:
            core.violation(f"the leader sent offset {batch.base_offset} instead of {end_offset}")
            break
        if not last_epoch <= batch.epoch <= follower.epoch:
            core.violation(f"the leader sent epoch {batch.epoch} after {last_epoch}")
            break
        valid.append(batch)
        last_epoch, end_offset = batch.epoch, batch.end_offset
    if valid:
        # Also before an invalid batch: the next fetch begins when all is on disk.
        core.append(valid)
        core.sync()
    return len(valid) == len(batches)


def poll_fetch(core: ReplicaCore, follower: FollowerState, now_ms: int) -> int:
    """Fetch from the leader, or elsewhere if it does not respond; return when to look again."""
    if not may_fetch(core):
        return NEVER
    leader = destination_of(follower.leader_id, follower.endpoints, core.identity.listener_name)
    assert leader is not None, follower
    if core.requests.is_failing(leader.node_id, now_ms):
        if core.requests.is_ready(leader.node_id, now_ms):
            core.requests.forget(leader.node_id)
        retry_ms = max(now_ms + 1, core.requests.ready_at(leader.node_id, now_ms))
        return min(poll_bootstrap(core, now_ms), retry_ms)
    in_flight_until = core.requests.in_flight_until(now_ms)
    if in_flight_until is not None:
        return in_flight_until
    if follower.download is not None:
        core.send(leader, next_piece(core, follower.download), now_ms)
    else:
        core.send(leader, fetch_request(core), now_ms)
    return core.requests.ready_at(leader.node_id, now_ms)


def poll_bootstrap(core: ReplicaCore, now_ms: int) -> int:
    """Look for the leader at a bootstrap server; return when to look again."""
    if not may_fetch(core):
        return NEVER
    servers = core.bootstrap_servers
    server = core.requests.ready_server(servers, now_ms)
    if server is not None:
        core.send(server, fetch_request(core), now_ms)
    return core.requests.server_ready_at(servers, now_ms)


def may_fetch(core: ReplicaCore) -> bool:
    """Return whether the end of the log is on disk, as a fetch says."""
    is_synced = not core.must_sync or core.log.synced_offset == core.log.end_offset
    return is_synced and core.installing is None


def fetch_request(core: ReplicaCore) -> LogFetchRequest:
    """Return a request for the records after the end of the log."""
    return LogFetchRequest(
        core.identity.cluster_id,
        core.key,
        core.state.epoch,
        core.log.end,
        -1 if core.high_watermark is None else core.high_watermark,
        core.settings.fetch_max_bytes,
        core.settings.fetch_max_wait_ms,
    )
