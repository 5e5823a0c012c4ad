"""DescribeQuorum: the voter and the observers of the metadata log, with their progress (KIP-642).

v1 adds times (KIP-836), v2 messages, directories and nodes (KIP-853).

Source: Kafka's KafkaRaftClient.handleDescribeQuorumRequest.
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

from wirebroker.base.clock import collected
from wirebroker.codecs.errors import ErrorCode
from wirebroker.coordinator.controller.image.topic_names import CLUSTER_METADATA_TOPIC

if TYPE_CHECKING:
    from collections.abc import Iterable

    from wirebroker.base.clock import Steps
    from wirebroker.coordinator.controller.image.cluster_image import Endpoint
    from wirebroker.coordinator.controller.requests.request import ControllerRequest
    from wirebroker.quorum.controller.observers import Observer, ObserverId

# The first version with nodes and directories.
_FIRST_WITH_NODES = 2


class QuorumView(NamedTuple):
    """The quorum as its only voter, which is always caught up, sees it.

    `end_offset` is the committed end; `now_ms` is since 1970.
    """

    voter_id: int
    epoch: int
    end_offset: int
    now_ms: int
    endpoints: Iterable[Endpoint]
    observers: Iterable[tuple[ObserverId, Observer]]


def describe_quorum(request: ControllerRequest, view: QuorumView) -> Steps[dict[str, Any]]:
    """Describe partition 0 of the metadata log if nothing else is requested; in steps."""
    body = request.body
    requested = (
        (topic.topic_name, partition.partition_index)
        for topic in body.topics
        for partition in topic.partitions
    )
    if list(islice(requested, 2)) != [(CLUSTER_METADATA_TOPIC, 0)]:
        return (yield from _unknown(body))
    return {
        "error_message": "",
        "topics": [
            {
                "topic_name": CLUSTER_METADATA_TOPIC,
                "partitions": [_partition(view, request.version)],
            }
        ],
        "nodes": [_node(view)] if request.version >= _FIRST_WITH_NODES else [],
    }


def _partition(view: QuorumView, version: int) -> dict[str, Any]:
    voter = {
        "replica_id": view.voter_id,
        "log_end_offset": view.end_offset,
        "last_fetch_timestamp": view.now_ms,
        "last_caught_up_timestamp": view.now_ms,
    }
    observers = [
        {
            "replica_id": observer_id.node_id,
            **(
                {"replica_directory_id": observer_id.directory_id}
                if version >= _FIRST_WITH_NODES
                else {}
            ),
            "log_end_offset": observer.end_offset,
            "last_fetch_timestamp": observer.last_fetch_ms,
            "last_caught_up_timestamp": observer.last_caught_up_ms,
        }
        for observer_id, observer in view.observers
    ]
    return {
        "partition_index": 0,
        "error_message": "",
        "leader_id": view.voter_id,
        "leader_epoch": view.epoch,
        "high_watermark": view.end_offset,
        "current_voters": [voter],
        "observers": observers,
    }


def _node(view: QuorumView) -> dict[str, Any]:
    listeners = [
        {"name": endpoint.name, "host": endpoint.host, "port": endpoint.port}
        for endpoint in view.endpoints
    ]
    return {"node_id": view.voter_id, "listeners": listeners}


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
