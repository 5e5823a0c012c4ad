"""Workers with client authentication or ACLs, and their private controller."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from tests.support.brokers.servers import broker_of
from tests.support.protocol.raw_client import RawClient
from tests.support.security.sasl_clients import log_in_plain
from tests.support.security.tls_files import client_side, tls_configs
from tests.support.tools.ports import free_port
from tests.support.tools.waiting import PATIENCE_S, until
from tests.unit.wirebroker.broker.workers.test_orders import AUTHORIZED, PROTECTED, orders_of
from wirebroker.broker.server import Server
from wirebroker.broker.workers.running import MachinePorts
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.config.sources.sources import load_config

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from wirebroker.broker.workers.orders import WorkerConfig


def server_of(order: WorkerConfig) -> Server:
    data = order.data_directory
    config = load_config(file=None, environment={}, flags=order.flags, data_directory=data)
    return Server(config)


def active_brokers(server: Server) -> set[int]:
    brokers = broker_of(server).metadata.image.brokers
    return {node_id for node_id, broker in brokers.items() if broker.is_active}


async def is_served(address: tuple[str, int], password: str | None = None) -> bool:
    client = await RawClient.connect(address)
    try:
        if password is not None:
            await log_in_plain(client, "worker", password)
        answer = await client.ask(ApiKey.DESCRIBE_CLUSTER, 1, {"endpoint_type": 2})
    except (ConnectionError, asyncio.IncompleteReadError):
        return False
    finally:
        await client.close()
    return not answer.error_code


@asynccontextmanager
async def two_workers(folder: Path, settings: dict[str, Any]) -> AsyncIterator[list[Server]]:
    servers: list[Server] = []
    try:
        async with asyncio.timeout(PATIENCE_S):
            for order in orders_of(folder, 2, ports=MachinePorts(), **settings):
                servers.append(server_of(order))
                await servers[-1].start()
            await until(lambda: active_brokers(servers[1]) == {1, 2})
            yield servers
    finally:
        for server in reversed(servers):
            await server.stop()


async def test_workers_with_an_authorizer_form_a_cluster_closed_to_others(
    tmp_path: Path,
) -> None:
    settings: dict[str, Any] = {
        "listeners": f"PLAINTEXT://127.0.0.1:{free_port()}",
        "broker.heartbeat.interval.ms": "200",
        "connection.failed.authentication.delay.ms": "1",
        **AUTHORIZED,
    }
    async with two_workers(tmp_path, settings) as servers:
        (controller,) = servers[0].controllers
        address = controller.host, controller.port
        assert not await is_served(address)
        assert not await is_served(address, "guessed")


async def test_workers_use_tls_and_sasl_between_each_other(tmp_path: Path) -> None:
    settings: dict[str, Any] = {
        **tls_configs(tmp_path / "tls"),
        **PROTECTED,
        "listeners": f"OUTSIDE://127.0.0.1:{free_port()}",
        "listener.security.protocol.map": "OUTSIDE:SASL_SSL",
        "broker.heartbeat.interval.ms": "200",
        **AUTHORIZED,
    }
    async with two_workers(tmp_path, settings) as servers:
        streams = await asyncio.open_connection(
            *servers[1].address, ssl=client_side(tmp_path), server_hostname="localhost"
        )
        client = RawClient(*streams)
        assert not (await log_in_plain(client, "broker", "hunter2")).error_code
        topic = {"name": "t", "num_partitions": 2, "replication_factor": 2}
        made = await client.ask(ApiKey.CREATE_TOPICS, 7, {"topics": [topic], "timeout_ms": 20_000})
        assert not made.topics[0].error_code, "the controller is the other's"

        def in_sync() -> set[int]:
            topics = broker_of(servers[1]).metadata.image.topics
            return {
                len(partition.isr)
                for topic in topics.values()
                for partition in topic.partitions.values()
            }

        await until(lambda: in_sync() == {2})
        await client.close()
