"""The connections of a replica to the other ones."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from wirebroker.base.clock import next_turn
from wirebroker.codecs.errors import ErrorCode
from wirebroker.coordinator.raft.model.log_point import LogPoint
from wirebroker.coordinator.raft.model.replica_key import Destination, ReplicaKey
from wirebroker.coordinator.raft.protocol.messages import RequestFailure, VoteRequest
from wirebroker.net.client.errors import CannotConnectError
from wirebroker.quorum.raft.raft_channel import MAX_NODES, RaftChannel

if TYPE_CHECKING:
    from wirebroker.net.client.settings import PeerAddress

_VOTE = VoteRequest(
    "cluster",
    voter=None,
    candidate=ReplicaKey(1, bytes(16)),
    epoch=1,
    log_end=LogPoint(0, 0),
    is_pre_vote=False,
)


class _Node:
    """A node that is not reachable; it fails when `may_fail` is set."""

    def __init__(self, address: PeerAddress) -> None:
        self.address = address
        self.is_aborted = False
        self.may_fail = asyncio.Event()

    async def request(self, *_: Any, **__: Any) -> Any:
        await self.may_fail.wait()
        raise CannotConnectError(str(self.address), "refused")

    def abort(self) -> None:
        self.is_aborted = True


class _Network:
    def __init__(self) -> None:
        self.nodes: dict[int, _Node] = {}
        make_node: Any = self._make
        self.channel = RaftChannel(make_node, listener="CONTROLLER", timeout_s=1.0)

    def _make(self, address: PeerAddress) -> _Node:
        node = self.nodes[address.port] = _Node(address)
        return node

    def send(self, node_id: int) -> asyncio.Task[Any]:
        """Begin a request; the port is the node's id."""
        destination = Destination(node_id, "localhost", node_id)
        return asyncio.create_task(self.channel.request(destination, _VOTE))

    async def fail(self, node_id: int) -> None:
        request = self.send(node_id)
        await next_turn()
        self.nodes[node_id].may_fail.set()
        assert await request == RequestFailure(ErrorCode.BROKER_NOT_AVAILABLE)


async def test_outcome_of_the_last_request_is_kept() -> None:
    network = _Network()
    assert network.channel.outcome(7) == "no request was sent to it"
    request = network.send(7)
    await next_turn()
    assert network.channel.outcome(7) == "no response yet"
    network.nodes[7].may_fail.set()
    await request
    assert network.channel.outcome(7) == "refused", "its address is printed already"


async def test_nodes_that_come_and_go_are_forgotten() -> None:
    network = _Network()
    for node_id in range(MAX_NODES + 2):
        await network.fail(node_id)
    kept = [node_id for node_id, node in network.nodes.items() if not node.is_aborted]
    assert kept == list(range(2, MAX_NODES + 2))
    assert network.channel.outcome(0) == "no request was sent to it"


async def test_node_in_use_is_not_forgotten() -> None:
    network = _Network()
    pending = network.send(0)
    await next_turn()
    await network.fail(1)
    for node_id in range(2, MAX_NODES):
        await network.fail(node_id)
    await network.fail(1)
    await network.fail(MAX_NODES)
    aborted = [node_id for node_id, node in network.nodes.items() if node.is_aborted]
    assert aborted == [2], "not 0, which has a request in flight, nor 1, which was used again"
    network.nodes[0].may_fail.set()
    await pending
