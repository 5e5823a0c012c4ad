"""How much of a record lists keep, and how long a download waits to begin."""

from __future__ import annotations

import contextlib

from tests.support.brokers.collectors import collecting
from tests.support.brokers.servers import ONE_NODE, running
from wirebroker.client.records.producing import TopicWriter
from wirebroker.client.topics.topics import create_topics
from wirebroker.codecs.records.codec import Codec
from wirebroker.console.records.downloads import download
from wirebroker.console.records.pages import read_page, read_record
from wirebroker.console.records.partition_scan import kept_bytes
from wirebroker.console.records.queries import ReadQuery, SearchQuery
from wirebroker.console.records.search import search

TOPIC = "orders"


@contextlib.asynccontextmanager
async def cluster(directory):
    async with running(directory, settings=ONE_NODE) as server:
        host, port = server.address
        async with collecting(f"{host}:{port}") as collector:
            await create_topics(collector.client, {TOPIC: 1}, configs={})
            yield collector


async def write(collector, record) -> None:
    writer = TopicWriter(collector.client, TOPIC, Codec.NONE)
    await writer.open()
    await writer.write([(0, record)], timestamp_ms=1000)


async def test_lists_have_little_of_each_record(tmp_path):
    async with cluster(tmp_path) as c:
        large = b"x" * 5000
        headers = [(f"{number:02d}" * 1000, large) for number in range(120)]
        await write(c, (large, large, headers))
        (listed,) = (await read_page(c, ReadQuery(TOPIC, (0,), limit=1))).records
        (hit,) = [each async for each in search(c, SearchQuery(TOPIC), lambda _: None)]
        for record in (listed, hit):
            assert (record.value, record.value_length, record.is_cut) == (large[:512], 5000, True)
            assert (len(record.headers), record.header_count) == (0, 120)
            assert kept_bytes(record) < 2000
        whole = await read_record(c, TOPIC, 0, 0)
        assert whole is not None
        assert (len(whole.headers), whole.header_count, whole.value) == (100, 120, large)


async def test_a_download_begins_before_the_first_hit(tmp_path):
    async with cluster(tmp_path) as c:
        await write(c, (b"key", b"one", []))
        query = SearchQuery(TOPIC, text="absent")
        assert [chunk async for chunk in download(c, query, "jsonl")] == [b""]
        (head,) = [chunk async for chunk in download(c, query, "csv")]
        assert head.startswith(b"topic,")
