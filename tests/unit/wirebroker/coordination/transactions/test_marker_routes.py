"""Transaction markers go to the leader in the metadata until they are written."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.brokers.servers import broker_of, client_of, running
from tests.support.protocol.requests import create_topic
from tests.support.replicas.roles import lead, partition_image
from tests.support.tools.waiting import until
from wirebroker.base.clock import SystemClock
from wirebroker.codecs.errors import ErrorCode
from wirebroker.coordination.transactions.marker_routes import MarkerRoutes
from wirebroker.coordination.transactions.remote_markers import RemoteMarkers
from wirebroker.coordination.transactions.transaction_markers import MarkerWriter
from wirebroker.coordinator.outcome import Marker
from wirebroker.net.client.node import Node
from wirebroker.net.client.settings import ClientSettings, PeerAddress
from wirebroker.net.client.tcp_dialer import TcpDialer

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from wirebroker.broker.server import Server
    from wirebroker.replica.partition import Partition

MARKER = Marker(
    producer_id=7, producer_epoch=0, coordinator_epoch=0, is_commit=True, transaction_version=1
)


class OtherNodes:
    """Nodes that send the test's responses and record the requests."""

    def __init__(self, *answers: ErrorCode | None) -> None:
        self.answers = list(answers)
        self.sent: list[tuple[int, list[tuple[str, int]]]] = []

    async def send(
        self, node_id: int, marker: Marker, partitions: Sequence[tuple[str, int]]
    ) -> Mapping[tuple[str, int], ErrorCode]:
        assert marker == MARKER
        self.sent.append((node_id, list(partitions)))
        answer = self.answers.pop(0)
        return {} if answer is None else dict.fromkeys(partitions, answer)


class Coordinator:
    """A stand-in for the engine that has decided a transaction."""

    def __init__(self) -> None:
        self.is_closed = False
        self.is_complete = False

    def run(self, operation: Any) -> None:
        del operation
        self.is_complete = True


@pytest.fixture
def completed(monkeypatch):
    """Return a coordinator that notes when all markers are written."""
    coordinator = Coordinator()

    def complete(engine: Coordinator, effect: Any) -> bool:
        assert effect.marker == MARKER
        engine.is_complete = True
        return True

    monkeypatch.setattr(
        "wirebroker.coordination.transactions.transaction_markers._complete", complete
    )
    return coordinator


class Decided:
    """The markers that a coordinator must have written."""

    marker = MARKER
    transactional_id = "id"

    def __init__(self, *partitions: tuple[str, int]) -> None:
        self.partitions = partitions


def move(server: Server, topic: str, index: int, *, leader: int) -> Partition:
    replicas = broker_of(server).replicas
    partition = replicas.find(topic, b"", by_id=False)[0][index]
    lead(partition, leader=leader, replicas=(1, 2))
    place(server, topic, index, leader=leader)
    return partition


def place(server: Server, topic: str, index: int, *, leader: int) -> None:
    replicas = broker_of(server).replicas
    topic_image = replicas.image.topics[topic]
    partitions = dict(topic_image.partitions)
    partitions[index] = partition_image(index=index, leader=leader, replicas=(1, 2))
    topics = dict(replicas.image.topics)
    topics[topic] = topic_image._replace(partitions=partitions)
    replicas.image = replace(replicas.image, topics=topics)


def writer_of(server: Server, other_nodes: OtherNodes) -> MarkerWriter:
    broker = broker_of(server)
    return MarkerWriter(
        clock=SystemClock(), replicas=broker.replicas, groups=broker.groups, sender=other_nodes
    )


async def test_partition_unknown_to_the_metadata_counts_as_deleted(tmp_path):
    async with running(tmp_path) as server, client_of(server) as client:
        await create_topic(client, "t", 2)
        routes = MarkerRoutes(broker_of(server).replicas)
        assert routes.is_deleted("t", 2)
        assert routes.is_deleted("u", 0)
        assert not routes.is_deleted("t", 1)
        assert (routes.elsewhere("t", 1), routes.elsewhere("u", 0)) == (None, None)
        assert routes.local_partition("t", 1) is not None
        move(server, "t", 1, leader=2)
        assert not routes.is_deleted("t", 1)
        assert (routes.local_partition("t", 1), routes.elsewhere("t", 1)) == (None, 2)
        move(server, "t", 1, leader=-1)
        assert (routes.local_partition("t", 1), routes.elsewhere("t", 1)) == (None, None)


async def test_markers_are_sent_to_each_leader_until_accepted(tmp_path, completed):
    other_nodes = OtherNodes(
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, None, ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.NONE
    )
    async with running(tmp_path) as server, client_of(server) as client:
        await create_topic(client, "t", 3)
        move(server, "t", 1, leader=2)
        writer = writer_of(server, other_nodes)
        effect: Any = Decided(("t", 0), ("t", 1), ("gone", 0))
        writer.begin(completed, effect)
        log = broker_of(server).replicas.find("t", b"", by_id=False)[0][0].log
        assert log.log_end_offset == 1, "a partition that this node leads needs no turn"
        assert not completed.is_complete
        await until(lambda: completed.is_complete)
        assert other_nodes.sent == [(2, [("t", 1)])] * 4
        assert log.log_end_offset == 1
        await writer.stop()


async def test_marker_is_sent_to_the_next_leader(tmp_path, completed):
    other_nodes = OtherNodes(ErrorCode.NOT_LEADER_OR_FOLLOWER)
    async with running(tmp_path) as server, client_of(server) as client:
        await create_topic(client, "t")
        partition = move(server, "t", 0, leader=2)
        writer = writer_of(server, other_nodes)
        effect: Any = Decided(("t", 0))
        writer.begin(completed, effect)
        await until(lambda: other_nodes.sent)
        place(server, "t", 0, leader=1)
        lead(partition)
        await until(lambda: completed.is_complete)
        assert partition.log.log_end_offset == 1
        await writer.stop()


async def test_marker_waits_for_a_leader_until_the_topic_is_deleted(tmp_path, completed):
    async with running(tmp_path) as server, client_of(server) as client:
        await create_topic(client, "t")
        move(server, "t", 0, leader=-1)
        writer = writer_of(server, OtherNodes())
        effect: Any = Decided(("t", 0))
        writer.begin(completed, effect)
        assert await writer.write(MARKER, [("t", 0)]) == [ErrorCode.NOT_LEADER_OR_FOLLOWER]
        assert not completed.is_complete
        replicas = broker_of(server).replicas
        replicas.image = replace(replicas.image, topics={})
        await until(lambda: completed.is_complete)
        assert await writer.write(MARKER, [("t", 0)]) == [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
        await writer.stop()


async def test_partition_on_a_failed_disk_is_unknown(tmp_path):
    async with running(tmp_path) as server, client_of(server) as client:
        await create_topic(client, "t")
        writer = writer_of(server, OtherNodes())
        assert await writer.write(MARKER, [("t", 0)]) == [ErrorCode.NONE]
        replicas = broker_of(server).replicas
        replicas.directory_failed(replicas.directories[0], OSError(5, "broken"))
        assert await writer.write(MARKER, [("t", 0)]) == [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
        await writer.stop()


async def test_partition_of_another_node_is_unknown(tmp_path):
    async with running(tmp_path) as server, client_of(server) as client:
        await create_topic(client, "t")
        place(server, "t", 1, leader=2)  # the metadata names this node, which has no log
        writer = writer_of(server, OtherNodes())
        assert await writer.write(MARKER, [("t", 1)]) == [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
        await writer.stop()


async def test_other_nodes_write_markers_over_the_wire(tmp_path):
    async with running(tmp_path) as server, client_of(server) as client:
        await create_topic(client, "t", 2)
        node = Node(
            PeerAddress(*server.address),
            dialer=TcpDialer(),
            settings=ClientSettings(),
            clock=SystemClock(),
            random=Random(1),
        )
        markers = RemoteMarkers({2: node}.get)
        partitions = [("t", 0), ("t", 1), ("u", 0)]
        assert await markers.send(2, MARKER, partitions) == {
            ("t", 0): ErrorCode.NONE,
            ("t", 1): ErrorCode.NONE,
            ("u", 0): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        }
        log = broker_of(server).replicas.find("t", b"", by_id=False)[0][1].log
        assert log.log_end_offset == 1
        unknown = dict.fromkeys(partitions, ErrorCode.NOT_LEADER_OR_FOLLOWER)
        assert await markers.send(3, MARKER, partitions) == unknown
        await node.close()
    lost = dict.fromkeys(partitions, ErrorCode.NETWORK_EXCEPTION)
    assert await markers.send(2, MARKER, partitions) == lost
