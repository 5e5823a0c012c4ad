"""Server-sent events: snapshots, searches and tails; they end with their browser."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from tests.support.console.found_records import found_record
from tests.support.console.requests import Streaming
from wirebroker.base.clock import next_turn
from wirebroker.client.errors import ClientError
from wirebroker.console.pages import streams
from wirebroker.console.records.queries import SearchProgress
from wirebroker.console.web.stream_limit import STREAM_LIMITS

if TYPE_CHECKING:
    from tests.unit.wirebroker.console.pages.conftest import Site


def progress_of(scanned: int, *, is_done: bool = False) -> SearchProgress:
    return SearchProgress(scanned, 300, 1, 1, 0.5, 600.0, is_done)


class Source:
    """Records that a test gives one by one, and whether they are still read."""

    def __init__(self) -> None:
        self.given: asyncio.Queue[object] = asyncio.Queue()
        self.is_closed = asyncio.Event()
        self.report: Any = None

    def open(self, _collector, _query, report=None, _losses=None):
        self.report = report
        return self._records()

    async def _records(self):
        try:
            while (record := await self.given.get()) is not None:
                if isinstance(record, Exception):
                    raise record
                yield record
        finally:
            self.is_closed.set()


async def test_an_event_announces_each_newer_snapshot(site: Site):
    (collector,) = site.collectors
    stream = Streaming(site.app, "/c/dev/events")
    await stream.read_until("event: connected\ndata: 1\n\n")
    assert stream.headers["content-type"].startswith("text/event-stream")
    assert collector.readers == 1
    collector.publish(collector.snapshot._replace(number=5))
    await stream.read_until("event: snapshot\ndata: 5\n\n")
    await stream.leave()
    assert collector.readers == 0


async def test_a_search_streams_hits_progress_and_its_end(site: Site, monkeypatch):
    source = Source()
    monkeypatch.setattr(streams, "searched", source.open)
    stream = Streaming(site.app, "/c/dev/topic/search?name=orders&text=anna")
    source.given.put_nowait(found_record(5, value=b"for anna"))
    assert "data: <li class=" in await stream.read_until("for anna")
    source.report(progress_of(100))
    await stream.read_until("1 hit in 100 of 300 records, 500 ms, 600/s")
    source.report(progress_of(300, is_done=True))
    source.given.put_nowait(None)
    await stream.read_until("Finished: 1 hit")
    await stream.task
    assert b"".join(stream.chunks).endswith(b"event: done\ndata: \n\n")


async def test_a_search_stops_when_the_browser_leaves(site: Site, monkeypatch):
    source = Source()
    monkeypatch.setattr(streams, "searched", source.open)
    stream = Streaming(site.app, "/c/dev/topic/search?name=orders&text=anna")
    source.given.put_nowait(found_record(5))
    await stream.read_until("r-0-5")
    await stream.leave()
    assert source.is_closed.is_set()


async def test_a_failed_search_says_why(site: Site, monkeypatch):
    source = Source()
    monkeypatch.setattr(streams, "searched", source.open)
    stream = Streaming(site.app, "/c/dev/topic/search?name=orders&text=anna")
    source.given.put_nowait(ClientError("the leader of orders-0 is <gone>"))
    await stream.read_until("the leader of orders-0 is &lt;gone&gt;")
    await stream.task


async def test_an_unexpected_error_ends_a_search(site: Site, monkeypatch, caplog):
    source = Source()
    monkeypatch.setattr(streams, "searched", source.open)
    stream = Streaming(site.app, "/c/dev/topic/search?name=orders&text=anna")
    source.given.put_nowait(RuntimeError("a defect"))
    async with asyncio.timeout(5):
        await stream.task
    assert "The console failed to read the records" in b"".join(stream.chunks).decode()
    assert "a defect" in caplog.text


async def test_all_hits_arrive_however_slowly_they_are_read(site: Site, monkeypatch):
    source = Source()
    monkeypatch.setattr(streams, "searched", source.open)
    for offset in range(300):
        source.given.put_nowait(found_record(offset))
    source.given.put_nowait(None)
    stream = Streaming(site.app, "/c/dev/topic/search?name=orders&text=key")
    await stream.task
    text = b"".join(stream.chunks).decode()
    positions = [text.index(f'id="r-0-{offset}"') for offset in range(300)]
    assert positions == sorted(positions)


async def test_a_tail_shows_the_newest_record_first(site: Site, monkeypatch):
    source = Source()
    monkeypatch.setattr(streams, "tailed", source.open)
    for offset in (1, 2):
        source.given.put_nowait(found_record(offset))
    stream = Streaming(site.app, "/c/dev/topic/tail?name=orders&live=1")
    text = await stream.read_until('id="r-0-1"')
    assert text.index('id="r-0-2"') < text.index('id="r-0-1"')
    await stream.leave()
    assert source.is_closed.is_set()


async def test_a_tail_skips_records_that_arrive_faster_than_they_are_read(site: Site, monkeypatch):
    source = Source()
    monkeypatch.setattr(streams, "tailed", source.open)
    for offset in range(200):
        source.given.put_nowait(found_record(offset))
    stream = Streaming(site.app, "/c/dev/topic/tail?name=orders&live=1")
    text = await stream.read_until('id="r-0-199"')
    assert "150 records were skipped" in text
    assert 'id="r-0-149"' not in text
    await stream.leave()


async def test_a_search_with_a_fault_is_refused(site: Site):
    reply = await site.get("/c/dev/topic/search?name=orders&text=a&partition=9")
    assert (reply.status, reply.text.startswith("There is no partition 9")) == (400, True)


async def test_open_searches_are_bounded(site: Site, monkeypatch):
    monkeypatch.setattr(streams, "searched", Source().open)
    url = "/c/dev/topic/search?name=orders&text=a"
    opened = [Streaming(site.app, url) for _ in range(STREAM_LIMITS["search"])]
    await next_turn()
    refused = await site.get(url)
    assert refused.status == 503
    for stream in opened:
        await stream.leave()
    after = Streaming(site.app, url)
    await next_turn()
    assert not after.task.done()
    await after.leave()


async def test_events_are_text_of_one_message():
    assert streams.event("a\nb", name="x") == b"event: x\ndata: a\ndata: b\n\n"
    assert streams.event("data: y\r\rz") == b"data: data: y\ndata: \ndata: z\n\n"


async def test_the_end_that_a_viewer_asked_for_is_a_part_of_the_page(site: Site):
    assert "Stopped." in await site.page("/c/dev/topic/stopped")
