"""/live and /ready report the broker's state."""

from __future__ import annotations

import dataclasses
import subprocess
import sys

import pytest

from tests.support.brokers.servers import broker_of, config_of, running
from tests.support.http.http_client import ask_http, http_address
from wirebroker.broker.server import Server
from wirebroker.config import StartError
from wirebroker.replica.replica_manager import ReplicaManager

HTTP = {"wirebroker.http.listeners": "127.0.0.1:0"}


async def test_serving_broker_is_live_and_ready(tmp_path):
    async with running(tmp_path, settings=HTTP) as server:
        for path, text in {"/live": "live\n", "/ready": "ready\n"}.items():
            reply = await ask_http(http_address(server), path)
            assert (reply.status, reply.text) == (200, text)


async def test_live_but_not_ready_during_log_recovery(tmp_path, monkeypatch):
    server = Server(config_of(tmp_path, settings=HTTP))
    load = ReplicaManager.load
    replies: list[tuple[int, str]] = []

    async def load_and_ask(self, image):
        for path in ("/live", "/ready"):
            reply = await ask_http(http_address(server), path)
            replies.append((reply.status, reply.text))
        await load(self, image)

    monkeypatch.setattr(ReplicaManager, "load", load_and_ask)
    await server.start()
    await server.stop()
    assert replies == [(200, "live\n"), (503, "not ready: recovering the logs\n")]


async def test_fenced_or_stopping_broker_is_not_ready(tmp_path):
    async with running(tmp_path, settings=HTTP) as server:
        broker = broker_of(server)
        follower = broker.metadata
        image = follower.image
        fenced = image.brokers[broker.node_id]._replace(fenced=True)
        follower.image = dataclasses.replace(image, brokers={broker.node_id: fenced})
        reply = await ask_http(http_address(server), "/ready")
        assert (reply.status, reply.text) == (503, "not ready: fenced by the controller\n")
        follower.image = image
        broker.is_stopping = True
        assert (await ask_http(http_address(server), "/ready")).text == "not ready: stopping\n"


async def test_failed_start_closes_the_http_server(tmp_path):
    (tmp_path / "file").write_text("")
    server = Server(config_of(tmp_path / "file" / "data", settings=HTTP))
    with pytest.raises(StartError):
        await server.start()
    with pytest.raises(ConnectionError):
        await ask_http(http_address(server), "/live")


def test_http_modules_are_not_loaded_by_default():
    code = (
        "import sys, wirebroker.broker.server, wirebroker.cli.main;"
        "print([m for m in sys.modules if m == 'h11' or m.startswith('wirebroker.http')])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
