"""Handshakes wait in a bounded queue, addresses in turn; disconnected peers are skipped."""

from __future__ import annotations

import asyncio
import ssl
from functools import partial
from typing import TYPE_CHECKING

import pytest

from tests.support.security.tls_files import client_side
from tests.unit.wirebroker.net.tls.test_tls_transport import secured, serve_tls
from wirebroker.base.clock import next_turn
from wirebroker.net.bounds.fair_queue import FairQueue, share_of
from wirebroker.net.tls.tls_engine import TlsEngine
from wirebroker.net.tls.tls_turns import CHEAP_STEPS, MOST_WAITING, TlsTurns

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

METADATA = 3
LEFT = 40


def hello(folder: Path) -> bytes:
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    tls = client_side(folder).wrap_bio(incoming, outgoing, server_hostname="localhost")
    with pytest.raises(ssl.SSLWantReadError):
        tls.do_handshake()
    return outgoing.read()


@pytest.fixture
def computed(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """The handshakes that were computed."""
    steps: list[bytes] = []
    shake_hands = TlsEngine.shake_hands

    def counted(self: TlsEngine, area: memoryview) -> bool:
        steps.append(bytes(area))
        return shake_hands(self, area)

    monkeypatch.setattr(TlsEngine, "shake_hands", counted)
    return steps


async def test_no_handshake_is_computed_for_disconnected_peers(
    tmp_path: Path, computed: list[bytes]
) -> None:
    async with serve_tls() as server:
        first = hello(tmp_path)
        for _ in range(LEFT):
            _, writer = await asyncio.open_connection("127.0.0.1", server.listener.port)
            # The end arrives with the first bytes, so both are dropped before the loop's next turn.
            writer.write(first)
            writer.close()
        client = await secured(server, client_side(tmp_path))
        assert await client.ask(METADATA, b"hello") == b"hello"
        await server.until(lambda: len(server.table) == 1)
    assert first not in computed


def test_handshakes_are_round_robin_over_addresses_in_order() -> None:
    line: FairQueue[str] = FairQueue()
    for n in range(100):
        line.add("10.0.0.1", f"many {n}")
    assert line.take() == "many 0"
    line.add("10.0.0.2", "one")
    assert [line.take() for _ in range(3)] == ["many 1", "one", "many 2"]
    assert len(line) == 97


@pytest.mark.parametrize(
    ("one", "other", "is_shared"),
    [
        ("10.0.0.1", "10.0.0.2", False),
        ("2001:db8:1:2::7", "2001:db8:1:2:9::8", True),
        ("2001:db8:1:2::7", "2001:db8:1:3::7", False),
        ("::1", "::2", True),
    ],
)
def test_addresses_of_an_ipv6_site_share_one_turn(one: str, other: str, is_shared: bool) -> None:
    assert (share_of(one) == share_of(other)) is is_shared


async def test_loop_turn_runs_one_expensive_step_or_a_few_cheap_ones() -> None:
    turns = TlsTurns(asyncio.get_running_loop())
    done: list[str] = []

    def step(name: str, is_dear: bool) -> bool:
        done.append(name)
        return is_dear

    for _ in range(CHEAP_STEPS + 1):
        turns.wait(partial(step, "left", False), address="10.0.0.1", is_first=True)
    await next_turn()
    assert len(done) == CHEAP_STEPS
    for _ in range(3):
        turns.wait(partial(step, "dear", True), address="10.0.0.1", is_first=True)
    await next_turn()
    assert done[CHEAP_STEPS:] == ["left", "dear"]


async def test_first_and_later_steps_alternate() -> None:
    turns = TlsTurns(asyncio.get_running_loop())
    done: list[str] = []

    def step(name: str) -> bool:
        done.append(name)
        return True

    for name in ("first", "later"):
        for _ in range(3):
            turns.wait(partial(step, name), address="10.0.0.1", is_first=name == "first")
    while len(done) < 6:
        await next_turn()
    assert sorted(done[:2]) == sorted(done[2:4]) == ["first", "later"]


async def test_full_queue_calls_back_when_it_is_short_again() -> None:
    turns = TlsTurns(asyncio.get_running_loop())
    for _ in range(MOST_WAITING):
        assert not turns.is_full
        turns.wait(lambda: True, address="10.0.0.1", is_first=True)
    assert turns.is_full
    called: list[bool] = []
    turns.when_there_is_room(lambda: called.append(turns.is_full))
    await next_turn()
    assert not called
    while turns._first:
        await next_turn()
    await next_turn()
    assert called == [False]


async def test_failing_step_does_not_block_others() -> None:
    loop = asyncio.get_running_loop()
    reported: list[object] = []
    loop.set_exception_handler(lambda _loop, context: reported.append(context["exception"]))
    turns = TlsTurns(loop)
    done: list[bool] = []

    def fails() -> bool:
        raise ValueError

    def works() -> bool:
        done.append(True)
        return True

    turns.wait(fails, address="10.0.0.1", is_first=True)
    turns.wait(works, address="10.0.0.1", is_first=True)
    for _ in range(3):
        await next_turn()
    assert done == [True]
    assert len(reported) == 1


async def test_listener_accepts_nobody_while_the_queue_is_full(tmp_path: Path) -> None:
    async with serve_tls() as server:
        go_ons: list[Callable[[], None]] = []
        own = server.table.has_to_wait

        def has_to_wait(_name: str, go_on: Callable[[], None]) -> bool:
            go_ons.append(go_on)
            return True

        server.table.has_to_wait = has_to_wait
        opening = asyncio.ensure_future(secured(server, client_side(tmp_path)))
        await server.until(lambda: go_ons)
        assert len(server.table) == 0
        server.table.has_to_wait = own
        go_ons[0]()
        client = await opening
        assert await client.ask(METADATA, b"hello") == b"hello"
