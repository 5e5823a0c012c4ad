"""A cluster of two brokers with two log directories each: one directory fails, the rest goes on."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import shutil
from typing import TYPE_CHECKING

import pytest

from tests.support.batches import batch
from tests.support.ports import free_ports
from tests.support.servers import PATIENCE_S, broker_of, client_of, config_of, until
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.coordinator.controller.cluster_image import directory_of
from wirebroker.server import Server

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from wirebroker.cluster.data_directory import DataDirectory
    from wirebroker.coordinator.controller.cluster_image import PartitionImage

PARTITIONS = 4


@contextlib.asynccontextmanager
async def cluster(tmp_path: Path) -> AsyncIterator[dict[int, Server]]:
    """Run broker 1, which has the controller, and 2."""
    port = free_ports(1)[0]
    servers: dict[int, Server] = {}
    try:
        for node_id in (1, 2):
            servers[node_id] = Server(
                config_of(
                    *places(tmp_path, node_id),
                    settings={
                        "node.id": str(node_id),
                        "process.roles": "broker,controller" if node_id == 1 else "broker",
                        "listeners": "PLAINTEXT://127.0.0.1:0"
                        + (f",CONTROLLER://127.0.0.1:{port}" if node_id == 1 else ""),
                        "controller.listener.names": "CONTROLLER",
                        "controller.quorum.voters": f"1@127.0.0.1:{port}",
                    },
                )
            )
            await servers[node_id].start()
        yield servers
    finally:
        for server in reversed(servers.values()):
            await server.stop()


def places(tmp_path: Path, node_id: int) -> list[Path]:
    return [tmp_path / f"{node_id}-{name}" for name in ("one", "two")]


def partition(server: Server, index: int) -> PartitionImage:
    found = broker_of(server).metadata.image.partition("t", index)
    assert found is not None
    return found


def directory(server: Server, path: Path) -> DataDirectory:
    [found] = [each for each in broker_of(server).replicas.directories if each.path == str(path)]
    return found


def led_by(server: Server, indexes: list[int]) -> set[int]:
    return {partition(server, index).leader for index in indexes}


async def create(server: Server, replicas: list[int]) -> None:
    topic = {
        "name": "t",
        "num_partitions": -1,
        "replication_factor": -1,
        "assignments": [
            {"partition_index": index, "broker_ids": replicas} for index in range(PARTITIONS)
        ],
    }
    async with client_of(server) as client:
        answer = await client.ask(
            ApiKey.CREATE_TOPICS, 7, {"topics": [topic], "timeout_ms": 20_000}
        )
        assert not answer.topics[0].error_code, answer.topics[0]


async def produce(server: Server, index: int) -> int:
    data = {"name": "t", "partition_data": [{"index": index, "records": batch(b"v")}]}
    async with client_of(server) as client:
        answer = await client.ask(
            ApiKey.PRODUCE, 12, {"acks": -1, "timeout_ms": 20_000, "topic_data": [data]}
        )
    return int(answer.responses[0].partition_responses[0].error_code)


@pytest.mark.parametrize("failing", [1, 2])
async def test_what_lay_in_a_directory_that_fails_is_led_by_the_other_broker(
    tmp_path: Path, failing: int
) -> None:
    async with asyncio.timeout(PATIENCE_S), cluster(tmp_path) as servers:
        other = 3 - failing
        await create(servers[1], [failing, other])
        where = {
            each.files.directory_id: each.path
            for each in broker_of(servers[failing]).replicas.directories
        }

        def lies_in(index: int) -> str | None:
            return where.get(directory_of(partition(servers[1], index), failing))

        await until(lambda: all(map(lies_in, range(PARTITIONS))))
        one, two = (str(each) for each in places(tmp_path, failing))
        lost = [index for index in range(PARTITIONS) if lies_in(index) == two]
        kept = [index for index in range(PARTITIONS) if lies_in(index) == one]
        assert len(lost) == len(kept) == PARTITIONS // 2
        assert led_by(servers[1], [*lost, *kept]) == {failing}
        # Both know of the topic by then.
        await until(lambda: "t" in broker_of(servers[other]).metadata.image.topics)

        manager = broker_of(servers[failing]).replicas
        error = OSError(errno.EIO, "the disk is gone")
        manager.directory_failed(directory(servers[failing], tmp_path / f"{failing}-two"), error)
        await until(lambda: led_by(servers[1], lost) == {other})
        await until(lambda: led_by(servers[other], lost) == {other})
        assert led_by(servers[1], kept) == {failing}
        assert {partition(servers[1], index).isr for index in lost} == {(other,)}
        assert await produce(servers[other], lost[0]) == 0
        assert await produce(servers[failing], kept[0]) == 0


async def test_a_replica_is_made_again_where_the_metadata_says_that_it_lies(tmp_path: Path) -> None:
    async with asyncio.timeout(PATIENCE_S), cluster(tmp_path) as servers:
        await create(servers[1], [2])

        def told() -> list[bytes]:
            return [directory_of(partition(servers[1], each), 2) for each in range(PARTITIONS)]

        def found() -> list[bytes]:
            here = broker_of(servers[2]).replicas.find("t", b"", by_id=False)[0]
            return [here[each].directory.files.directory_id for each in range(PARTITIONS)]

        await until(lambda: bytes(16) not in told())
        before = told()
        assert found() == before
        stopped = servers.pop(2)
        await stopped.stop()
        for folder in (tmp_path / "2-two").glob("t-*"):
            shutil.rmtree(folder)
        servers[2] = Server(stopped.config)
        await servers[2].start()
        assert told() == found() == before
