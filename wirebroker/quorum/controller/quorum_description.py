"""DescribeQuorum: the voters and the observers of the metadata log, with their progress (KIP-642).

v1 adds times (KIP-836), v2 messages, directories and nodes (KIP-853).

Source: Kafka's KafkaRaftClient.handleDescribeQuorumRequest.
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any, Final, Protocol

from wirebroker.base.clock import Slices, collected
from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.coordinator.controller.image.topic_names import CLUSTER_METADATA_TOPIC

if TYPE_CHECKING:
    from wirebroker.base.clock import Clock, Steps
    from wirebroker.coordinator.controller.requests.request import ControllerRequest
    from wirebroker.coordinator.raft.model.replica_key import Endpoints
    from wirebroker.coordinator.raft.protocol.messages import (
        DescribedReplica,
        DescribeQuorumResponse,
    )

# The first version with nodes and directories.
_FIRST_WITH_NODES: Final = 2


class ReplicaThatDescribes(Protocol):
    """A replica that may lead; see RaftNode."""

    async def describe(self) -> DescribeQuorumResponse:
        """Return the progress of voters and observers."""
        ...


async def describe_quorum(
    request: ControllerRequest, node: ReplicaThatDescribes, clock: Clock
) -> dict[str, Any]:
    """Describe partition 0 of the metadata log if nothing else is requested."""
    body = request.body
    requested = (
        (topic.topic_name, partition.partition_index)
        for topic in body.topics
        for partition in topic.partitions
    )
    if list(islice(requested, 2)) != [(CLUSTER_METADATA_TOPIC, 0)]:
        return await Slices(clock).run(_unknown(body))
    has_nodes = request.version >= _FIRST_WITH_NODES
    nodes: list[dict[str, Any]] = []
    try:
        view = await node.describe()
    except KafkaError as error:
        message = error.message or "This node is not the leader of the metadata quorum."
        partition = {"error_code": int(error.code), "error_message": message}
    else:
        partition = _partition(view, has_directories=has_nodes)
        nodes = [_node(*voter) for voter in view.endpoints] if has_nodes else []
    partition["partition_index"] = 0
    topic = {"topic_name": CLUSTER_METADATA_TOPIC, "partitions": [partition]}
    return {"error_message": "", "topics": [topic], "nodes": nodes}


def _partition(view: DescribeQuorumResponse, *, has_directories: bool) -> dict[str, Any]:
    return {
        "error_message": "",
        "leader_id": view.leader_id,
        "leader_epoch": view.epoch,
        "high_watermark": view.high_watermark,
        "current_voters": [_replica(voter, has_directories) for voter in view.voters],
        "observers": [_replica(observer, has_directories) for observer in view.observers],
    }


def _replica(replica: DescribedReplica, has_directory: bool) -> dict[str, Any]:
    fields: dict[str, Any] = {
        "replica_id": replica.key.replica_id,
        "log_end_offset": replica.log_end_offset,
        "last_fetch_timestamp": replica.last_fetch_ms,
        "last_caught_up_timestamp": replica.last_caught_up_ms,
    }
    if has_directory:
        fields["replica_directory_id"] = replica.key.directory_id
    return fields


def _node(node_id: int, endpoints: Endpoints) -> dict[str, Any]:
    return {"node_id": node_id, "listeners": [endpoint._asdict() for endpoint in endpoints]}


def _unknown(body: Any) -> Steps[dict[str, Any]]:
    failure = {
        "error_code": int(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        "error_message": "This is not the partition of the metadata log.",
    }
    topics: list[dict[str, Any]] = []
    for topic in body.topics:
        partitions = yield from collected(
            {"partition_index": partition.partition_index, **failure}
            for partition in topic.partitions
        )
        topics.append({"topic_name": topic.topic_name, "partitions": partitions})
        yield
    return {"error_message": "", "topics": topics}
