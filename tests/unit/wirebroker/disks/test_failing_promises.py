"""Starts with two failing disks: a log's, and that of its future copy."""

from __future__ import annotations

import asyncio
import shutil
from typing import TYPE_CHECKING

from tests.support.brokers.servers import broker_of, client_of, running
from tests.support.protocol.requests import append, create_topic, fetch
from tests.support.records.batches import batch, values_in
from tests.support.tools.waiting import PATIENCE_S, until
from tests.unit.wirebroker.replication.test_replica_moves import NamesMayFail, move
from wirebroker.coordinator.controller.image.cluster_image import directory_of

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.protocol.raw_client import RawClient
    from wirebroker.broker.server import Server


def place(server: Server, topic: str) -> str:
    partition = broker_of(server).replicas.find(topic, b"", by_id=False)[0][0]
    return partition.directory.path


def is_promised(server: Server, topic: str, path: Path) -> bool:
    broker = broker_of(server)
    directory_id = directory_of(broker.metadata.image.topics[topic].partitions[0], broker.node_id)
    return directory_id in [
        directory.files.directory_id
        for directory in broker.replicas.directories
        if directory.path == str(path)
    ]


async def move_new(server: Server, client: RawClient, topic: str, path: Path) -> None:
    await create_topic(client, topic, 1)
    assert await append(client, topic, batch(topic.encode())) == 0
    await move(client, path, topic=topic)
    await until(lambda: place(server, topic) == str(path))
    await until(lambda: is_promised(server, topic, path))


def leave_on_the_way(topic: str, *, source: Path, target: Path) -> None:
    """Leave a log on both disks, as after a kill during its move."""
    shutil.copytree(target / f"{topic}-0", source / f"{topic}-0", dirs_exist_ok=True)
    (target / f"{topic}-0").rename(target / f"{topic}-0.{'0' * 32}-future")


async def test_failed_disk_of_one_move_does_not_block_other_moves(tmp_path: Path) -> None:
    first_path, second_path, third_path = paths = (
        tmp_path / "one",
        tmp_path / "two",
        tmp_path / "three",
    )
    settings = {"metadata.log.dir": str(tmp_path / "metadata")}
    disk = NamesMayFail()
    async with asyncio.timeout(PATIENCE_S):
        async with running(*paths, settings=settings) as server, client_of(server) as client:
            for topic, path in (("t", second_path), ("u", third_path)):
                await move_new(server, client, topic, path)
        leave_on_the_way("t", source=first_path, target=second_path)
        leave_on_the_way("u", source=second_path, target=third_path)
        (first_path / ".kafka_cleanshutdown").unlink()
        disk.fail(first_path / "t-0", "read")
        disk.fail(second_path / "t-0", "rename")
        async with (
            running(*paths, settings=settings, files=disk) as server,
            client_of(server) as client,
        ):
            directories = broker_of(server).replicas.directories
            assert [directory.is_online for directory in directories] == [False, False, True]
            assert place(server, "u") == str(third_path)
            assert not (third_path / "t-0").exists(), "it is not created again"
            assert values_in((await fetch(client, "u", 0)).records) == [b"u"]
