"""A cluster with content on which changes are made."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

import pytest

from tests.support.brokers.collectors import collecting
from tests.support.brokers.servers import ONE_NODE, running
from wirebroker.client.groups.groups import commit
from wirebroker.client.groups.share_offsets import alter_share_offsets
from wirebroker.client.records.producing import TopicWriter
from wirebroker.client.topics.leaders import TopicPartition
from wirebroker.client.topics.topics import create_topics
from wirebroker.codecs.records.codec import Codec

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from contextlib import AbstractAsyncContextManager
    from pathlib import Path

    from wirebroker.console.model.collector import Collector

    OpenCluster = Callable[[str], AbstractAsyncContextManager[Collector]]

ORDERS = "orders"
# The topic's records: `partition` has this many.
COUNT = 5
BYTES = b"\xff\x00\xfe"


async def fill(collector: Collector) -> None:
    """Create topics, records, and groups without members.

    Of orders each partition has five records, a second apart, from 1000 ms on. Group billing has
    committed 2 and 1; share group workers starts at 0 in both.
    """
    client = collector.client
    await create_topics(client, {ORDERS: 2, "copies": 3}, configs={})
    await create_topics(client, {"latest": 1}, configs={"cleanup.policy": "compact"})
    writer = TopicWriter(client, ORDERS, Codec.NONE)
    await writer.open()
    for number in range(COUNT):
        for partition in range(2):
            headers = [("trace", b"t%d" % number)]
            record = (b"k%d" % number, b"v%d" % number, headers)
            await writer.write([(partition, record)], timestamp_ms=1000 * (number + 1))
    places = [TopicPartition(ORDERS, 0), TopicPartition(ORDERS, 1)]
    await commit(client, "billing", dict(zip(places, (2, 1), strict=True)))
    await alter_share_offsets(client, "workers", dict.fromkeys(places, 0))


@pytest.fixture
def open_cluster(tmp_path: Path) -> OpenCluster:
    """Return a function that runs a broker with content, in a directory of this name."""

    @contextlib.asynccontextmanager
    async def opened(name: str = "data") -> AsyncIterator[Collector]:
        directory = tmp_path / name
        directory.mkdir()
        async with running(directory, settings=ONE_NODE) as server:
            host, port = server.address
            async with collecting(f"{host}:{port}") as collector:
                await fill(collector)
                yield collector

    return opened
