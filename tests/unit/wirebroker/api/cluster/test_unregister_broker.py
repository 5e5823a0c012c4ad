"""Unregistration of a broker through another broker or itself."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from tests.support.brokers.servers import broker_of, client_of, running
from tests.support.protocol.requests import append, create_topic
from tests.support.records.batches import batch
from tests.support.tools.waiting import PATIENCE_S, until
from tests.unit.wirebroker.disks.test_several_directories import cluster
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import ErrorCode

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

    from wirebroker.broker.server import Server


async def unregister(server: Server, broker_id: int) -> int:
    async with client_of(server) as client:
        answer = await client.ask(ApiKey.UNREGISTER_BROKER, 0, {"broker_id": broker_id})
        return int(answer.error_code)


async def test_known_broker_is_unregistered_and_unknown_is_refused(tmp_path: Path) -> None:
    async with asyncio.timeout(PATIENCE_S), cluster(tmp_path) as servers:
        await servers.pop(2).stop()
        assert set(broker_of(servers[1]).metadata.image.brokers) == {1, 2}
        assert await unregister(servers[1], 2) == ErrorCode.NONE
        assert set(broker_of(servers[1]).metadata.image.brokers) == {1}
        assert await unregister(servers[1], 2) == ErrorCode.BROKER_ID_NOT_REGISTERED


async def test_unregistered_broker_with_controller_registers_again(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with (
        asyncio.timeout(PATIENCE_S),
        running(tmp_path / "data") as server,
        client_of(server) as client,
    ):
        await create_topic(client, "t", 1)
        assert await append(client, "t", batch(b"before")) == 0
        broker = broker_of(server)
        before = broker.metadata.image.brokers[broker.node_id].epoch
        assert await unregister(server, broker.node_id) == ErrorCode.NONE
        await until(lambda: "registered it again" in caplog.text)
        again = broker.metadata.image.brokers[broker.node_id]
        assert again.epoch > before
        assert not again.fenced
        assert await append(client, "t", batch(b"after")) == 1
