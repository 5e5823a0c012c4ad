"""The end offsets of partitions, from their leaders."""

from types import SimpleNamespace
from typing import Any
from unittest import mock

import pytest

from tests.support.coordinators.kit import broker, image_of, topic
from tests.support.records.clocks import HandClock
from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.net.client.errors import PeerError
from wirebroker.share import latest_offsets
from wirebroker.share.latest_offsets import LatestOffsets

OWN, OTHER = 1, 2


class OwnPartition:
    def __init__(self, high_watermark=7, *, is_leader=True, is_catching_up=False):
        self.log = SimpleNamespace(high_watermark=high_watermark)
        self.is_leader = is_leader
        self.is_catching_up = is_catching_up

    def check_leader(self):
        if not self.is_leader:
            raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER)


class OtherNode:
    def __init__(self, *results):
        self.results = list(results)
        self.requests = []

    async def request(self, key, body, *, timeout_s):
        del key, timeout_s
        self.requests.append(body)
        result = self.results.pop(0)
        if isinstance(result, Exception):
            raise result
        return result


def answer(*partitions):
    entries = [
        SimpleNamespace(partition_index=index, offset=offset, error_code=code)
        for index, offset, code in partitions
    ]
    return SimpleNamespace(topics=[SimpleNamespace(name="u", partitions=entries)])


def offsets(partition=None, node=None):
    led_by_other = {"leader": OTHER, "replicas": [OTHER], "isr": [OTHER]}
    image = image_of(
        broker(OWN),
        broker(OTHER),
        *topic("t", 1),
        *topic("u", 2, partitions=2, **led_by_other),
        *topic("v", 3, leader=-1, isr=[1]),
    )
    found = {} if partition is None else {0: partition}
    metadata: Any = SimpleNamespace(image=image)
    replicas: Any = SimpleNamespace(
        find=lambda *_, **__: (found, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    )
    return LatestOffsets(
        OWN,
        metadata=metadata,
        replicas=replicas,
        find_node=lambda node_id: node if node_id == OTHER else None,
        clock=HandClock(),
    )


@pytest.mark.parametrize(
    ("partition", "expected"),
    [
        (OwnPartition(), 7),
        (OwnPartition(is_leader=False), ErrorCode.NOT_LEADER_OR_FOLLOWER),
        (OwnPartition(is_catching_up=True), ErrorCode.OFFSET_NOT_AVAILABLE),
        (None, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    ],
)
async def test_partitions_of_this_node(partition, expected):
    assert await offsets(partition).of([("t", 0)]) == {("t", 0): expected}


async def test_partitions_without_a_leader():
    unavailable = ErrorCode.LEADER_NOT_AVAILABLE
    expected = {("v", 0): unavailable, ("t", 9): unavailable, ("missing", 0): unavailable}
    assert await offsets().of(list(expected)) == expected


async def test_partitions_of_another_node():
    node = OtherNode(answer((0, 5, 0), (1, -1, 6), (2, 9, 0)))
    assert await offsets(node=node).of([("u", 0), ("u", 1)]) == {
        ("u", 0): 5,
        ("u", 1): ErrorCode.NOT_LEADER_OR_FOLLOWER,
    }
    (request,) = node.requests
    (requested,) = request["topics"]
    assert [partition["partition_index"] for partition in requested["partitions"]] == [0, 1]


async def test_a_node_that_leaves_a_partition_out():
    node = OtherNode(answer())
    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert await offsets(node=node).of([("u", 0)]) == {("u", 0): unknown}


async def test_a_lost_connection_is_tried_again():
    node = OtherNode(PeerError("node 2", "gone"), answer((0, 5, 0)))
    delays = []

    async def pause(seconds):
        delays.append(seconds)

    with mock.patch.object(latest_offsets, "pause", pause):
        assert await offsets(node=node).of([("u", 0)]) == {("u", 0): 5}
        node.results = [PeerError("node 2", "gone")] * 5
        failed = await offsets(node=node).of([("u", 0)])
    assert failed == {("u", 0): ErrorCode.NETWORK_EXCEPTION}
    assert delays == [1, 1, 2, 4, 8]


async def test_a_node_without_an_address():
    assert await offsets().of([("u", 0)]) == {("u", 0): ErrorCode.NETWORK_EXCEPTION}
