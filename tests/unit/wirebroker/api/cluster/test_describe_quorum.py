"""DescribeQuorum: one voter, which leads, and no other partition."""

import pytest

from tests.unit.wirebroker.api.api_kit import answer, make_broker
from wirebroker.base.clock import SystemClock
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.codecs.messages import request_message
from wirebroker.codecs.records.control import VoterEndpoint
from wirebroker.coordinator.controller.requests.request import ControllerRequest
from wirebroker.coordinator.raft.model.replica_key import ReplicaKey
from wirebroker.coordinator.raft.protocol.messages import (
    DescribedReplica,
    DescribeQuorumResponse,
)
from wirebroker.quorum.controller.quorum_description import describe_quorum


class Leader:
    """A replica that leads and has one observer."""

    async def describe(self) -> DescribeQuorumResponse:
        voter = DescribedReplica(ReplicaKey(1), 7, 5, 5)
        observer = DescribedReplica(ReplicaKey(2, bytes(15) + b"\x07"), 6, 4, 3)
        listeners = (VoterEndpoint("CONTROLLER", "here", 9093),)
        return DescribeQuorumResponse(
            ErrorCode.NONE, 1, 4, 7, (voter,), (observer,), ((1, listeners),)
        )


class Follower:
    """A replica that does not lead."""

    async def describe(self) -> DescribeQuorumResponse:
        raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER)


async def quorum(request):
    return await describe_quorum(request, Leader(), SystemClock())


def describe(version, *partitions):
    node = make_broker()
    node.metadata.handle = quorum
    topics = [
        {"topic_name": name, "partitions": [{"partition_index": index}]}
        for name, index in partitions
    ]
    return answer(node, ApiKey.DESCRIBE_QUORUM, version, topics=topics)


@pytest.mark.parametrize("version", range(3))
def test_single_node_is_quorum_leader_and_voter(version):
    reply = describe(version, ("__cluster_metadata", 0))
    [metadata] = reply.topics
    [partition] = metadata.partitions
    assert (partition.error_code, partition.leader_id, partition.leader_epoch) == (0, 1, 4)
    [voter] = partition.current_voters
    assert (voter.replica_id, voter.log_end_offset) == (1, partition.high_watermark)
    assert partition.high_watermark > 0
    [observer] = partition.observers
    assert (observer.replica_id, observer.log_end_offset) == (2, 6)
    if version:
        assert (observer.last_fetch_timestamp, observer.last_caught_up_timestamp) == (4, 3)
    nodes = [(node.node_id, node.listeners[0].port) for node in reply.nodes]
    assert nodes == ([(1, 9093)] if version == 2 else [])


@pytest.mark.parametrize(
    "asked",
    [
        [("t", 0)],
        [("__cluster_metadata", 1)],
        [("__cluster_metadata", 0), ("t", 0)],
    ],
)
def test_other_partitions_have_no_quorum(asked):
    reply = describe(2, *asked)
    codes = [part.error_code for topic in reply.topics for part in topic.partitions]
    assert codes == [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION] * len(asked)
    assert not reply.nodes


async def test_a_follower_refuses_the_partition():
    metadata = {"topic_name": "__cluster_metadata", "partitions": [{"partition_index": 0}]}
    body = request_message(ApiKey.DESCRIBE_QUORUM).struct_class(topics=[metadata])
    request = ControllerRequest(ApiKey.DESCRIBE_QUORUM, 2, body)
    answer = await describe_quorum(request, Follower(), SystemClock())
    [partition] = answer["topics"][0]["partitions"]
    assert partition["error_code"] == ErrorCode.NOT_LEADER_OR_FOLLOWER
