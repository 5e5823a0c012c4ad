"""Large batches are read one at a time by the whole console, and nothing of them is lost."""

from __future__ import annotations

import asyncio
import contextlib
import csv
import gc
import io
import json
import weakref
from typing import Any

import pytest

from tests.support.brokers.collectors import collecting
from tests.support.brokers.servers import ONE_NODE, running
from wirebroker.client.errors import ClientError
from wirebroker.client.topics.topics import create_topics
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import ErrorCode
from wirebroker.codecs.records.batch import build_batch
from wirebroker.codecs.records.codec import Codec
from wirebroker.console.records.downloads import CutDownloadError, download
from wirebroker.console.records.leader_fetches import LeaderFetcher
from wirebroker.console.records.pages import read_page, read_record
from wirebroker.console.records.queries import ReadQuery, SearchQuery
from wirebroker.console.records.search import search
from wirebroker.console.records.tail import TailLosses, tail

TOPIC = "orders"
LARGE = 2 << 20
SETTINGS = {"message.max.bytes": "30000000"}
# Of a large record, compressed or not, and of many small ones.
BATCHES = {
    "a large batch": ([b"a" * LARGE], Codec.NONE),
    "a batch that decompresses to a large one": ([b"b" * LARGE], Codec.ZSTD),
    "many records, compressed": ([b"%06d" % number * 50 for number in range(4000)], Codec.ZSTD),
    "many records": ([b"%06d" % number * 100 for number in range(4000)], Codec.NONE),
}


@contextlib.asynccontextmanager
async def cluster(directory, *, partitions: int = 1):
    async with running(directory, settings=ONE_NODE | SETTINGS) as server:
        host, port = server.address
        async with collecting(f"{host}:{port}") as collector:
            await create_topics(collector.client, {TOPIC: partitions}, configs={})
            yield collector


async def write(collector, values, codec, *, partition: int = 0) -> None:
    records = [(None, value, ()) for value in values]
    await produce(collector, build_batch(records, timestamp_ms=1000, codec=codec), partition)


async def produce(collector, batch: bytearray, partition: int = 0) -> None:
    data = [{"index": partition, "records": batch}]
    topic_data = [{"name": TOPIC, "partition_data": data}]
    body = {"acks": -1, "timeout_ms": 5000, "topic_data": topic_data}
    written = await collector.client.request_of(1, ApiKey.PRODUCE, body, at_most=12)
    assert written.responses[0].partition_responses[0].error_code == 0


async def write_all(collector, *, partition: int = 0) -> list[bytes]:
    values: list[bytes] = []
    for written, codec in BATCHES.values():
        for batch in (written, [b"small"]):
            await write(collector, batch, codec, partition=partition)
            values += batch
    return values


async def downloaded(collector, form: str = "jsonl", **query) -> bytes:
    chunks = download(collector, SearchQuery(TOPIC, **query), form)
    return b"".join([chunk async for chunk in chunks])


async def test_a_download_has_all_records_in_order(tmp_path):
    async with cluster(tmp_path) as c:
        values = [value.decode() for value in await write_all(c)]
        lines = (await downloaded(c)).splitlines()
        assert [json.loads(line)["value"] for line in lines] == values
        csv.field_size_limit(LARGE + 1)
        rows = list(csv.DictReader(io.StringIO((await downloaded(c, "csv")).decode(), newline="")))
        assert [row["value"] for row in rows] == values


async def test_downloads_of_several_partitions_take_turns(tmp_path):
    async with cluster(tmp_path, partitions=3) as c:
        written = [await write_all(c, partition=partition) for partition in range(3)]
        for lines in await asyncio.gather(*(downloaded(c) for _ in range(3))):
            rows = [json.loads(line) for line in lines.splitlines()]
            for partition, values in enumerate(written):
                offsets = [row["offset"] for row in rows if row["partition"] == partition]
                assert offsets == list(range(len(values)))


async def test_a_slow_reader_does_not_keep_the_turn(tmp_path):
    async with cluster(tmp_path) as c:
        values = await write_all(c)
        slow = download(c, SearchQuery(TOPIC), "jsonl")
        hits = search(c, SearchQuery(TOPIC, limit=1000), lambda _: None)
        assert await anext(slow) == b""
        first, hit = await anext(slow), await anext(hits)
        assert hit.value == values[0][:512]
        assert len((await downloaded(c)).splitlines()) == len(values)
        await hits.aclose()
        rest = [chunk async for chunk in slow]
        assert len(b"".join([first, *rest]).splitlines()) == len(values)


async def test_a_search_finds_records_in_all_batches(tmp_path):
    async with cluster(tmp_path) as c:
        values = await write_all(c)
        progress: list = []
        for text in ("aaaa", "bbbb", "003999", "small"):
            hits = search(c, SearchQuery(TOPIC, text=text), progress.append)
            offsets = [record.offset async for record in hits]
            expected = [at for at, value in enumerate(values) if text.encode() in value]
            assert offsets == expected[:100], text
        assert progress[-1].notes == ()
        assert progress[-1].scanned == len(values)


async def test_a_search_goes_on_in_a_batch_with_more_hits_than_a_list(tmp_path):
    async with cluster(tmp_path) as c:
        values, codec = BATCHES["many records, compressed"]
        await write(c, values, codec)
        hits = search(c, SearchQuery(TOPIC, limit=1000), lambda _: None)
        found = [(record.offset, record.value) async for record in hits]
        assert found == [(offset, values[offset][:512]) for offset in range(1000)]


async def test_pages_have_the_records_of_large_batches(tmp_path):
    async with cluster(tmp_path) as c:
        values = await write_all(c)
        page = await read_page(c, ReadQuery(TOPIC, start="start", limit=4))
        assert [record.offset for record in page.records] == [0, 1, 2, 3]
        page = await read_page(c, ReadQuery(TOPIC, start="end", limit=500))
        assert page.notes == ()
        offsets = [record.offset for record in page.records]
        assert offsets == list(range(len(values) - 500, len(values)))[::-1]
        whole = await read_record(c, TOPIC, 0, 0)
        assert whole is not None
        assert (whole.value_length, whole.is_cut) == (LARGE, True)


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.ZSTD])
async def test_a_download_ends_at_a_batch_that_is_skipped(tmp_path, codec):
    async with cluster(tmp_path) as c:
        await write(c, [b"before"], Codec.NONE)
        await write(c, [bytes(17 << 20)], codec)
        await write(c, [b"after"], Codec.NONE)
        with pytest.raises(CutDownloadError, match="offset 1 of orders-0 has more than 16 MiB"):
            await downloaded(c)
        progress: list = []
        hits = search(c, SearchQuery(TOPIC), progress.append)
        assert [record.value async for record in hits] == [b"before", b"after"]
        assert "has more than 16 MiB" in progress[-1].notes[0]


async def test_a_batch_that_is_too_large_for_any_connection_is_an_error(tmp_path, monkeypatch):
    async with cluster(tmp_path) as c:
        await write(c, [b"a" * LARGE], Codec.NONE)
        connections = c.record_connections
        monkeypatch.setattr(type(connections), "large", type(connections).small)
        message = "orders has a batch that is too large for the console.*wirebroker consume"
        with pytest.raises(ClientError, match=message):
            await downloaded(c)
        with pytest.raises(ClientError, match=message):
            await read_page(c, ReadQuery(TOPIC, start="start"))


async def test_large_batches_wait_for_the_turn(tmp_path):
    async with cluster(tmp_path) as c:
        values = await write_all(c)
        async with c.turn:
            chunks = download(c, SearchQuery(TOPIC), "jsonl")
            assert await anext(chunks) == b""
            waiting = asyncio.ensure_future(anext(chunks))
            page = asyncio.create_task(read_page(c, ReadQuery(TOPIC, start="start")))
            small = await read_page(c, ReadQuery(TOPIC, start="end", limit=1))
            assert [record.value for record in small.records] == [b"small"]
            assert [work.done() for work in (waiting, page)] == [False, False]
        lines = [await waiting, *[chunk async for chunk in chunks]]
        assert len(b"".join(lines).splitlines()) == len(values)
        assert len((await page).records) == 50
        assert not c.turn.locked()


async def test_a_tail_goes_on_after_a_large_batch(tmp_path):
    async with cluster(tmp_path, partitions=2) as c:
        losses = TailLosses()
        records = tail(c, ReadQuery(TOPIC, positions={0: 0, 1: 0}), None, losses)
        for number in range(3):
            waiting = asyncio.ensure_future(anext(records))
            await write(c, [b"a" * LARGE], Codec.NONE)
            assert (await waiting).value_length == LARGE
            waiting = asyncio.ensure_future(anext(records))
            await write(c, [b"%d" % number], Codec.NONE, partition=number % 2)
            assert (await waiting).value == b"%d" % number
        waiting = asyncio.ensure_future(anext(records))
        await write(c, [bytes(17 << 20)], Codec.ZSTD)
        await write(c, [b"after"], Codec.NONE)
        assert (await waiting).value == b"after"
        assert "has more than 16 MiB" in losses.notes[0]
        await records.aclose()


async def test_a_tail_keeps_the_newest_records_of_a_large_batch(tmp_path):
    async with cluster(tmp_path) as c:
        values, codec = BATCHES["many records, compressed"]
        await write(c, values, codec)
        losses = TailLosses()
        records = tail(c, ReadQuery(TOPIC, positions={0: 0}), None, losses)
        offsets = [(await anext(records)).offset for _ in range(500)]
        assert offsets == list(range(len(values) - 500, len(values)))
        assert losses.skipped == len(values) - 500
        await records.aclose()


async def test_a_record_with_very_many_headers_is_not_read(tmp_path):
    async with cluster(tmp_path) as c:
        batch = build_batch([(None, b"", [("", None)] * 60_000)], timestamp_ms=1, codec=Codec.ZSTD)
        await produce(c, batch)
        page = await read_page(c, ReadQuery(TOPIC, start="start"))
        assert page.records == ()
        assert "60000 headers, more than 50000" in page.notes[0]
        with pytest.raises(CutDownloadError, match="60000 headers"):
            await downloaded(c)


async def test_the_response_is_not_kept_while_a_reader_is_slow(tmp_path, monkeypatch):
    async with cluster(tmp_path) as c:
        for _ in range(3):
            await write(c, [b"a" * LARGE], Codec.NONE)
        frames: list[weakref.ref[Any]] = []
        fetch = LeaderFetcher.fetch_large

        async def noted(*arguments: Any) -> Any:
            rows = await fetch(*arguments)
            frames.extend(weakref.ref(row.records.obj) for _, row in rows or ())
            return rows

        monkeypatch.setattr(LeaderFetcher, "fetch_large", noted)
        chunks = download(c, SearchQuery(TOPIC), "jsonl")
        assert await anext(chunks) == b""
        assert await anext(chunks)
        async with c.turn:
            gc.collect()
            assert frames
            assert [frame for frame in frames if frame() is not None] == []
        await chunks.aclose()


async def test_an_error_of_another_partition_ends_a_search_beside_large_batches(
    tmp_path, monkeypatch
):
    async with cluster(tmp_path, partitions=2) as c:
        await write(c, [b"a" * LARGE], Codec.NONE)
        await write(c, [b"other"], Codec.NONE, partition=1)
        fetch = LeaderFetcher.fetch_large

        async def failing(*arguments: Any) -> Any:
            rows = await fetch(*arguments) or ()
            for place, row in rows:
                if place.partition == 1:
                    row.error_code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
            return rows

        monkeypatch.setattr(LeaderFetcher, "fetch_large", failing)
        async with asyncio.timeout(20):
            with pytest.raises(ClientError, match="orders-1 cannot be read"):
                await downloaded(c)
