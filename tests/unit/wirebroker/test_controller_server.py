"""The controller's side of the wire: connections that do not behave."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from tests.support.servers import PATIENCE_S
from wirebroker.clock import next_turn
from wirebroker.cluster import controller_server
from wirebroker.cluster.controller_server import ControllerServer
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import ErrorCode


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
