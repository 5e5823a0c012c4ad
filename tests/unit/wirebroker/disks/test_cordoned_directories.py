"""Log directories that new replicas are kept out of (cordoned.log.dirs, KIP-1066)."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.brokers.servers import broker_of, client_of, config_of, running
from tests.support.protocol.raw_client import RawClient
from tests.support.protocol.requests import append, create_topic
from tests.support.records.batches import batch
from tests.support.tools.waiting import PATIENCE_S, until
from tests.unit.wirebroker.disks.test_several_directories import cluster, places
from tests.unit.wirebroker.replication.test_replica_moves import move
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import ErrorCode
from wirebroker.config.quorum import controllers_of
from wirebroker.config.rows.row import ConfigError

if TYPE_CHECKING:
    from pathlib import Path

    from wirebroker.broker.server import Server

SET = 0


async def cordon(server: Server, value: str) -> int:
    async with client_of(server) as client:
        return await ask_to_cordon(client, broker_of(server).node_id, value)


async def ask_to_cordon(client: RawClient, node_id: int, value: str) -> int:
    changed = {"name": "cordoned.log.dirs", "config_operation": SET, "value": value}
    resource = {"resource_type": 4, "resource_name": str(node_id), "configs": [changed]}
    answer = await client.ask(
        ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, {"resources": [resource], "validate_only": False}
    )
    return int(answer.responses[0].error_code)


def known(server: Server, node_id: int) -> tuple[bytes, ...] | None:
    return broker_of(server).metadata.image.brokers[node_id].cordoned_log_directories


async def until_known(server: Server, node_id: int, count: int) -> None:
    await until(lambda: len(known(server, node_id) or ()) == count)


async def created(client: RawClient, name: str, partitions: int = 1, replicas: int = 1) -> int:
    topic = {"name": name, "num_partitions": partitions, "replication_factor": replicas}
    answer = await client.ask(ApiKey.CREATE_TOPICS, 7, {"topics": [topic], "timeout_ms": 10_000})
    return int(answer.topics[0].error_code)


async def described(client: RawClient) -> list[bool]:
    answer = await client.ask(ApiKey.DESCRIBE_LOG_DIRS, 5, {"topics": None})
    return [result.is_cordoned for result in answer.results]


def held(server: Server, name: str) -> set[str]:
    partitions, _ = broker_of(server).replicas.find(name, b"", by_id=False)
    return {partition.directory.path for partition in partitions.values()}


async def test_new_replicas_avoid_cordoned_directory_and_old_ones_are_served(
    tmp_path: Path,
) -> None:
    first_path, second_path = tmp_path / "one", tmp_path / "two"
    async with asyncio.timeout(PATIENCE_S):
        async with running(first_path, second_path) as server, client_of(server) as client:
            await create_topic(client, "before", 4)
            assert held(server, "before") == {str(first_path), str(second_path)}
            assert await cordon(server, str(second_path)) == ErrorCode.NONE
            await until_known(server, 1, 1)
            assert await described(client) == [False, True]
            await create_topic(client, "after", 6)
            assert held(server, "after") == {str(first_path)}
            assert await append(client, "before", batch(b"v")) == 0
            topic = "after"
            assert (
                await move(client, second_path, topic=topic) == ErrorCode.INVALID_REPLICA_ASSIGNMENT
            )
        # The next incarnation registers them again.
        async with running(first_path, second_path) as server, client_of(server) as client:
            assert len(known(server, 1) or ()) == 1
            assert await described(client) == [False, True]
            assert await cordon(server, "") == ErrorCode.NONE
            await until_known(server, 1, 0)
            assert await move(client, second_path, topic="after") == ErrorCode.NONE


async def test_no_replica_is_placed_on_a_fully_cordoned_broker(tmp_path: Path) -> None:
    async with asyncio.timeout(PATIENCE_S), cluster(tmp_path) as servers:
        for node_id in (1, 2):
            assert await cordon(servers[node_id], "*") == ErrorCode.NONE
            await until_known(servers[1], node_id, 2)
            async with client_of(servers[1]) as client:
                if node_id == 1:
                    assert await created(client, "t", 4) == ErrorCode.NONE
                    image = broker_of(servers[1]).metadata.image
                    partitions = image.topics["t"].partitions.values()
                    assert {partition.replicas for partition in partitions} == {(2,)}
                    error = await created(client, "of-both", replicas=2)
                    assert error == ErrorCode.INVALID_REPLICATION_FACTOR
        async with client_of(servers[1]) as client:
            assert await created(client, "nowhere") == ErrorCode.INVALID_REPLICATION_FACTOR
            topic_update = {"name": "t", "count": 5, "assignments": None}
            answer = await client.ask(
                ApiKey.CREATE_PARTITIONS, 3, {"topics": [topic_update], "timeout_ms": 10_000}
            )
            assert answer.results[0].error_code == ErrorCode.INVALID_REPLICATION_FACTOR
            # Explicit assignments to these brokers are not restricted.
            named = [{"partition_index": 0, "broker_ids": [1]}]
            topic: dict[str, Any] = {"name": "named", "assignments": named}
            topic |= {"num_partitions": -1, "replication_factor": -1}
            body = {"topics": [topic], "timeout_ms": 10_000}
            answer = await client.ask(ApiKey.CREATE_TOPICS, 7, body)
            assert answer.topics[0].error_code == ErrorCode.NONE
        assert await cordon(servers[2], str(places(tmp_path, 2)[0])) == ErrorCode.NONE
        await until_known(servers[1], 2, 1)
        async with client_of(servers[1]) as client:
            assert await created(client, "somewhere") == ErrorCode.NONE
        await until(lambda: held(servers[2], "somewhere") == {str(places(tmp_path, 2)[1])})


async def test_broker_can_start_with_cordoned_directories(tmp_path: Path) -> None:
    first_path, second_path = tmp_path / "one", tmp_path / "two"
    settings = {"cordoned.log.dirs": "*"}
    async with (
        asyncio.timeout(PATIENCE_S),
        running(first_path, second_path, settings=settings) as server,
        client_of(server) as client,
    ):
        assert await described(client) == [True, True]
        assert await created(client, "t") == ErrorCode.INVALID_REPLICATION_FACTOR
        assert await cordon(server, f"{first_path},*") == ErrorCode.INVALID_REQUEST
        assert await cordon(server, str(tmp_path)) == ErrorCode.INVALID_REQUEST
        assert await cordon(server, "") == ErrorCode.NONE
        await until_known(server, 1, 0)
        assert await created(client, "t") == ErrorCode.NONE


def test_cordoning_an_unknown_directory_is_refused_at_start(tmp_path: Path) -> None:
    for value in ("/elsewhere", f"{tmp_path},*"):
        with pytest.raises(ConfigError, match="cordoned"):
            config_of(tmp_path, settings={"cordoned.log.dirs": value})


async def test_controller_listener_cannot_cordon_but_can_uncordon(tmp_path: Path) -> None:
    async with asyncio.timeout(PATIENCE_S), cluster(tmp_path) as servers:
        (controller,) = controllers_of(servers[2].config)
        client = await RawClient.connect(controller)
        for node_id, server in servers.items():
            directory = str(places(tmp_path, node_id)[0])
            assert await ask_to_cordon(client, node_id, directory) == ErrorCode.INVALID_CONFIG
            assert await cordon(server, directory) == ErrorCode.NONE
            await until_known(servers[1], node_id, 1)
            assert await ask_to_cordon(client, node_id, "*") == ErrorCode.INVALID_CONFIG
            assert await ask_to_cordon(client, node_id, directory) == ErrorCode.NONE
            assert await ask_to_cordon(client, node_id, "") == ErrorCode.NONE
            await until_known(servers[1], node_id, 0)
        await client.close()
