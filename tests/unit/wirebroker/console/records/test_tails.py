"""Live tails of topics on a broker."""

from __future__ import annotations

import asyncio
import contextlib

from tests.support.brokers.collectors import collecting
from tests.support.brokers.servers import ONE_NODE, running
from wirebroker.client.records.producing import TopicWriter
from wirebroker.client.topics.topics import create_topics
from wirebroker.codecs.records.codec import Codec
from wirebroker.console.records.queries import ReadQuery, SearchQuery
from wirebroker.console.records.record_filter import filter_of
from wirebroker.console.records.tail import tail

TOPIC = "orders"


@contextlib.asynccontextmanager
async def cluster(directory):
    async with running(directory, settings=ONE_NODE) as server:
        host, port = server.address
        async with collecting(f"{host}:{port}") as collector:
            await create_topics(collector.client, {TOPIC: 2}, configs={})
            yield collector


async def write(collector, partition: int, *values: bytes, time_ms: int) -> None:
    writer = TopicWriter(collector.client, TOPIC, Codec.NONE)
    await writer.open()
    records = [(partition, (b"key", value, [("trace", value)])) for value in values]
    await writer.write(records, timestamp_ms=time_ms)


def numbered(first: int, last: int) -> list[bytes]:
    return [b"%d" % number for number in range(first, last)]


async def test_a_tail_yields_new_records(tmp_path):
    async with cluster(tmp_path) as c:
        await write(c, 0, b"old", time_ms=1000)
        records = tail(c, ReadQuery(TOPIC, positions={1: 0}))
        waiting = asyncio.create_task(anext(records))
        await write(c, 1, b"new", time_ms=2000)
        assert (await waiting).value == b"new"
        waiting = asyncio.create_task(anext(records))
        await write(c, 0, b"newer", time_ms=3000)
        assert (await waiting).value == b"newer"
        await records.aclose()


async def test_a_tail_yields_only_matching_records(tmp_path):
    async with cluster(tmp_path) as c:
        query = ReadQuery(TOPIC, positions={0: 0, 1: 0})
        filters = filter_of(SearchQuery(TOPIC, text="7", where="value", header_name="trace"))
        records = tail(c, query, filters)
        waiting = asyncio.create_task(anext(records))
        await write(c, 0, *numbered(0, 7), time_ms=1000)
        await write(c, 1, *numbered(10, 20), time_ms=1000)
        assert (await waiting).value == b"17"
        waiting = asyncio.create_task(anext(records))
        await write(c, 1, *numbered(20, 27), time_ms=2000)
        await write(c, 1, b"last 7", time_ms=2000)
        assert (await waiting).value == b"last 7"
        await records.aclose()
