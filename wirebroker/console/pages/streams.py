"""Live parts, as server-sent events: new snapshots, a search, a live tail.

Unnamed messages are HTML that htmx appends to the list of records; parts for other places are
`<hx-partial>`. Named messages are events for the page.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from contextlib import aclosing, suppress
from typing import TYPE_CHECKING, Any, Final

from starlette.responses import PlainTextResponse, StreamingResponse

from wirebroker.base.clock import pause
from wirebroker.client.errors import ClientError
from wirebroker.console.pages.message_query import form_of, search_query, tail_query
from wirebroker.console.pages.page import collector_of, console_of, topic_of
from wirebroker.console.records.search import search as searched
from wirebroker.console.records.tail import TailLosses
from wirebroker.console.records.tail import tail as tailed
from wirebroker.console.view.record_rows import record_row

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from starlette.requests import Request
    from starlette.responses import Response

    from wirebroker.console.records.queries import FoundRecord, SearchProgress

logger = logging.getLogger(__name__)

# Proxies and browsers end connections that are silent for a minute.
_KEEP_ALIVE_S: Final = 15.0
_KEEP_ALIVE: Final = b": still here\n\n"
# Pages refresh at most this often; the collector may publish more snapshots.
_REFRESH_S: Final = 2.0
# A tail shows new records at most this often.
_TAIL_PAUSE_S: Final = 0.3
# Records that wait until the browser has read earlier ones.
_MOST_WAITING: Final = 50
_HEADERS: Final = {"X-Accel-Buffering": "no"}


def event(data: str, *, name: str = "") -> bytes:
    """Return a server-sent event."""
    lines = [f"event: {name}"] if name else []
    lines += [f"data: {line}" for line in data.splitlines() or [""]]
    return ("\n".join(lines) + "\n\n").encode("utf-8", "replace")


class PassedRecords:
    """Records in order, and the latest progress, passed from a task to its reader.

    Attributes:
        losses: What a tail dropped because newer records arrived before they were read, or could
            not read. A search waits instead; None for it.
        error: Why the task failed.
    """

    __slots__ = (
        "_changed",
        "_free",
        "_progress",
        "_records",
        "error",
        "is_done",
        "losses",
    )

    def __init__(self, losses: TailLosses | None = None) -> None:
        self.losses = losses
        self._records: deque[FoundRecord] = deque()
        self._progress: SearchProgress | None = None
        self._changed = asyncio.Event()
        self._free = asyncio.Event()
        self.error: str | None = None
        self.is_done = False

    async def put(self, record: FoundRecord) -> None:
        """Add a record while at most 50 wait: a search waits for its reader, a tail drops one."""
        while len(self._records) >= _MOST_WAITING:
            if self.losses is not None:
                self._records.popleft()
                self.losses.skipped += 1
            else:
                self._free.clear()
                await self._free.wait()
        self._records.append(record)
        self._changed.set()

    def report(self, progress: SearchProgress) -> None:
        """Replace the progress."""
        self._progress = progress
        self._changed.set()

    def end(self, error: str | None = None) -> None:
        """Add no more; `error` says why it failed."""
        self.error = error
        self.is_done = True
        self._changed.set()

    async def take(self) -> tuple[list[FoundRecord], SearchProgress | None]:
        """Wait for records or progress for up to 15 s, and return all of them."""
        with suppress(TimeoutError):
            await asyncio.wait_for(self._changed.wait(), _KEEP_ALIVE_S)
        self._changed.clear()
        records, progress = list(self._records), self._progress
        self._records.clear()
        self._progress = None
        self._free.set()
        return records, progress


async def events(request: Request) -> Response:
    """Send an event for each new snapshot of the cluster."""
    collector = collector_of(request)

    async def stream() -> AsyncIterator[bytes]:
        with collector.subscribe() as reader:
            yield event(str(collector.snapshot.number), name="connected")
            while True:
                try:
                    snapshot = await asyncio.wait_for(reader.next(), _KEEP_ALIVE_S)
                except TimeoutError:
                    yield _KEEP_ALIVE
                else:
                    yield event(str(snapshot.number), name="snapshot")
                    await pause(_REFRESH_S)

    return _streamed(stream())


async def search(request: Request) -> Response:
    """Stream the hits of a search, with its progress."""
    collector = collector_of(request)
    found = topic_of(request, collector.snapshot)
    try:
        query = search_query(found, form_of(request.query_params))
    except ValueError as error:
        return PlainTextResponse(f"{error}\n", status_code=400)
    passed = PassedRecords()
    return _streamed(_passed_on(request, passed, searched(collector, query, passed.report)))


async def tail(request: Request) -> Response:
    """Stream the matching records as they are written."""
    collector = collector_of(request)
    found = topic_of(request, collector.snapshot)
    try:
        query, record_filter = tail_query(found, form_of(request.query_params))
    except ValueError as error:
        return PlainTextResponse(f"{error}\n", status_code=400)
    losses = TailLosses()
    passed = PassedRecords(losses)
    records = tailed(collector, query, record_filter, losses)
    return _streamed(_passed_on(request, passed, records, pause_s=_TAIL_PAUSE_S))


async def _passed_on(
    request: Request,
    passed: PassedRecords,
    records: AsyncIterator[FoundRecord],
    *,
    pause_s: float = 0.0,
) -> AsyncIterator[bytes]:
    task = asyncio.create_task(_run(passed, records), name="records for a page")
    try:
        while True:
            found, progress = await passed.take()
            is_last = passed.is_done
            text = _html(request, found, progress, passed)
            yield event(text) if text else _KEEP_ALIVE
            if is_last:
                break
            if pause_s:
                await pause(pause_s)
        yield event("", name="done")
    finally:
        task.cancel()
        await asyncio.wait({task})


async def _run(passed: PassedRecords, records: AsyncIterator[FoundRecord]) -> None:
    """Pass records on; the iterator is closed when this ends or is cancelled."""
    source: Any = records
    try:
        async with aclosing(source):
            async for record in source:
                await passed.put(record)
    except ClientError as error:
        passed.end(str(error))
    except Exception:  # the root of a task
        logger.exception("cannot read records for a page")
        passed.end("The console failed to read the records; see its log.")
    else:
        passed.end()


def _html(
    request: Request,
    found: list[FoundRecord],
    progress: SearchProgress | None,
    passed: PassedRecords,
) -> str:
    if not found and progress is None and passed.error is None:
        return ""
    rows = [record_row(request.path_params["cluster"], record) for record in found]
    return console_of(request).templates.render(
        "stream_part.html",
        # A tail has the newest record on top, a search its hits in order.
        rows=rows if passed.losses is None else rows[::-1],
        progress=progress,
        losses=passed.losses,
        error=passed.error,
    )


async def stopped(request: Request) -> Response:
    """Return the end of a stream that the viewer stopped."""
    text = console_of(request).templates.render("stream_stopped.html")
    return PlainTextResponse(text, media_type="text/html")


def _streamed(content: AsyncIterator[bytes]) -> StreamingResponse:
    return StreamingResponse(content, media_type="text/event-stream", headers=_HEADERS)
