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


async def test_a_broker_that_serves_is_live_and_ready(tmp_path):
    async with running(tmp_path, settings=HTTP) as server:
        for path, text in {"/live": "live\n", "/ready": "ready\n"}.items():
            reply = await ask_http(http_address(server), path)
            assert (reply.status, reply.text) == (200, text)


async def test_while_logs_are_recovered_it_is_live_and_not_ready(tmp_path, monkeypatch):
    server = Server(config_of(tmp_path, settings=HTTP))
    load = ReplicaManager.load
    seen: list[tuple[int, str]] = []

    async def load_and_ask(self, image):
        for path in ("/live", "/ready"):
            reply = await ask_http(http_address(server), path)
            seen.append((reply.status, reply.text))
        await load(self, image)

    monkeypatch.setattr(ReplicaManager, "load", load_and_ask)
    await server.start()
    await server.stop()
    assert seen == [(200, "live\n"), (503, "not ready: it recovers its logs\n")]


async def test_a_fenced_broker_and_one_that_stops_are_not_ready(tmp_path):
    async with running(tmp_path, settings=HTTP) as server:
        broker = broker_of(server)
        follower = broker.metadata
        image = follower.image
        fenced = image.brokers[broker.node_id]._replace(fenced=True)
        follower.image = dataclasses.replace(image, brokers={broker.node_id: fenced})
        reply = await ask_http(http_address(server), "/ready")
        assert (reply.status, reply.text) == (503, "not ready: the controller has fenced it\n")
        follower.image = image
        broker.is_stopping = True
        assert (await ask_http(http_address(server), "/ready")).text == "not ready: it stops\n"


async def test_nothing_of_it_is_left_after_a_start_that_failed(tmp_path):
    (tmp_path / "file").write_text("")
    server = Server(config_of(tmp_path / "file" / "data", settings=HTTP))
    with pytest.raises(StartError):
        await server.start()
    with pytest.raises(ConnectionError):
        await ask_http(http_address(server), "/live")


def test_nothing_of_it_is_loaded_unless_it_is_asked_for():
    code = (
        "import sys, wirebroker.broker.server, wirebroker.cli.main;"
        "print([m for m in sys.modules if m == 'h11' or m.startswith('wirebroker.http')])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
