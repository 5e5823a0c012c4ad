"""The controller's side of the wire: connections that do not behave."""

from __future__ import annotations

import asyncio
import contextlib
import random
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.servers import PATIENCE_S
from wirebroker.clock import SystemClock, next_turn
from wirebroker.cluster import controller_server
from wirebroker.cluster.controller_channel import Requester
from wirebroker.cluster.controller_server import ControllerServer
from wirebroker.cluster.remote_channel import RemoteChannel
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.codecs.messages import request_message
from wirebroker.net.client.active_controller import ActiveController
from wirebroker.net.client.settings import ClientSettings, PeerAddress
from wirebroker.net.client.transport import TcpDialer

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


def _api_versions(version: int) -> bytes:
    header = int(ApiKey.API_VERSIONS).to_bytes(2) + version.to_bytes(2, signed=True)
    frame = header + (7).to_bytes(4) + (-1).to_bytes(2, signed=True)
    return len(frame).to_bytes(4) + frame


def _server() -> ControllerServer:
    controller: Any = None
    return ControllerServer(controller)


def _serve(server: ControllerServer, data: bytes, drain: Any) -> tuple[asyncio.Task[None], Any]:
    """Serve a peer that has sent `data`; give what is written, too."""
    reader = asyncio.StreamReader()
    reader.feed_data(data)
    written: list[bytes] = []
    writer: Any = SimpleNamespace(
        get_extra_info=lambda _: "peer", write=written.append, drain=drain, close=lambda: None
    )
    return asyncio.create_task(server._serve(reader, writer)), written


async def _at_once() -> None:
    pass


@pytest.mark.parametrize("version", [-1, 99])
async def test_a_version_of_api_versions_that_is_not_known_is_told_so(version: int) -> None:
    server = _server()
    task, written = _serve(server, _api_versions(version), _at_once)
    while not written:
        await next_turn()
    (answer,) = written
    assert answer[4:10] == (7).to_bytes(4) + int(ErrorCode.UNSUPPORTED_VERSION).to_bytes(2)
    await server.close()
    assert task.done()
    assert not task.cancelled()


async def test_who_does_not_read_the_answer_is_let_go(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(controller_server, "_MOST_IDLE_S", 0.01)
    task, _ = _serve(_server(), _api_versions(0), asyncio.Event().wait)
    async with asyncio.timeout(PATIENCE_S):
        await task


class Voter:
    """A controller that is active or is not, and answers DeleteTopics."""

    def __init__(self, node_id: int, *, is_active: bool) -> None:
        self.rules = SimpleNamespace(cluster_id="c", node_id=node_id)
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
    """Give the channel of a broker that takes the first of them for active."""
    servers = [ControllerServer(voter) for voter in voters]  # type: ignore[arg-type]
    for server in servers:
        await server.start("127.0.0.1", 0)
    addresses = [PeerAddress(*server.address) for server in servers]
    controllers = ActiveController(
        addresses,
        dialer=TcpDialer(),
        settings=ClientSettings(),
        clock=SystemClock(),
        random=random.Random(1),
    )
    controllers.learn(voters[0].rules.node_id, addresses[0])
    channel = RemoteChannel(controllers, timeout_s=timeout_s)
    try:
        yield channel
    finally:
        await channel.close()
        for server in servers:
            await server.close()


async def _delete_topic(channel: RemoteChannel) -> ErrorCode:
    """Forward a client's DeleteTopics; return what it is told."""
    body = request_message(ApiKey.DELETE_TOPICS).struct_class(topic_names=["t"], topics=[])
    answer = await channel.forward(ApiKey.DELETE_TOPICS, 5, body, Requester())
    # A refusal is made here, an answer has come over the wire.
    (told,) = answer["responses"] if isinstance(answer, dict) else answer.responses
    fields = told if isinstance(told, dict) else {"error_code": told.error_code}
    return ErrorCode(fields["error_code"])


async def test_a_forwarded_request_goes_on_to_the_next_active_controller() -> None:
    last, now = Voter(1, is_active=False), Voter(2, is_active=True)
    async with _forwarding_to(last, now, timeout_s=PATIENCE_S) as channel:
        assert await _delete_topic(channel) == ErrorCode.NONE
    assert (last.asked, now.asked) == (1, 1)


async def test_a_forwarded_request_that_nobody_is_active_for_ends_with_its_time() -> None:
    voter = Voter(1, is_active=False)
    async with _forwarding_to(voter, timeout_s=0.3) as channel:
        assert await _delete_topic(channel) == ErrorCode.REQUEST_TIMED_OUT
    assert voter.asked > 1
