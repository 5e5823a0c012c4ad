"""Responses between replicas of the metadata log, as bodies of Kafka's protocol.

Every response names the leader that its sender knows, with its address on the listener that
received the request. A `RequestFailure` is an error at the top level.

Source: Kafka's RaftUtil and KafkaRaftClient (KIP-595, KIP-853, KIP-951).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import ErrorCode
from wirebroker.codecs.records.control import VoterEndpoint
from wirebroker.coordinator.controller.image.topic_names import CLUSTER_METADATA_TOPIC
from wirebroker.coordinator.raft.model.log_point import LogPoint
from wirebroker.coordinator.raft.protocol.messages import (
    NO_LEADER,
    BeginQuorumEpochResponse,
    EndQuorumEpochResponse,
    FetchSnapshotResponse,
    KnownLeader,
    LogFetchResponse,
    RequestFailure,
    UpdateRaftVoterResponse,
    VoterChangeResponse,
    VoteResponse,
)
from wirebroker.quorum.log.metadata_store import TOPIC_ID
from wirebroker.quorum.raft.request_bodies import FIRST_WITH_IDS

if TYPE_CHECKING:
    from collections.abc import Callable

    from wirebroker.codecs.primitives import Buffer
    from wirebroker.coordinator.raft.model.log_point import RaftBatch
    from wirebroker.coordinator.raft.protocol.messages import RaftResponse

Body = dict[str, Any]

# First Fetch version whose responses have addresses; first version of the others.
_FIRST_FETCH_WITH_ENDPOINTS: Final = 17
_FIRST_WITH_ENDPOINTS: Final = 1


def response_body(
    key: ApiKey, version: int, response: RaftResponse, *, listener: str, data: Buffer = b""
) -> Body:
    """Return the body of a response.

    Args:
        key: The request's API.
        version: The request's version.
        response: The response.
        listener: The name of the listener that received the request.
        data: The records, or bytes of a snapshot, that were read for it.
    """
    match response:
        case RequestFailure(error):
            return {"error_code": int(error)}
        case VoterChangeResponse(error, message):
            return {"error_code": int(error), "error_message": message}
        case UpdateRaftVoterResponse():
            return _update_body(response, listener)
        case LogFetchResponse():
            body = _fetch_body(response, version, data)
        case FetchSnapshotResponse():
            body = _snapshot_body(response, data)
        case VoteResponse() | BeginQuorumEpochResponse() | EndQuorumEpochResponse():
            body = _election_body(response)
        case _:
            raise AssertionError(f"not a response to {key.name}: {response}")
    first = _FIRST_FETCH_WITH_ENDPOINTS if key is ApiKey.FETCH else _FIRST_WITH_ENDPOINTS
    if version >= first:
        body["node_endpoints"] = _node_endpoints(response.leader, listener)
    return body


def response_of(
    key: ApiKey, body: Any, *, listener: str, batches: Callable[[bytes], tuple[RaftBatch, ...]]
) -> RaftResponse:
    """Return the response in a decoded body.

    Args:
        key: The request's API.
        body: The body.
        listener: The name of the peer's listener, to which its addresses belong.
        batches: Reads the whole record batches of a Fetch response.

    Raises:
        KafkaError: CORRUPT_MESSAGE: the records are damaged.
    """
    error = error_of(body.error_code)
    if key in (ApiKey.ADD_RAFT_VOTER, ApiKey.REMOVE_RAFT_VOTER):
        return VoterChangeResponse(error, body.error_message)
    if key is ApiKey.UPDATE_RAFT_VOTER:
        return _read_update(body, error, listener)
    if error is not ErrorCode.NONE:
        return RequestFailure(error)
    topics = body.responses if key is ApiKey.FETCH else body.topics
    if len(topics) != 1 or len(topics[0].partitions) != 1:
        return RequestFailure(ErrorCode.INVALID_REQUEST)
    partition = topics[0].partitions[0]
    if key is ApiKey.FETCH:
        return _read_fetch(body, partition, listener, batches)
    return _read_replica_response(key, body, partition, listener)


def error_of(code: int) -> ErrorCode:
    """Return an error code; one that is unknown here is UNKNOWN_SERVER_ERROR."""
    if code == 0:
        return ErrorCode.NONE
    try:
        return ErrorCode(code)
    except ValueError:
        return ErrorCode.UNKNOWN_SERVER_ERROR


# Writing


def _leader_fields(leader: KnownLeader) -> Body:
    return {"leader_id": leader.leader_id, "leader_epoch": leader.epoch}


def _node_endpoints(leader: KnownLeader, listener: str) -> list[Body]:
    if leader.leader_id == NO_LEADER:
        return []
    return [
        {"node_id": leader.leader_id, "host": endpoint.host, "port": endpoint.port}
        for endpoint in leader.endpoints
        if endpoint.name == listener
    ]


def _election_body(
    response: VoteResponse | BeginQuorumEpochResponse | EndQuorumEpochResponse,
) -> Body:
    partition: Body = {
        "partition_index": 0,
        "error_code": int(response.error),
        **_leader_fields(response.leader),
    }
    if isinstance(response, VoteResponse):
        partition["vote_granted"] = response.is_granted
    return {"topics": [{"topic_name": CLUSTER_METADATA_TOPIC, "partitions": [partition]}]}


def _fetch_body(response: LogFetchResponse, version: int, data: Buffer) -> Body:
    partition: Body = {
        "partition_index": 0,
        "error_code": int(response.error),
        "high_watermark": response.high_watermark,
        "log_start_offset": response.log_start_offset,
        "aborted_transactions": [],
        "current_leader": _leader_fields(response.leader),
        "records": data,
    }
    if response.diverging is not None:
        point = response.diverging
        partition["diverging_epoch"] = {"epoch": point.epoch, "end_offset": point.offset}
    if response.snapshot is not None:
        point = response.snapshot
        partition["snapshot_id"] = {"end_offset": point.offset, "epoch": point.epoch}
    topic: Body = {"partitions": [partition]}
    if version >= FIRST_WITH_IDS:
        topic["topic_id"] = TOPIC_ID
    else:
        topic["topic"] = CLUSTER_METADATA_TOPIC
    return {"responses": [topic]}


def _snapshot_body(response: FetchSnapshotResponse, data: Buffer) -> Body:
    partition: Body = {
        "index": 0,
        "error_code": int(response.error),
        "current_leader": _leader_fields(response.leader),
        "unaligned_records": b"",
    }
    if response.snapshot is not None:
        point = response.snapshot
        partition |= {
            "snapshot_id": {"end_offset": point.offset, "epoch": point.epoch},
            "size": response.size,
            "position": response.position,
            "unaligned_records": data,
        }
    return {"topics": [{"name": CLUSTER_METADATA_TOPIC, "partitions": [partition]}]}


def _update_body(response: UpdateRaftVoterResponse, listener: str) -> Body:
    leader = _leader_fields(response.leader)
    for endpoint in _node_endpoints(response.leader, listener):
        leader |= {"host": endpoint["host"], "port": endpoint["port"]}
    return {"error_code": int(response.error), "current_leader": leader}


# Reading


def _known_leader(body: Any, leader: Any, listener: str) -> KnownLeader:
    endpoints = tuple(
        VoterEndpoint(listener, node.host, node.port)
        for node in body.node_endpoints or ()
        if node.node_id == leader.leader_id and node.host
    )
    return KnownLeader(leader.leader_id, leader.leader_epoch, endpoints)


def _read_replica_response(key: ApiKey, body: Any, partition: Any, listener: str) -> RaftResponse:
    if key is ApiKey.FETCH_SNAPSHOT:
        return _read_snapshot(body, partition, listener)
    error = error_of(partition.error_code)
    leader = _known_leader(body, partition, listener)
    if key is ApiKey.VOTE:
        return VoteResponse(error, leader, bool(partition.vote_granted))
    if key is ApiKey.BEGIN_QUORUM_EPOCH:
        return BeginQuorumEpochResponse(error, leader)
    return EndQuorumEpochResponse(error, leader)


def _point(snapshot: Any) -> LogPoint | None:
    """Return a position; None if the response has none."""
    return LogPoint(snapshot.epoch, snapshot.end_offset) if snapshot.end_offset >= 0 else None


def _read_fetch(
    body: Any, partition: Any, listener: str, batches: Callable[[bytes], tuple[RaftBatch, ...]]
) -> LogFetchResponse:
    return LogFetchResponse(
        error_of(partition.error_code),
        _known_leader(body, partition.current_leader, listener),
        high_watermark=partition.high_watermark,
        log_start_offset=partition.log_start_offset,
        diverging=_point(partition.diverging_epoch),
        snapshot=_point(partition.snapshot_id),
        batches=batches(partition.records) if partition.records else (),
    )


def _read_snapshot(body: Any, partition: Any, listener: str) -> FetchSnapshotResponse:
    return FetchSnapshotResponse(
        error_of(partition.error_code),
        _known_leader(body, partition.current_leader, listener),
        snapshot=_point(partition.snapshot_id),
        size=partition.size,
        position=partition.position,
        data=bytes(partition.unaligned_records or b""),
    )


def _read_update(body: Any, error: ErrorCode, listener: str) -> UpdateRaftVoterResponse:
    leader = body.current_leader
    endpoints = (VoterEndpoint(listener, leader.host, leader.port),) if leader.host else ()
    known = KnownLeader(leader.leader_id, leader.leader_epoch, endpoints)
    return UpdateRaftVoterResponse(error, known)
