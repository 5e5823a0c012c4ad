"""Requests forwarded to controllers: to the next active one, or a timeout."""

from __future__ import annotations

import contextlib
import random
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from tests.support.tools.waiting import PATIENCE_S
from wirebroker.base.clock import SystemClock
from wirebroker.broker.controller_node import ControllerNode
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.codecs.messages import request_message
from wirebroker.config import Config
from wirebroker.coordinator.controller.image.cluster_image import ClusterImage
from wirebroker.coordinator.controller.requests.request import Requester
from wirebroker.net.client.active_controller import ActiveController
from wirebroker.net.client.settings import ClientSettings, PeerAddress
from wirebroker.net.client.tcp_dialer import TcpDialer
from wirebroker.quorum.channel.remote_channel import RemoteChannel
from wirebroker.storage.files import Files

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


def _node() -> ControllerNode:
    listeners = {"listeners": "CONTROLLER://127.0.0.1:0", "controller.listener.names": "CONTROLLER"}
    config = Config({"process.roles": "controller", "log.dirs": "unused", **listeners})
    failures: list[object] = []
    node = ControllerNode(
        config,
        clock=SystemClock(),
        files=Files(),
        on_disk_failure=lambda *failure: failures.append(failure),
        on_unusable=failures.append,
    )
    node.bind()
    return node


class Voter:
    """A controller that is active or not, and responds to DeleteTopics."""

    def __init__(self, node_id: int, *, is_active: bool) -> None:
        self.rules = SimpleNamespace(cluster_id="c", node_id=node_id)
        self.endpoints = ()
        self.node = SimpleNamespace(
            voters=(),
            known_leader=SimpleNamespace(leader_id=node_id, endpoints=()),
            leadership=SimpleNamespace(leader_id=node_id),
        )
        self.authorization = None
        self.follower = SimpleNamespace(image=ClusterImage(), kraft_version=0)
        self.is_active = is_active
        self.asked = 0

    async def carry_out(self, request: Any) -> dict[str, Any]:
        self.asked += 1
        if not self.is_active:
            raise KafkaError(ErrorCode.NOT_CONTROLLER)
        names = request.body.topic_names
        return {"responses": [{"name": name, "error_code": 0} for name in names]}


@contextlib.asynccontextmanager
async def _forwarding_to(*voters: Voter, timeout_s: float) -> AsyncIterator[RemoteChannel]:
    """Return the channel of a broker that takes the first controller for the active one."""
    nodes = [_node() for _ in voters]
    for node, voter in zip(nodes, voters, strict=True):
        node.serve(voter)  # type: ignore[arg-type]
    addresses = [PeerAddress(node.bound[0].host, node.bound[0].port) for node in nodes]
    controllers = ActiveController(
        addresses,
        dialer=TcpDialer(),
        settings=ClientSettings(),
        clock=SystemClock(),
        random=random.Random(1),
    )
    controllers._current = controllers._node(addresses[0])
    channel = RemoteChannel(controllers, SystemClock(), timeout_s=timeout_s)
    try:
        yield channel
    finally:
        await channel.close()
        for node in nodes:
            await node.close()


async def _delete_topic(channel: RemoteChannel) -> ErrorCode:
    body = request_message(ApiKey.DELETE_TOPICS).struct_class(topic_names=["t"], topics=[])
    answer = await channel.forward(ApiKey.DELETE_TOPICS, 5, body, Requester())
    # A refusal is created here; a response has come over the wire.
    (result,) = answer["responses"] if isinstance(answer, dict) else answer.responses
    fields = result if isinstance(result, dict) else {"error_code": result.error_code}
    return ErrorCode(fields["error_code"])


async def test_forwarded_request_is_retried_at_the_next_active_controller() -> None:
    last, now = Voter(1, is_active=False), Voter(2, is_active=True)
    async with _forwarding_to(last, now, timeout_s=PATIENCE_S) as channel:
        assert await _delete_topic(channel) == ErrorCode.NONE
    assert (last.asked, now.asked) == (1, 1)


async def test_forwarded_request_without_an_active_controller_times_out() -> None:
    voter = Voter(1, is_active=False)
    async with _forwarding_to(voter, timeout_s=1) as channel:
        assert await _delete_topic(channel) == ErrorCode.REQUEST_TIMED_OUT
    assert voter.asked > 1
