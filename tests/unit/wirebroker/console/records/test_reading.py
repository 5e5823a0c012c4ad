"""Pages, searches and downloads of topics on a broker."""

from __future__ import annotations

import contextlib
import json

import pytest

from tests.support.brokers.collectors import collecting
from tests.support.brokers.servers import ONE_NODE, running
from tests.support.protocol.transactional_producer import TransactionalProducer
from wirebroker.client.errors import ClientError
from wirebroker.client.records.producing import TopicWriter
from wirebroker.client.topics.topics import create_topics
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.records.batch import build_batch
from wirebroker.codecs.records.codec import Codec
from wirebroker.console.records.downloads import download
from wirebroker.console.records.pages import read_page, read_record
from wirebroker.console.records.queries import ReadQuery, SearchQuery
from wirebroker.console.records.search import search

TOPIC = "orders"


@contextlib.asynccontextmanager
async def cluster(directory, *, partitions: int = 2):
    async with running(directory, settings=ONE_NODE) as server:
        host, port = server.address
        async with collecting(f"{host}:{port}") as collector:
            await create_topics(collector.client, {TOPIC: partitions}, configs={})
            yield collector


async def write(collector, partition: int, *values: bytes, time_ms: int, codec=Codec.NONE) -> None:
    writer = TopicWriter(collector.client, TOPIC, codec)
    await writer.open()
    records = [(partition, (b"key", value, [("trace", value)])) for value in values]
    await writer.write(records, timestamp_ms=time_ms)


def numbered(first: int, last: int) -> list[bytes]:
    return [b"%d" % number for number in range(first, last)]


def shown(page) -> list[tuple[int, int]]:
    return [(record.partition, record.offset) for record in page.records]


async def found(collector, query) -> tuple[list[bytes | None], list]:
    progress: list = []
    records = search(collector, query, progress.append)
    return [record.value async for record in records], progress


# --- pages ---


async def test_pages_follow_the_time_across_partitions(tmp_path):
    async with cluster(tmp_path) as c:
        await write(c, 0, b"a", b"b", time_ms=1000)
        await write(c, 1, b"c", b"d", time_ms=2000)
        await write(c, 0, b"e", time_ms=3000)
        query = ReadQuery(TOPIC, start="start", limit=3)
        page = await read_page(c, query)
        assert shown(page) == [(0, 0), (0, 1), (1, 0)]
        assert page.next == {0: 2, 1: 1}
        page = await read_page(c, query._replace(positions=page.next))
        assert shown(page) == [(1, 1), (0, 2)]
        assert page.next == {}


async def test_pages_from_the_end_are_newest_first(tmp_path):
    async with cluster(tmp_path) as c:
        await write(c, 0, *numbered(0, 10), time_ms=1000)
        await write(c, 1, *numbered(0, 2), time_ms=2000)
        query = ReadQuery(TOPIC, limit=5)
        page = await read_page(c, query)
        assert shown(page) == [(1, 1), (1, 0), (0, 9), (0, 8), (0, 7)]
        assert page.next == {0: 7}
        rest = await read_page(c, query._replace(positions=page.next, limit=50))
        assert shown(rest) == [(0, offset) for offset in range(6, -1, -1)]
        assert rest.next == {}


async def test_pages_start_at_offsets_and_times(tmp_path):
    async with cluster(tmp_path) as c:
        for number in range(5):
            await write(c, 0, b"%d" % number, time_ms=1000 * number)
        by_offset = ReadQuery(TOPIC, (0,), "offset", 3)
        assert shown(await read_page(c, by_offset)) == [(0, 3), (0, 4)]
        assert shown(await read_page(c, by_offset._replace(offset=99))) == []
        by_time = ReadQuery(TOPIC, start="time", time_ms=2500)
        assert shown(await read_page(c, by_time)) == [(0, 3), (0, 4)]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        (ReadQuery(TOPIC, limit=2, until_ms=2500), [(1, 0), (0, 1)]),
        (ReadQuery(TOPIC, start="start", until_ms=1000), [(0, 0), (0, 1)]),
        (ReadQuery(TOPIC, start="time", time_ms=2000, until_ms=2000), [(1, 0)]),
        (ReadQuery(TOPIC, start="time", time_ms=2500, until_ms=2000), []),
        (ReadQuery(TOPIC, (0,), "offset", 1, until_ms=9999), [(0, 1), (0, 2), (0, 3)]),
        (ReadQuery(TOPIC, start="start", until_ms=1000, positions={0: 1, 1: 0}), [(0, 1)]),
    ],
)
async def test_pages_end_at_a_time(tmp_path, query, expected):
    async with cluster(tmp_path) as c:
        await write(c, 0, b"0", b"1", time_ms=1000)
        await write(c, 1, b"0", time_ms=2000)
        await write(c, 0, b"2", b"3", time_ms=3000)
        page = await read_page(c, query)
        assert shown(page) == expected


async def test_timestamps_that_fall_do_not_change_the_order_of_a_partition(tmp_path):
    async with cluster(tmp_path) as c:
        await write(c, 0, b"late", time_ms=9000)
        await write(c, 0, b"early", time_ms=1000)
        await write(c, 1, b"middle", time_ms=5000)
        page = await read_page(c, ReadQuery(TOPIC, start="start"))
        assert shown(page) == [(1, 0), (0, 0), (0, 1)]
        page = await read_page(c, ReadQuery(TOPIC, start="end", limit=2))
        assert shown(page) == [(1, 0), (0, 1)]
        assert page.next == {0: 1}


async def test_a_page_ends_at_the_first_record_with_a_later_timestamp(tmp_path):
    async with cluster(tmp_path) as c:
        for time_ms in (1000, 9000, 2000):
            await write(c, 0, b"value", time_ms=time_ms)
        for start in ("start", "end"):
            page = await read_page(c, ReadQuery(TOPIC, start=start, until_ms=3000))
            assert shown(page) == [(0, 0)]
        values, _ = await found(c, SearchQuery(TOPIC, text="value", until_ms=3000))
        assert values == [b"value"]


async def test_long_values_are_cut_but_one_record_is_whole(tmp_path):
    async with cluster(tmp_path) as c:
        await write(c, 0, b"x" * 1000, time_ms=1000)
        (record,) = (await read_page(c, ReadQuery(TOPIC, max_value_bytes=10))).records
        assert (record.value, record.value_length, record.is_cut) == (b"x" * 10, 1000, True)
        assert (list(record.headers), record.header_count) == ([], 1)
        whole = await read_record(c, TOPIC, 0, 0)
        assert whole is not None
        assert (whole.value, whole.is_cut, whole.key) == (b"x" * 1000, False, b"key")
        assert await read_record(c, TOPIC, 0, 1) is None


async def test_transactions_and_their_markers_are_shown(tmp_path):
    async with cluster(tmp_path) as c:

        async def ask(key, version, body):
            return await c.client.request_of(1, key, body, at_most=version)

        producer = TransactionalProducer("app")
        await producer.begin(ask)
        for is_commit in (True, False):
            for request in producer.appending({(TOPIC, 0): [b"one", b"two"]}):
                await ask(*request)
            producer.ended(await ask(*producer.end(is_commit=is_commit)))
        for request in producer.appending({(TOPIC, 0): [b"open"]}):
            await ask(*request)
        query = ReadQuery(TOPIC, start="start")
        page = await read_page(c, query)
        rows = [(r.offset, r.control, r.is_transactional, r.is_aborted) for r in page.records]
        assert rows == [
            (0, None, True, False),
            (1, None, True, False),
            (2, "commit", True, False),
            (3, None, True, True),
            (4, None, True, True),
            (5, "abort", True, False),
            (6, None, True, False),
        ]
        committed = await read_page(c, query._replace(is_committed=True, is_control=False))
        assert shown(committed) == [(0, 0), (0, 1)]
        backward = await read_page(c, query._replace(start="end", is_control=False, limit=3))
        assert shown(backward) == [(0, 6), (0, 4), (0, 3)]
        assert backward.next == {0: 3}


@pytest.mark.parametrize("query", [ReadQuery(TOPIC, limit=0), ReadQuery(TOPIC, start="middle")])
async def test_an_invalid_page_is_refused(tmp_path, query):
    async with cluster(tmp_path) as c:
        with pytest.raises(ValueError, match="a page has 1 to 500 records from"):
            await read_page(c, query)


async def test_missing_topics_and_partitions_are_errors(tmp_path):
    async with cluster(tmp_path) as c:
        with pytest.raises(ClientError, match="there is no topic order; did you mean orders"):
            await read_page(c, ReadQuery("order"))
        with pytest.raises(ClientError, match="there is no partition 7: orders has 2"):
            await read_page(c, ReadQuery(TOPIC, (7,)))


# --- searches ---


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.GZIP, Codec.ZSTD])
async def test_a_search_reads_all_partitions_and_reports_progress(tmp_path, codec):
    async with cluster(tmp_path) as c:
        for partition in (0, 1):
            await write(c, partition, *numbered(0, 2000), time_ms=1000, codec=codec)
        values, progress = await found(c, SearchQuery(TOPIC, text="1234", where="value"))
        assert values == [b"1234", b"1234"]
        last = progress[-1]
        assert (last.scanned, last.total, last.hits, last.is_done) == (4000, 4000, 2, True)
        assert last.bytes > 0
        assert last.notes == ()


async def test_a_search_ends_at_its_limit_and_its_time(tmp_path):
    async with cluster(tmp_path) as c:
        for number in range(6):
            await write(c, 0, *numbered(100 * number, 100 * number + 100), time_ms=1000 * number)
        values, progress = await found(c, SearchQuery(TOPIC, text="key", limit=3))
        assert values == [b"0", b"1", b"2"]
        assert progress[-1].hits == 3
        window = SearchQuery(TOPIC, start="time", time_ms=2000, until_ms=3000, limit=1000)
        values, progress = await found(c, window)
        assert values == numbered(200, 400)
        assert progress[-1].total == 200
        values, _ = await found(c, SearchQuery(TOPIC, (0, 1), "offset", 598))
        assert values == [b"598", b"599"]


async def test_a_search_can_be_stopped(tmp_path):
    async with cluster(tmp_path) as c:
        await write(c, 0, *numbered(0, 5000), time_ms=1000)
        progress: list = []
        records = search(c, SearchQuery(TOPIC), progress.append)
        first = await anext(records)
        await records.aclose()
        assert first.value == b"0"
        assert progress[-1].is_done
        assert progress[-1].hits == 1


async def test_a_batch_that_is_too_large_is_skipped_with_a_note(tmp_path):
    async with cluster(tmp_path) as c:
        large = build_batch([(None, bytes(17 << 20), ())], timestamp_ms=1, codec=Codec.ZSTD)
        data = [{"index": 0, "records": large}]
        body = {
            "acks": -1,
            "timeout_ms": 1000,
            "topic_data": [{"name": TOPIC, "partition_data": data}],
        }
        await c.client.request_of(1, ApiKey.PRODUCE, body, at_most=12)
        await write(c, 0, b"after", time_ms=1000)
        values, progress = await found(c, SearchQuery(TOPIC))
        assert values == [b"after"]
        (note,) = progress[-1].notes
        assert "the batch at offset 0 of orders-0 has more than 16 MiB" in note
        page = await read_page(c, ReadQuery(TOPIC, start="start"))
        assert shown(page) == [(0, 1)]
        assert page.notes == (note,)


# --- downloads ---


async def test_a_download_has_lines_of_json(tmp_path):
    async with cluster(tmp_path) as c:
        await write(c, 0, b"one", b"\xff", time_ms=1000)
        chunks = [chunk async for chunk in download(c, SearchQuery(TOPIC), "jsonl")]
        first, second = [json.loads(line) for line in b"".join(chunks).splitlines()]
        assert first == {
            "topic": TOPIC,
            "partition": 0,
            "offset": 0,
            "timestamp": 1000,
            "key": "key",
            "value": "one",
            "headers": [{"key": "trace", "value": "one"}],
        }
        assert second["value"] == {"base64": "/w=="}


async def test_a_download_as_csv_has_no_formulas(tmp_path):
    async with cluster(tmp_path) as c:
        await write(c, 0, b"=1+1", b"-5", b'a "quoted", text', b"@x", time_ms=1000)
        chunks = [chunk async for chunk in download(c, SearchQuery(TOPIC, limit=1), "csv")]
        lines = b"".join(chunks).decode().splitlines()
        assert lines[0] == "topic,partition,offset,timestamp,key,value,headers"
        assert lines[1].startswith("orders,0,0,1970-01-01T00:00:01.000+00:00,key,'=1+1,")
        assert ",key,-5," in lines[2]
        assert ',key,"a ""quoted"", text",' in lines[3]
        assert ",key,'@x," in lines[4]


async def test_another_form_of_download_is_refused(tmp_path):
    async with cluster(tmp_path) as c:
        with pytest.raises(ValueError, match="jsonl or csv"):
            await anext(download(c, SearchQuery(TOPIC), "xml"))
