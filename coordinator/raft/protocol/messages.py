"""Requests and responses between the replicas of the metadata log, without their wire format.

Every request names the cluster (`cluster_id`, None if the sender does not say). Every response
names the leader that the sender knows; a receiver learns epochs and leaders from any of them.

    request           sent by                  to
    Vote              prospective, candidate   every voter that has not responded
    BeginQuorumEpoch  leader                   voters that have not fetched lately
    EndQuorumEpoch    resigned                 voters that have not acknowledged
    Fetch             follower, unattached     the leader, or a bootstrap server
    FetchSnapshot     follower                 the leader
    UpdateRaftVoter   follower that votes      the leader
    AddRaftVoter      administrator, observer  the leader
    RemoveRaftVoter   administrator, observer  the leader
    DescribeQuorum    anyone                   the leader
    ApiVersions       leader                   a new voter, for its kraft.version range

Source: KIP-595, KIP-630, KIP-853, KIP-996.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from wirebroker.codecs.errors import ErrorCode
    from wirebroker.coordinator.raft.model.log_point import (
        LogPoint,
        LogSlice,
        RaftBatch,
        SnapshotSlice,
    )
    from wirebroker.coordinator.raft.model.replica_key import Endpoints, ReplicaKey

NO_LEADER: Final = -1
# Fetch before v18 does not carry the follower's high watermark; then no response is early.
NO_EARLY_RESPONSE: Final = (1 << 63) - 1


class KnownLeader(NamedTuple):
    """The epoch of a response's sender, and its leader (NO_LEADER if unknown)."""

    leader_id: int
    epoch: int
    endpoints: Endpoints = ()


class RequestFailure(NamedTuple):
    """A response with nothing but a top-level error, or a request that got no response.

    BROKER_NOT_AVAILABLE: no response arrived. UNSUPPORTED_VERSION: the peer cannot receive the
    request, such as a pre-vote.
    """

    error: ErrorCode


class VoteRequest(NamedTuple):
    """Asks for a vote in `epoch`, or whether one could be had in the next (`is_pre_vote`).

    `voter` is the receiver as the sender knows it; None before v1.
    """

    cluster_id: str | None
    voter: ReplicaKey | None
    candidate: ReplicaKey
    epoch: int
    log_end: LogPoint
    is_pre_vote: bool


class VoteResponse(NamedTuple):
    """Whether the vote is granted."""

    error: ErrorCode
    leader: KnownLeader
    is_granted: bool


class BeginQuorumEpochRequest(NamedTuple):
    """Announces the leader of an epoch."""

    cluster_id: str | None
    voter: ReplicaKey | None
    leader_id: int
    epoch: int
    endpoints: Endpoints


class BeginQuorumEpochResponse(NamedTuple):
    """Acknowledges a leader."""

    error: ErrorCode
    leader: KnownLeader


class EndQuorumEpochRequest(NamedTuple):
    """Announces a resignation; `preferred` are the voters with the longest logs first."""

    cluster_id: str | None
    leader_id: int
    epoch: int
    preferred: tuple[ReplicaKey, ...]
    endpoints: Endpoints


class EndQuorumEpochResponse(NamedTuple):
    """Acknowledges a resignation."""

    error: ErrorCode
    leader: KnownLeader


class LogFetchRequest(NamedTuple):
    """Asks for the records after `log_end`, the end of the sender's log.

    With it the sender says that its log up to there is on disk.
    """

    cluster_id: str | None
    replica: ReplicaKey
    epoch: int
    log_end: LogPoint
    high_watermark: int = NO_EARLY_RESPONSE
    max_bytes: int = 1 << 20
    max_wait_ms: int = 0


class LogFetchResponse(NamedTuple):
    """Records, or why there are none.

    Attributes:
        records: The records to read (sent).
        batches: The records (received).
        diverging: The sender's log differs after this point of the leader's.
        snapshot: The sender must load this snapshot first.
    """

    error: ErrorCode
    leader: KnownLeader
    high_watermark: int = -1
    log_start_offset: int = -1
    diverging: LogPoint | None = None
    snapshot: LogPoint | None = None
    records: LogSlice | None = None
    batches: tuple[RaftBatch, ...] = ()


class FetchSnapshotRequest(NamedTuple):
    """Asks for a snapshot's bytes from `position` on."""

    cluster_id: str | None
    replica: ReplicaKey
    epoch: int
    snapshot: LogPoint
    position: int
    max_bytes: int


class FetchSnapshotResponse(NamedTuple):
    """Bytes of a snapshot: to read (`bytes_to_read`, sent) or read (`data`, received)."""

    error: ErrorCode
    leader: KnownLeader
    snapshot: LogPoint | None = None
    size: int = 0
    position: int = 0
    bytes_to_read: SnapshotSlice | None = None
    data: bytes = b""


class AddRaftVoterRequest(NamedTuple):
    """Adds a voter."""

    cluster_id: str | None
    voter: ReplicaKey
    endpoints: Endpoints
    timeout_ms: int
    ack_when_committed: bool = True


class RemoveRaftVoterRequest(NamedTuple):
    """Removes a voter."""

    cluster_id: str | None
    voter: ReplicaKey


class VoterChangeResponse(NamedTuple):
    """The response to AddRaftVoter and RemoveRaftVoter."""

    error: ErrorCode
    message: str | None = None


class UpdateRaftVoterRequest(NamedTuple):
    """States the sender's listeners and the range of kraft.version that it supports."""

    cluster_id: str | None
    epoch: int
    voter: ReplicaKey
    endpoints: Endpoints
    min_supported_version: int
    max_supported_version: int


class UpdateRaftVoterResponse(NamedTuple):
    """Whether the voter is recorded."""

    error: ErrorCode
    leader: KnownLeader


class KRaftVersionsRequest(NamedTuple):
    """Asks for the range of kraft.version that a node supports."""


class KRaftVersionsResponse(NamedTuple):
    """The range of kraft.version; None if the node does not know the feature."""

    error: ErrorCode
    supported_versions: tuple[int, int] | None = None


class DescribeQuorumRequest(NamedTuple):
    """Asks for the progress of voters and observers."""


class DescribedReplica(NamedTuple):
    """A replica's progress; times are of the leader's clock, -1 if there are none.

    The leader itself has the time of the response.
    """

    key: ReplicaKey
    log_end_offset: int
    last_fetch_ms: int
    last_caught_up_ms: int


class DescribeQuorumResponse(NamedTuple):
    """The leader's view of the quorum."""

    error: ErrorCode
    leader_id: int = NO_LEADER
    epoch: int = 0
    high_watermark: int = -1
    voters: tuple[DescribedReplica, ...] = ()
    observers: tuple[DescribedReplica, ...] = ()
    endpoints: tuple[tuple[int, Endpoints], ...] = ()


RaftRequest: TypeAlias = (
    VoteRequest
    | BeginQuorumEpochRequest
    | EndQuorumEpochRequest
    | LogFetchRequest
    | FetchSnapshotRequest
    | AddRaftVoterRequest
    | RemoveRaftVoterRequest
    | UpdateRaftVoterRequest
    | KRaftVersionsRequest
    | DescribeQuorumRequest
)
RaftResponse: TypeAlias = (
    RequestFailure
    | VoteResponse
    | BeginQuorumEpochResponse
    | EndQuorumEpochResponse
    | LogFetchResponse
    | FetchSnapshotResponse
    | VoterChangeResponse
    | UpdateRaftVoterResponse
    | KRaftVersionsResponse
    | DescribeQuorumResponse
)
