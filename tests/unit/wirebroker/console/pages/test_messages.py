"""The messages page: its form, pages of records, one record, downloads."""

from __future__ import annotations

import re
import threading

import pytest

from tests.support.console import fake_cluster as fake
from tests.support.console.found_records import chunks_of, found_record
from tests.support.console.requests import Streaming
from tests.unit.wirebroker.console.pages.conftest import Site
from wirebroker.client.errors import ClientError
from wirebroker.console.pages import messages
from wirebroker.console.pages.message_query import position_text
from wirebroker.console.records.downloads import CutDownloadError
from wirebroker.console.records.queries import RecordPage, SearchQuery
from wirebroker.console.view.record_rows import byte_views

URL = "/c/dev/topic/messages?name=orders"


async def test_records_are_shown_with_a_link_to_the_next_page(site: Site, answers):
    found = RecordPage((found_record(7, value=b'{"a": 1}'),), {0: 7, 1: 12})
    answers(messages, "read_page", found)
    page = await site.page(URL)
    assert "{&#34;a&#34;: 1}" in page
    assert "position=0%3A7%2C1%3A12" in page
    assert "Older records" in page


async def test_the_form_becomes_a_query(site: Site, monkeypatch):
    queries = []

    async def read_page(_collector, query):
        queries.append(query)
        return RecordPage((), {})

    monkeypatch.setattr(messages, "read_page", read_page)
    page = await site.page(f"{URL}&start=offset&offset=12&partition=2&limit=20&position=2:40")
    (query,) = queries
    assert (query.start, query.offset, query.partitions, query.limit) == ("offset", 12, (2,), 20)
    assert query.positions == {2: 40}
    assert "There are no records here." in page


async def test_positions_of_many_partitions_are_read_whole(site: Site, monkeypatch):
    queries = []

    async def read_page(_collector, query):
        queries.append(query)
        return RecordPage((), {})

    monkeypatch.setattr(messages, "read_page", read_page)
    positions = {partition: 1_000_000 + partition for partition in range(500)}
    await site.page(f"{URL}&position={position_text(positions)}")
    assert queries[0].positions == positions


async def test_omitted_headers_are_counted(site: Site, answers):
    record = found_record(7, header_count=120)
    answers(messages, "read_page", RecordPage((record,), {}))
    assert "120 headers" in await site.page(URL)
    answers(messages, "read_record", record)
    page = await site.page("/c/dev/topic/record?name=orders&partition=0&offset=7")
    assert "120, only the first 1 are shown" in page


@pytest.mark.parametrize(
    ("parameters", "fault"),
    [
        ("partition=7", "There is no partition 7: the topic has 3, from 0 on."),
        ("partition=-1", "The partition must be a number from 0 on"),
        ("start=offset&offset=x", "The offset must be a number from 0 on"),
        ("start=time&time=noon", "is not a time"),
        ("start=time", "A time is missing"),
        ("text=a&until=never", "is not a time"),
        ("until=never", "is not a time"),
        ("live=1&until=2026-11-22", "A live tail has no end: leave Until empty."),
        ("live=1&jsonpath=%24.a%5B", "$.a["),
        ("jsonpath=%24.a%5B", "$.a["),
        ("position=1:x", "An offset must be a number"),
    ],
)
async def test_a_fault_in_the_form_is_named_and_the_form_kept(site: Site, parameters, fault):
    page = await site.page(f"{URL}&{parameters}")
    assert fault in page
    assert 'class="search"' in page
    assert "hx-sse:connect" not in page


async def test_a_filter_starts_a_search(site: Site):
    page = await site.page(f"{URL}&text=anna&start=end")
    assert 'hx-sse:connect="/c/dev/topic/search?name=orders&amp;text=anna' in page
    assert 'value="anna"' in page
    assert ">Stop</button>" in page


async def test_the_live_tail_is_a_stream(site: Site):
    page = await site.page(f"{URL}&live=1")
    assert 'hx-sse:connect="/c/dev/topic/tail?name=orders&amp;live=1"' in page


async def test_a_topic_that_cannot_be_read_is_explained(site: Site, answers):
    answers(messages, "read_page", ClientError("this user may not read topic orders"))
    assert "This user may not read topic orders." in await site.page(URL)


async def test_records_of_all_kinds_are_told_apart(site: Site, answers):
    records = (
        found_record(1, key=None, value=None),
        found_record(2, control="abort"),
        found_record(3, is_transactional=True, is_aborted=True),
        found_record(4, is_transactional=True),
    )
    answers(messages, "read_page", RecordPage(records, {}))
    page = await site.page(URL)
    for mark in ("no key", ">null<", ">control<", ">abort<", ">aborted<", ">transaction<"):
        assert mark in page


async def test_a_record_is_shown_in_all_forms(site: Site, answers):
    answers(messages, "read_record", found_record(value='{"name": "Émile"}'.encode()))
    page = await site.page("/c/dev/topic/record?name=orders&partition=0&offset=1")
    assert "Value as text" in page
    assert "Value as bytes" in page
    assert "Émile" in page
    assert "7b 22 6e 61" in page
    part = await site.get(
        "/c/dev/topic/record?name=orders&partition=0&offset=1", {"HX-Request": "true"}
    )
    assert "<html" not in part.text
    assert "Value as text" in part.text


async def test_a_record_names_the_groups_that_have_committed_past_it(answers):
    groups = [
        fake.group("done", lag=40),
        fake.group("late", lag=95),
        fake.group("shared", lag=95, kind="share"),
        fake.group("elsewhere", topic_name="payments"),
    ]
    names = tuple(group.name for group in groups)
    site = Site(fake.snapshot(topics=[fake.topic("orders", groups=names)], groups=groups))
    answers(messages, "read_record", found_record(5))
    address = "/c/dev/topic/record?name=orders&partition=0&offset=5"
    page = await site.page(address)
    rows = dict(
        re.findall(r'group\?name=(\w+)".*?<span class="badge \w+">([\w ]+)<', page, re.DOTALL)
    )
    assert rows == {
        "done": "passed",
        "late": "not committed yet",
        "shared": "unknown",
        "elsewhere": "no offset",
    }
    heading = "Groups with offsets in the topic"
    assert heading in page
    part = await site.get(address, {"HX-Request": "true"})
    assert heading not in part.text


@pytest.mark.parametrize("query", ["", "&text=anna", "&committed=1"])
async def test_a_tail_says_what_it_waits_for(site: Site, query: str):
    page = await site.page(f"{URL}&live=1{query}")
    waiting = "Waiting for new records that match." if query else "Waiting for new records."
    assert waiting in page


async def test_the_groups_of_a_record_are_in_pages(answers):
    groups = [fake.group(f"g{number:02}") for number in range(60)]
    names = tuple(group.name for group in groups)
    site = Site(fake.snapshot(topics=[fake.topic("orders", groups=names)], groups=groups))
    answers(messages, "read_record", found_record(5))
    page = await site.page("/c/dev/topic/record?name=orders&partition=0&offset=5&page=2")
    assert "51 to 60 of 60 groups" in page
    assert "name=g59" in page
    assert "name=g01" not in page


async def test_the_views_of_a_record_are_made_in_a_thread(site: Site, answers, monkeypatch):
    threads = []

    def views(content, length):
        threads.append(threading.current_thread())
        return byte_views(content, length)

    monkeypatch.setattr(messages, "byte_views", views)
    answers(messages, "read_record", found_record())
    await site.page("/c/dev/topic/record?name=orders&partition=0&offset=1")
    assert len(threads) == 2
    assert threading.main_thread() not in threads


async def test_a_record_that_is_gone_is_explained(site: Site, answers):
    answers(messages, "read_record", None)
    page = await site.page("/c/dev/topic/record?name=orders&partition=0&offset=1")
    assert "There is no record with this offset" in page


async def test_a_record_needs_its_place(site: Site):
    reply = await site.get("/c/dev/topic/record?name=orders&partition=0")
    assert reply.status == 400


async def test_a_download_is_streamed_with_its_filters(site: Site, monkeypatch):
    queries: list[SearchQuery] = []

    def download(_collector, query, form):
        queries.append(query)
        return chunks_of(form.encode(), b" ", b"rest")

    monkeypatch.setattr(messages, "downloaded", download)
    reply = await site.get("/c/dev/topic/download?name=orders&text=anna&partition=1&form=jsonl")
    assert reply.body == b"jsonl rest"
    assert reply.headers["content-type"] == "application/x-ndjson"
    assert reply.headers["content-disposition"] == 'attachment; filename="orders.jsonl"'
    assert (queries[0].text, queries[0].partitions) == ("anna", (1,))


async def test_a_download_that_cannot_go_on_is_not_ended_as_complete(site: Site, monkeypatch):
    async def failing(*_):
        yield b"line\n"
        raise ClientError("no leader")

    monkeypatch.setattr(messages, "downloaded", failing)
    stream = Streaming(site.app, "/c/dev/topic/download?name=orders&form=jsonl")
    with pytest.raises(CutDownloadError, match="of orders ended early: no leader"):
        await stream.task
    assert stream.chunks == [b"line\n"]


async def test_a_download_that_cannot_begin_says_why(site: Site, monkeypatch):
    async def refused(*_):
        raise ClientError("this user may not read topic orders")
        yield b""

    monkeypatch.setattr(messages, "downloaded", refused)
    reply = await site.get("/c/dev/topic/download?name=orders&form=csv")
    assert (reply.status, reply.text) == (502, "this user may not read topic orders\n")


@pytest.mark.parametrize("parameters", ["form=xml", "form=csv&partition=9", "form=csv&until=x"])
async def test_other_downloads_are_refused(site: Site, parameters):
    reply = await site.get(f"/c/dev/topic/download?name=orders&{parameters}")
    assert reply.status == 400
