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
    found = broker_of(server).replicas.find(topic, b"", by_id=False)[0][0]
    return found.directory.path


def is_promised(server: Server, topic: str, path: Path) -> bool:
    broker = broker_of(server)
    named = directory_of(broker.metadata.image.topics[topic].partitions[0], broker.node_id)
    return named in [
        each.files.directory_id for each in broker.replicas.directories if each.path == str(path)
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


async def test_a_copy_on_a_disk_that_fails_leaves_the_others_their_turn(tmp_path: Path) -> None:
    one, two, three = paths = tmp_path / "one", tmp_path / "two", tmp_path / "three"
    settings = {"metadata.log.dir": str(tmp_path / "metadata")}
    disk = NamesMayFail()
    async with asyncio.timeout(PATIENCE_S):
        async with running(*paths, settings=settings) as server, client_of(server) as client:
            for topic, path in (("t", two), ("u", three)):
                await move_new(server, client, topic, path)
        leave_on_the_way("t", source=one, target=two)
        leave_on_the_way("u", source=two, target=three)
        (one / ".kafka_cleanshutdown").unlink()
        disk.fail(one / "t-0", "read")
        disk.fail(two / "t-0", "rename")
        async with (
            running(*paths, settings=settings, files=disk) as server,
            client_of(server) as client,
        ):
            directories = broker_of(server).replicas.directories
            assert [each.is_online for each in directories] == [False, False, True]
            assert place(server, "u") == str(three)
            assert not (three / "t-0").exists(), "it is not made anew"
            assert values_in((await fetch(client, "u", 0)).records) == [b"u"]
