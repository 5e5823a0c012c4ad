"""A follower's download of a snapshot, which replaces its whole log.

Pieces are requested one after the other. When the last one is written, the snapshot is checked and
installed as a whole. Meanwhile (`ReplicaCore.installing`) the log does not change: this replica
neither fetches nor begins an election.

Source: Kafka's KafkaRaftClient.handleFetchSnapshotResponse.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from wirebroker.codecs.errors import ErrorCode
from wirebroker.coordinator.raft.handlers.responses import handle_common_result
from wirebroker.coordinator.raft.protocol.actions import (
    InstallSnapshot,
    VotersChanged,
    WriteSnapshot,
)
from wirebroker.coordinator.raft.protocol.messages import (
    FetchSnapshotRequest,
    FetchSnapshotResponse,
    RequestFailure,
)
from wirebroker.coordinator.raft.states.epoch_states import FollowerState

if TYPE_CHECKING:
    from wirebroker.coordinator.raft.model.log_point import LogPoint
    from wirebroker.coordinator.raft.protocol.events import SnapshotInstalled
    from wirebroker.coordinator.raft.protocol.messages import RaftResponse
    from wirebroker.coordinator.raft.states.epoch_states import SnapshotDownload
    from wirebroker.coordinator.raft.states.replica_core import ReplicaCore

# A larger snapshot is refused: a downloaded one is checked in memory.
MAX_SNAPSHOT_BYTES: Final = (1 << 31) - 1


def next_piece(core: ReplicaCore, download: SnapshotDownload) -> FetchSnapshotRequest:
    """Return the request for the next piece."""
    return FetchSnapshotRequest(
        core.identity.cluster_id,
        core.key,
        core.state.epoch,
        download.point,
        download.position,
        core.settings.fetch_snapshot_max_bytes,
    )


def handle_fetch_snapshot_response(core: ReplicaCore, response: RaftResponse, now_ms: int) -> bool:
    """Write a piece; return whether the leader can be asked again at once."""
    if isinstance(response, RequestFailure):
        if response.error is ErrorCode.UNKNOWN_SERVER_ERROR:
            # Kafka 4.4 fails to encode any error of the partition, such as that the snapshot is
            # deleted. The next fetch names the present one.
            core.give_up_download()
        return False
    assert isinstance(response, FetchSnapshotResponse), response
    handled = handle_common_result(core, response.error, response.leader, now_ms)
    if handled is not None:
        return handled
    follower = core.state
    if not isinstance(follower, FollowerState):
        return False
    if response.error is ErrorCode.SNAPSHOT_NOT_FOUND or (
        response.error is ErrorCode.NONE and response.snapshot is None
    ):
        # The leader has deleted it; the next fetch names a newer one.
        core.give_up_download()
    elif response.error is not ErrorCode.NONE or not _write(core, follower, response):
        return False
    core.leader_responded(follower, now_ms)
    return True


def _write(core: ReplicaCore, follower: FollowerState, response: FetchSnapshotResponse) -> bool:
    download = follower.download
    end = response.position + len(response.data)
    if (
        download is None
        or (download.point, download.position) != (response.snapshot, response.position)
        or not response.position < end <= response.size <= MAX_SNAPSHOT_BYTES
    ):
        core.violation(
            f"the leader sent {len(response.data)} bytes at {response.position} of"
            f" {response.snapshot} with {response.size} bytes, which were not requested or are too"
            " many"
        )
        core.give_up_download()
        return False
    core.actions.append(WriteSnapshot(download.point, download.position, response.data))
    download.position = end
    if end == response.size:
        follower.download = None
        core.installing = download.point
        core.actions.append(InstallSnapshot(download.point))
    return True


def snapshot_is_installed(core: ReplicaCore, event: SnapshotInstalled) -> None:
    """Continue after a snapshot that has replaced the log."""
    point = event.point
    assert core.installing == point, (core.installing, point)
    assert point.offset >= (core.high_watermark or 0), (point, core.high_watermark)
    core.log.restart_at(point, event.size)
    voters = core.history.last_voters
    core.history.reset(point.offset - 1, event.controls)
    if core.history.last_voters != voters:
        core.actions.append(VotersChanged(core.history.last_voters))
    core.commit(point.offset)
    core.installing = None


def snapshot_is_rejected(core: ReplicaCore, point: LogPoint) -> None:
    """Continue with the former log; the next fetch decides what follows."""
    if core.installing == point:
        core.installing = None
