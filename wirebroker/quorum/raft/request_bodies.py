"""Requests between replicas of the metadata log, as bodies of Kafka's protocol.

A request names exactly partition 0 of the metadata log; any other is refused with INVALID_REQUEST.

Source: Kafka's RaftUtil and KafkaRaftClient (KIP-595, KIP-853, KIP-996).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.codecs.primitives import ZERO_UUID
from wirebroker.codecs.records.control import VoterEndpoint
from wirebroker.coordinator.controller.image.topic_names import CLUSTER_METADATA_TOPIC
from wirebroker.coordinator.raft.model.log_point import LogPoint
from wirebroker.coordinator.raft.model.replica_key import ReplicaKey
from wirebroker.coordinator.raft.protocol.messages import (
    NO_EARLY_RESPONSE,
    AddRaftVoterRequest,
    BeginQuorumEpochRequest,
    EndQuorumEpochRequest,
    FetchSnapshotRequest,
    LogFetchRequest,
    RemoveRaftVoterRequest,
    UpdateRaftVoterRequest,
    VoteRequest,
)
from wirebroker.quorum.log.metadata_store import TOPIC_ID

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from wirebroker.coordinator.raft.model.replica_key import Endpoints
    from wirebroker.coordinator.raft.protocol.messages import RaftRequest

Body = dict[str, Any]

# First versions with topic ids, replica state, directories and high watermarks in Fetch.
FIRST_WITH_IDS: Final = 13
_FIRST_WITH_STATE: Final = 15
_FIRST_WITH_DIRECTORY: Final = 17
_FIRST_WITH_HIGH_WATERMARK: Final = 18
# First version of Vote with pre-votes (KIP-996).
FIRST_WITH_PRE_VOTE: Final = 2
_UNKNOWN_VOTER: Final = ReplicaKey(-1)


def request_of(key: ApiKey, version: int, body: Any) -> RaftRequest:
    """Return the request in a decoded body.

    Raises:
        KafkaError: INVALID_REQUEST: it is about another partition, or about several.
    """
    return _READERS[key](version, body)


def body_of(request: RaftRequest, version: int) -> Body:
    """Return the body of a request."""
    return _WRITERS[type(request)](request, version)


KEYS: Final[dict[type[Any], ApiKey]] = {
    VoteRequest: ApiKey.VOTE,
    BeginQuorumEpochRequest: ApiKey.BEGIN_QUORUM_EPOCH,
    EndQuorumEpochRequest: ApiKey.END_QUORUM_EPOCH,
    LogFetchRequest: ApiKey.FETCH,
    FetchSnapshotRequest: ApiKey.FETCH_SNAPSHOT,
    UpdateRaftVoterRequest: ApiKey.UPDATE_RAFT_VOTER,
    AddRaftVoterRequest: ApiKey.ADD_RAFT_VOTER,
    RemoveRaftVoterRequest: ApiKey.REMOVE_RAFT_VOTER,
}


# Reading


def _only(topics: Any, *, name: str, index: str) -> Any:
    """Return the only partition of a request, which is that of the metadata log."""
    if len(topics) == 1 and len(topics[0].partitions) == 1:
        partition = topics[0].partitions[0]
        if getattr(topics[0], name) == CLUSTER_METADATA_TOPIC and getattr(partition, index) == 0:
            return partition
    raise KafkaError(ErrorCode.INVALID_REQUEST)


def _voter_of(version: int, body: Any, partition: Any) -> ReplicaKey | None:
    """Return the receiver as the sender knows it; None before KIP-853."""
    if version < 1 or body.voter_id < 0:
        return None
    return ReplicaKey(body.voter_id, bytes(partition.voter_directory_id))


def _endpoints_of(listeners: Iterable[Any]) -> Endpoints:
    return tuple(VoterEndpoint(item.name, item.host, item.port) for item in listeners)


def _read_vote(version: int, body: Any) -> VoteRequest:
    partition = _only(body.topics, name="topic_name", index="partition_index")
    return VoteRequest(
        cluster_id=body.cluster_id,
        voter=_voter_of(version, body, partition),
        candidate=ReplicaKey(partition.replica_id, bytes(partition.replica_directory_id)),
        epoch=partition.replica_epoch,
        log_end=LogPoint(partition.last_offset_epoch, partition.last_offset),
        is_pre_vote=bool(partition.pre_vote),
    )


def _read_begin(version: int, body: Any) -> BeginQuorumEpochRequest:
    partition = _only(body.topics, name="topic_name", index="partition_index")
    return BeginQuorumEpochRequest(
        cluster_id=body.cluster_id,
        voter=_voter_of(version, body, partition),
        leader_id=partition.leader_id,
        epoch=partition.leader_epoch,
        endpoints=_endpoints_of(body.leader_endpoints),
    )


def _read_end(version: int, body: Any) -> EndQuorumEpochRequest:
    partition = _only(body.topics, name="topic_name", index="partition_index")
    if version >= 1:
        preferred = tuple(
            ReplicaKey(candidate.candidate_id, bytes(candidate.candidate_directory_id))
            for candidate in partition.preferred_candidates
        )
    else:
        preferred = tuple(map(ReplicaKey, partition.preferred_successors))
    return EndQuorumEpochRequest(
        cluster_id=body.cluster_id,
        leader_id=partition.leader_id,
        epoch=partition.leader_epoch,
        preferred=preferred,
        endpoints=_endpoints_of(body.leader_endpoints),
    )


def _read_fetch(version: int, body: Any) -> LogFetchRequest:
    partition = _fetched_partition(version, body)
    replica_id = body.replica_id
    if version >= _FIRST_WITH_STATE:
        replica_id = body.replica_state.replica_id
    return LogFetchRequest(
        cluster_id=body.cluster_id,
        replica=ReplicaKey(replica_id, bytes(partition.replica_directory_id)),
        epoch=partition.current_leader_epoch,
        log_end=LogPoint(partition.last_fetched_epoch, partition.fetch_offset),
        high_watermark=partition.high_watermark,
        max_bytes=max(0, min(body.max_bytes, partition.partition_max_bytes or body.max_bytes)),
        max_wait_ms=body.max_wait_ms,
    )


def _fetched_partition(version: int, body: Any) -> Any:
    if len(body.topics) == 1 and len(body.topics[0].partitions) == 1:
        topic = body.topics[0]
        is_metadata = (
            topic.topic_id == TOPIC_ID
            if version >= FIRST_WITH_IDS
            else topic.topic == CLUSTER_METADATA_TOPIC
        )
        if is_metadata and topic.partitions[0].partition == 0:
            return topic.partitions[0]
    raise KafkaError(ErrorCode.INVALID_REQUEST)


def _read_snapshot(version: int, body: Any) -> FetchSnapshotRequest:
    del version
    partition = _only(body.topics, name="name", index="partition")
    snapshot = partition.snapshot_id
    return FetchSnapshotRequest(
        cluster_id=body.cluster_id,
        replica=ReplicaKey(body.replica_id, bytes(partition.replica_directory_id)),
        epoch=partition.current_leader_epoch,
        snapshot=LogPoint(snapshot.epoch, snapshot.end_offset),
        position=partition.position,
        max_bytes=body.max_bytes,
    )


def _read_add(version: int, body: Any) -> AddRaftVoterRequest:
    return AddRaftVoterRequest(
        cluster_id=body.cluster_id,
        voter=ReplicaKey(body.voter_id, bytes(body.voter_directory_id)),
        endpoints=_endpoints_of(body.listeners),
        timeout_ms=body.timeout_ms,
        ack_when_committed=bool(body.ack_when_committed) if version >= 1 else True,
    )


def _read_remove(version: int, body: Any) -> RemoveRaftVoterRequest:
    del version
    voter = ReplicaKey(body.voter_id, bytes(body.voter_directory_id))
    return RemoveRaftVoterRequest(cluster_id=body.cluster_id, voter=voter)


def _read_update(version: int, body: Any) -> UpdateRaftVoterRequest:
    del version
    versions = body.k_raft_version_feature
    return UpdateRaftVoterRequest(
        cluster_id=body.cluster_id,
        epoch=body.current_leader_epoch,
        voter=ReplicaKey(body.voter_id, bytes(body.voter_directory_id)),
        endpoints=_endpoints_of(body.listeners),
        min_supported_version=versions.min_supported_version,
        max_supported_version=versions.max_supported_version,
    )


_READERS: Final[dict[ApiKey, Callable[[int, Any], RaftRequest]]] = {
    ApiKey.VOTE: _read_vote,
    ApiKey.BEGIN_QUORUM_EPOCH: _read_begin,
    ApiKey.END_QUORUM_EPOCH: _read_end,
    ApiKey.FETCH: _read_fetch,
    ApiKey.FETCH_SNAPSHOT: _read_snapshot,
    ApiKey.ADD_RAFT_VOTER: _read_add,
    ApiKey.REMOVE_RAFT_VOTER: _read_remove,
    ApiKey.UPDATE_RAFT_VOTER: _read_update,
}


# Writing


def _topics(partition: Body) -> list[Body]:
    partition["partition_index"] = 0
    return [{"topic_name": CLUSTER_METADATA_TOPIC, "partitions": [partition]}]


def _listeners(endpoints: Endpoints) -> list[Body]:
    return [endpoint._asdict() for endpoint in endpoints]


def _voter_fields(voter: ReplicaKey) -> Body:
    return {"voter_id": voter.replica_id, "voter_directory_id": voter.directory_id}


def _vote_body(request: VoteRequest, version: int) -> Body:
    voter = request.voter or _UNKNOWN_VOTER
    partition: Body = {
        "replica_epoch": request.epoch,
        "replica_id": request.candidate.replica_id,
        "last_offset_epoch": request.log_end.epoch,
        "last_offset": request.log_end.offset,
    }
    body: Body = {"cluster_id": request.cluster_id, "topics": _topics(partition)}
    if version >= 1:
        body["voter_id"] = voter.replica_id
        partition["replica_directory_id"] = request.candidate.directory_id
        partition["voter_directory_id"] = voter.directory_id
    if version >= FIRST_WITH_PRE_VOTE:
        partition["pre_vote"] = request.is_pre_vote
    return body


def _begin_body(request: BeginQuorumEpochRequest, version: int) -> Body:
    voter = request.voter or _UNKNOWN_VOTER
    partition: Body = {"leader_id": request.leader_id, "leader_epoch": request.epoch}
    body: Body = {"cluster_id": request.cluster_id, "topics": _topics(partition)}
    if version >= 1:
        body["voter_id"] = voter.replica_id
        partition["voter_directory_id"] = voter.directory_id
        body["leader_endpoints"] = _listeners(request.endpoints)
    return body


def _end_body(request: EndQuorumEpochRequest, version: int) -> Body:
    partition: Body = {"leader_id": request.leader_id, "leader_epoch": request.epoch}
    body: Body = {"cluster_id": request.cluster_id, "topics": _topics(partition)}
    if version >= 1:
        partition["preferred_candidates"] = [
            {"candidate_id": key.replica_id, "candidate_directory_id": key.directory_id}
            for key in request.preferred
        ]
        body["leader_endpoints"] = _listeners(request.endpoints)
    else:
        partition["preferred_successors"] = [key.replica_id for key in request.preferred]
    return body


def _fetch_body(request: LogFetchRequest, version: int) -> Body:
    partition: Body = {
        "partition": 0,
        "current_leader_epoch": request.epoch,
        "fetch_offset": request.log_end.offset,
        "last_fetched_epoch": request.log_end.epoch,
        "log_start_offset": 0,
        "partition_max_bytes": request.max_bytes,
    }
    if version >= _FIRST_WITH_DIRECTORY:
        partition["replica_directory_id"] = request.replica.directory_id
    if version >= _FIRST_WITH_HIGH_WATERMARK and request.high_watermark != NO_EARLY_RESPONSE:
        partition["high_watermark"] = request.high_watermark
    body: Body = {
        "cluster_id": request.cluster_id,
        "max_wait_ms": request.max_wait_ms,
        "min_bytes": 0,
        "max_bytes": request.max_bytes,
        "topics": [{"partitions": [partition]}],
    }
    topic = body["topics"][0]
    if version >= FIRST_WITH_IDS:
        topic["topic_id"] = TOPIC_ID
    else:
        topic["topic"] = CLUSTER_METADATA_TOPIC
    if version >= _FIRST_WITH_STATE:
        body["replica_state"] = {"replica_id": request.replica.replica_id, "replica_epoch": -1}
    else:
        body["replica_id"] = request.replica.replica_id
    return body


def _snapshot_body(request: FetchSnapshotRequest, version: int) -> Body:
    partition: Body = {
        "partition": 0,
        "current_leader_epoch": request.epoch,
        "snapshot_id": {
            "end_offset": request.snapshot.offset,
            "epoch": request.snapshot.epoch,
        },
        "position": request.position,
    }
    if version >= 1 and request.replica.directory_id != ZERO_UUID:
        partition["replica_directory_id"] = request.replica.directory_id
    return {
        "cluster_id": request.cluster_id,
        "replica_id": request.replica.replica_id,
        "max_bytes": request.max_bytes,
        "topics": [{"name": CLUSTER_METADATA_TOPIC, "partitions": [partition]}],
    }


def _update_body(request: UpdateRaftVoterRequest, version: int) -> Body:
    del version
    return {
        "cluster_id": request.cluster_id,
        "current_leader_epoch": request.epoch,
        **_voter_fields(request.voter),
        "listeners": _listeners(request.endpoints),
        "k_raft_version_feature": {
            "min_supported_version": request.min_supported_version,
            "max_supported_version": request.max_supported_version,
        },
    }


def _add_body(request: AddRaftVoterRequest, version: int) -> Body:
    body: Body = {
        "cluster_id": request.cluster_id,
        "timeout_ms": request.timeout_ms,
        **_voter_fields(request.voter),
        "listeners": _listeners(request.endpoints),
    }
    if version >= 1:
        body["ack_when_committed"] = request.ack_when_committed
    return body


def _remove_body(request: RemoveRaftVoterRequest, version: int) -> Body:
    del version
    return {"cluster_id": request.cluster_id, **_voter_fields(request.voter)}


_WRITERS: Final[dict[type[Any], Callable[[Any, int], Body]]] = {
    VoteRequest: _vote_body,
    BeginQuorumEpochRequest: _begin_body,
    EndQuorumEpochRequest: _end_body,
    LogFetchRequest: _fetch_body,
    FetchSnapshotRequest: _snapshot_body,
    UpdateRaftVoterRequest: _update_body,
    AddRaftVoterRequest: _add_body,
    RemoveRaftVoterRequest: _remove_body,
}
