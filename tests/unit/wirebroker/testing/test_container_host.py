"""The kit's control of a broker in a container, with a fake engine and real HTTP."""

from __future__ import annotations

import http.server
import json
import threading
from typing import TYPE_CHECKING, Any

import pytest

from wirebroker.config import StartError
from wirebroker.testing.hosts import container_host
from wirebroker.testing.hosts.container_host import ContainerHost

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

RESET = ("POST", "/test/v1/reset")


class PlayedContainer:
    """A fake container: serves HTTP at its port while it runs."""

    def __init__(self, engine: PlayedEngine) -> None:
        self._engine = engine
        self._server: http.server.ThreadingHTTPServer | None = None

    def known_host(self) -> str:
        return "127.0.0.1"

    def start(self, *, bound_ports: dict[int, int], **_: Any) -> None:
        clients, port = bound_ports[9092], bound_ports[9404]
        self._engine.bound.append(clients)
        refusal = self._engine.refusals.pop(0) if self._engine.refusals else None
        if refusal is not None:
            raise StartError("the engine does not start it", refusal.format(port=clients))
        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", port), self._engine.answering)
        threading.Thread(target=self._server.serve_forever, args=(0.01,)).start()

    def has_ended(self) -> bool:
        return self._server is None

    def log_lines(self, most: int) -> list[str]:
        return ["wirebroker: it did not like it"][:most]

    def kill(self) -> None:
        server, self._server = self._server, None
        if server is not None:
            server.shutdown()
            server.server_close()

    remove = kill


class PlayedEngine:
    """Creates fake containers and records their requests.

    Attributes:
        asked: Methods and paths.
        bound: Ports for clients.
        refusals: The errors of the next starts (None: success).
    """

    def __init__(self) -> None:
        self.asked: list[tuple[str, str]] = []
        self.bound: list[int] = []
        self.refusals: list[str | None] = []
        engine = self

        class Answering(http.server.BaseHTTPRequestHandler):
            def answer(self) -> None:
                engine.asked.append((self.command, self.path))
                self.rfile.read(int(self.headers.get("Content-Length") or 0))
                content = json.dumps({"host": "172.17.0.2", "port": 9092}).encode()
                self.send_response(200)
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            do_GET = do_POST = answer  # noqa: N815 - http.server's names

            def log_message(self, *_: object) -> None:
                pass

        self.answering = Answering

    def container(self, _image: str) -> PlayedContainer:
        return PlayedContainer(self)


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch) -> PlayedEngine:
    engine = PlayedEngine()
    monkeypatch.setattr(container_host, "Container", engine.container)
    return engine


@pytest.fixture
def host(engine: PlayedEngine) -> Iterator[ContainerHost]:
    host = ContainerHost("an-image")
    yield host
    host.leave_nothing()


async def test_reset_keeps_the_container_unless_settings_differ(
    engine: PlayedEngine, host: ContainerHost, tmp_path: Path
) -> None:
    directory = tmp_path / "data"
    address = await host.start(directory, {"num.partitions": "1"}, 0)
    assert address == ("127.0.0.1", engine.bound[0])
    assert await host.renew({"num.partitions": "1"}) == address
    assert engine.asked == [("GET", "/ready"), RESET]
    assert await host.renew({"num.partitions": "2"}) is None
    assert not host.is_running
    assert engine.asked.count(RESET) == 1


async def test_reset_gives_up_on_an_unresponsive_container(
    host: ContainerHost, tmp_path: Path
) -> None:
    await host.start(tmp_path / "data", {}, 0)
    host._running_container.kill()
    assert await host.renew({}) is None
    assert not host.is_running


async def test_port_in_use_is_replaced_unless_it_was_given(
    engine: PlayedEngine, host: ContainerHost, tmp_path: Path
) -> None:
    taken = "Bind for 0.0.0.0:{port} failed: port is already allocated"
    engine.refusals = [taken, None, taken]
    address = await host.start(tmp_path / "data", {}, 0)
    assert [address.port] == engine.bound[1:]
    with pytest.raises(StartError, match="already allocated"):
        await ContainerHost("an-image").start(tmp_path / "other", {}, 20_001)
    assert engine.bound[2:] == [20_001]


async def test_container_that_exits_early_is_reported(
    monkeypatch: pytest.MonkeyPatch, host: ContainerHost, tmp_path: Path
) -> None:
    monkeypatch.setattr(PlayedContainer, "start", lambda _container, **_: None)
    with pytest.raises(StartError, match="it did not like it"):
        await host.start(tmp_path / "data", {}, 0)
