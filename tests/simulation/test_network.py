"""The simulated network: real connections on a simulated clock, which end with their broker."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from tests.simulation.clients.member import TOPIC
from tests.simulation.machine.loop import Process
from tests.simulation.network.link import Link, LinkLostError
from tests.simulation.worlds.world import World
from tests.support.protocol.raw_client import request_frame
from tests.support.protocol.requests import (
    FETCH_VERSION,
    PRODUCE_VERSION,
    fetch_request,
    produce_request,
)
from tests.support.records.batches import batch
from wirebroker.base.clock import pause
from wirebroker.codecs.api_keys import ApiKey

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterator

    from wirebroker.net.connection_table import ConnectionTable

_WAIT_S = 20.0
# Longer than all frame deadlines and the idle timeout of connections.
_LONG_S = 1_000.0


class Scene:
    """A broker and a client process on a network without faults."""

    def __init__(self) -> None:
        self.world = World(3)
        self.client = Process(self.world.loop, "client")

    def run(self, live: Callable[[], Coroutine[Any, Any, None]]) -> None:

        async def main() -> None:
            await self.world.host.start()
            await self.world._create(TOPIC, 1)
            await self.client.spawn(live())

        try:
            self.world.loop.run_until_complete(main())
        finally:
            self.close()

    def close(self) -> None:
        self.client.kill()
        self.world.host.process.kill()
        self.world.loop.close()

    @property
    def table(self) -> ConnectionTable:
        life = self.world.host._life
        assert life is not None
        return life.table

    def open(self, *, is_slow: bool = False) -> Link:
        link = self.world.network.open(self.client)
        link._is_slow = is_slow
        return link

    async def produce(self, link: Link, value: bytes) -> None:
        request = produce_request({(TOPIC, 0): batch(value)})
        answer = await link.ask(ApiKey.PRODUCE, PRODUCE_VERSION, request, timeout_s=_WAIT_S)
        assert answer.responses[0].partition_responses[0].error_code == 0

    async def lose(self, link: Link) -> None:
        """Send a request whose link breaks before its response."""
        request = fetch_request({(TOPIC, 0): 1}, max_wait_ms=int(_WAIT_S * 1000))
        with pytest.raises(LinkLostError):
            await link.ask(ApiKey.FETCH, FETCH_VERSION, request, timeout_s=_LONG_S)

    def close_connections(self) -> None:
        """Close all connections as a faulty broker may."""
        for connection in list(self.table._connections):
            connection.close()

    async def fetch(self, link: Link, offset: int, *, max_wait_ms: int = 0) -> bytes:
        request = fetch_request({(TOPIC, 0): offset}, max_wait_ms=max_wait_ms)
        answer = await link.ask(ApiKey.FETCH, FETCH_VERSION, request, timeout_s=_WAIT_S)
        return bytes(answer.responses[0].partitions[0].records or b"")


@pytest.fixture
def scene() -> Iterator[Scene]:
    instance = Scene()
    yield instance
    instance.close()


@pytest.fixture
def failures(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> list[BaseException]:
    """The failures that the network reports, which end no world."""
    reported: list[BaseException] = []
    monkeypatch.setattr(scene.world, "failed", reported.append)
    return reported


def test_incomplete_request_times_out_on_the_simulated_clock(scene: Scene) -> None:
    async def live() -> None:
        link = scene.open()
        await scene.produce(link, b"a")
        frame = request_frame(ApiKey.METADATA, 9, {"topics": None})
        link.is_closed = True  # the client's machine fails without a close
        assert link._transport is not None
        link._transport.incoming += frame[:7]
        link._transport.changed()
        deadline_s = scene.table.settings.frame_deadline_ms / 1000
        await pause(deadline_s - 1)
        assert scene.table.metrics.requests_late == 0
        await pause(3)
        assert scene.table.metrics.requests_late == 1
        assert link._transport.is_closed

    scene.run(live)


def test_idle_connections_are_closed_on_the_simulated_clock(scene: Scene) -> None:
    async def live() -> None:
        link = scene.open()
        await scene.produce(link, b"a")
        idle_s = scene.table.settings.connections_max_idle_ms / 1000
        await pause(idle_s - 1)
        assert not scene.table.metrics.connections_expired
        await pause(idle_s / 10 + 60)
        assert scene.table.metrics.connections_expired == {"PLAINTEXT": 2}  # the admin's as well
        assert link.is_closed

    scene.run(live)


def test_idle_connections_may_be_closed_while_a_request_is_on_its_way(
    scene: Scene, failures: list[BaseException], monkeypatch: pytest.MonkeyPatch
) -> None:
    async def live() -> None:
        link = scene.open()
        await scene.produce(link, b"a")
        idle_s = scene.table.settings.connections_max_idle_ms / 1000
        await pause(idle_s - 1)
        monkeypatch.setattr(scene.world.network, "delay", lambda: idle_s / 10 + 60)
        await scene.lose(link)
        assert scene.table.metrics.connections_expired == {"PLAINTEXT": 2}
        assert not failures

    scene.run(live)


@pytest.mark.parametrize(
    ("delay_s", "idle_s"),
    [(_WAIT_S, 60), (0, 60), (0, 1)],
    ids=["not idle, request on its way", "not idle, request received", "quiet, request received"],
)
def test_detects_a_connection_closed_without_a_reason(
    scene: Scene,
    failures: list[BaseException],
    monkeypatch: pytest.MonkeyPatch,
    delay_s: float,
    idle_s: int,
) -> None:
    async def live() -> None:
        link = scene.open()
        await scene.produce(link, b"a")
        settings = replace(scene.table.settings, connections_max_idle_ms=idle_s * 1000)
        monkeypatch.setattr(scene.table, "settings", settings)
        monkeypatch.setattr(scene.world.network, "delay", lambda: delay_s)
        losing = scene.client.spawn(scene.lose(link))
        await pause(2)
        scene.close_connections()
        await losing
        [failure] = failures
        assert "instead of answering client FETCH" in str(failure)

    scene.run(live)


def test_slow_reader_receives_complete_responses(scene: Scene) -> None:
    async def live() -> None:
        link = scene.open(is_slow=True)
        value = bytes(range(256)) * 300
        await scene.produce(link, value)
        for _ in range(20):  # some miss the page cache
            assert value in await scene.fetch(link, 0)

    scene.run(live)


def test_a_connection_ends_with_its_broker(scene: Scene) -> None:
    world = scene.world

    async def live() -> None:
        links = [scene.open() for _ in range(8)]
        for link in links:
            await scene.produce(link, b"a")
        waiting = [
            scene.client.spawn(scene.fetch(link, 8, max_wait_ms=int(_WAIT_S * 1000)))
            for link in links[:4]
        ]
        await pause(1)
        table, steps, process = scene.table, world.host.process.steps, world.host.process
        assert len(table) >= len(links)
        process.kill()
        await world.host.start()
        await pause(_LONG_S)
        assert process.steps == steps
        for task in waiting:
            with pytest.raises(LinkLostError):
                await task
        for link in links:
            with pytest.raises(LinkLostError):
                await scene.produce(link, b"late")
        await scene.produce(scene.open(), b"b")
        assert scene.table is not table
        assert len(scene.table) == 1
        scene.table.check()

    scene.run(live)


def test_stopping_broker_closes_its_connections(scene: Scene) -> None:
    async def live() -> None:
        link = scene.open()
        await scene.produce(link, b"a")
        table = scene.table
        await scene.world.host.stop_and_start()
        assert len(table) == 0
        await pause(1)
        assert link.is_closed
        await scene.produce(scene.open(), b"b")

    scene.run(live)
