"""Probes for configs of listeners and of connection limits."""

from __future__ import annotations

import contextlib

import pytest

from tests.support.protocol.raw_client import RawClient
from tests.support.tools.ports import free_port
from tests.support.tools.waiting import until
from tests.unit.wirebroker.broker.dynamic.dynamic_config_kit import World, probe
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import ErrorCode

MAP = "listener.security.protocol.map"
STATIC_LISTENER = "PLAINTEXT://127.0.0.1:0"


async def _brokers(client: RawClient) -> list[tuple[str, int]]:
    answer = await client.ask(ApiKey.METADATA, 12, {"topics": []})
    return [(broker.host, broker.port) for broker in answer.brokers]


@probe("listeners")
async def _listeners(w: World) -> None:
    port = free_port()
    two = f"{STATIC_LISTENER},INSIDE://127.0.0.1:{port}"
    await w.set(("listeners", two), (MAP, "PLAINTEXT:PLAINTEXT,INSIDE:PLAINTEXT"))
    inside = await RawClient.connect(("127.0.0.1", port))
    try:
        assert await _brokers(inside) == [("127.0.0.1", port)]
        await w.set(("listeners", STATIC_LISTENER))
        assert await inside.is_closed()
    finally:
        await inside.close()
    with pytest.raises(ConnectionRefusedError):
        await RawClient.connect(("127.0.0.1", port))
    # The advertised listener stays.
    moved = ("listeners", f"PLAINTEXT://127.0.0.1:{port}")
    assert await w.change(moved) is ErrorCode.INVALID_REQUEST
    assert await _brokers(w.client) == [w.server.address]


@probe(MAP)
async def _protocol_map(w: World) -> None:
    added_listener = ("listeners", f"{STATIC_LISTENER},INSIDE://127.0.0.1:0")
    assert await w.change(added_listener) is ErrorCode.INVALID_REQUEST
    await w.set((MAP, "PLAINTEXT:PLAINTEXT,INSIDE:PLAINTEXT"))
    assert await w.change(added_listener) is ErrorCode.NONE
    for unfit in ("PLAINTEXT:PLAINTEXT", "PLAINTEXT:SSL,INSIDE:PLAINTEXT"):
        assert await w.change((MAP, unfit)) is ErrorCode.INVALID_REQUEST


async def _connected(w: World) -> RawClient:
    client = await RawClient.connect(w.server.address)
    await _brokers(client)
    return client


@probe("max.connections")
async def _max_connections(w: World) -> None:
    async with contextlib.AsyncExitStack() as stack:
        clients = [await _connected(w) for _ in range(3)]
        for client in clients:
            stack.push_async_callback(client.close)
        # One too many: the connection that was idle longest is closed.
        await w.set(("max.connections", "3"))
        assert await clients[0].is_closed()
        assert await _brokers(clients[2]) == [w.server.address]
        newcomer = await RawClient.connect(w.server.address)
        stack.push_async_callback(newcomer.close)
        correlation_id = await newcomer.send(ApiKey.METADATA, 12, {"topics": []})
        await _brokers(w.client)
        assert len(w.server.reception.table or ()) == 3
        await w.set(("max.connections", "4"))
        await newcomer.receive(ApiKey.METADATA, 12, correlation_id)


@probe("max.connections.per.ip")
async def _max_connections_per_ip(w: World) -> None:
    client = await _connected(w)
    await w.set(("max.connections.per.ip", "2"))
    assert await _brokers(client) == [w.server.address]  # open connections stay
    refused = await RawClient.connect(w.server.address)
    assert await refused.is_closed()
    await refused.close()
    await client.close()


@probe("max.connections.per.ip.overrides")
async def _overrides(w: World) -> None:
    await w.set(("max.connections.per.ip.overrides", "localhost:1,10.0.0.1:7"))
    refused = await RawClient.connect(w.server.address)
    assert await refused.is_closed()
    await refused.close()
    # A default of 0 turns the list into an allowlist.
    listed = [("max.connections.per.ip", "0"), ("max.connections.per.ip.overrides", "127.0.0.1:9")]
    await w.set(*listed)
    await (await _connected(w)).close()


@probe("max.connection.creation.rate")
async def _creation_rate(w: World) -> None:
    await w.set(("max.connection.creation.rate", "1"))
    clients = [await RawClient.connect(w.server.address) for _ in range(15)]
    assert w.server.listeners is not None
    listener = w.server.listeners["PLAINTEXT"]
    # A burst of ten, ten seconds' worth; the next one is delayed.
    await until(lambda: listener._delayed is not None)
    assert len(w.server.reception.table or ()) < 1 + len(clients)
    await w.set(("max.connection.creation.rate", "1000000"))
    await until(lambda: len(w.server.reception.table or ()) == 1 + len(clients))
    for client in clients:
        await client.close()
