"""The records of a topic: a page of them, one of them, downloads."""

from __future__ import annotations

import tempfile
from contextlib import aclosing
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from starlette.exceptions import HTTPException
from starlette.responses import PlainTextResponse, StreamingResponse

from wirebroker.base.threads import Work, in_thread
from wirebroker.client.errors import ClientError
from wirebroker.console.model.group_info import committed_in
from wirebroker.console.pages.message_query import (
    LIMITS,
    STARTS,
    form_of,
    position_text,
    read_query,
    search_query,
    tail_query,
    unused_values,
)
from wirebroker.console.pages.page import asked, collector_of, other_clusters, page, topic_of
from wirebroker.console.records.downloads import CutDownloadError
from wirebroker.console.records.downloads import download as downloaded
from wirebroker.console.records.pages import read_page, read_record
from wirebroker.console.view.links import changed_query
from wirebroker.console.view.paging import ListQuery, page_of
from wirebroker.console.view.record_rows import byte_views, record_row

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from starlette.requests import Request
    from starlette.responses import Response

    from wirebroker.console.model.collector import Collector
    from wirebroker.console.model.group_info import GroupInfo
    from wirebroker.console.model.snapshot import ClusterSnapshot
    from wirebroker.console.model.topic_info import TopicInfo
    from wirebroker.console.pages.message_query import MessageForm
    from wirebroker.console.records.queries import RecordPage
    from wirebroker.console.view.paging import ListPage

_MEDIA_TYPES: Final = {"jsonl": "application/x-ndjson", "csv": "text/csv; charset=utf-8"}


async def messages(request: Request) -> Response:
    """Show the form, and records: a page of them, a search, or a live tail."""
    collector = collector_of(request)
    found = topic_of(request, collector.snapshot)
    form = form_of(request.query_params)
    mode, failure = _mode(request, found, form)
    values: dict[str, Any] = {"rows": [], "notes": (), "next_query": None}
    if mode == "page":
        answer = await asked(read_page(collector, read_query(found, form)))
        failure = answer.failure
        if answer.value is not None:
            values = _shown(request, collector, answer.value)
    return page(
        request,
        "messages.html",
        section="topics",
        topic=found,
        tab="messages",
        form=form,
        starts=STARTS,
        limits=LIMITS,
        mode=mode,
        failure=failure,
        unused=unused_values(form, mode),
        stream_query=request.url.query,
        **values,
    )


def _mode(request: Request, topic: TopicInfo, form: MessageForm) -> tuple[str, str | None]:
    """Return page, search, tail, or none with the fault of the form."""
    is_tail = request.query_params.get("live") == "1"
    mode = "tail" if is_tail else "search" if form.is_search else "page"
    check = {"tail": tail_query, "search": search_query, "page": read_query}[mode]
    try:
        check(topic, form)
    except ValueError as error:
        return "none", str(error)
    return mode, None


def _shown(request: Request, collector: Collector, found: RecordPage) -> dict[str, Any]:
    query = request.query_params.multi_items()
    return {
        "rows": [record_row(collector.settings.name, record) for record in found.records],
        "notes": found.notes,
        "next_query": changed_query(query, position=position_text(found.next))
        if found.next
        else None,
    }


async def record(request: Request) -> Response:
    """Show one record in all forms: as a part of the list for htmx, else as a page."""
    collector = collector_of(request)
    found = topic_of(request, collector.snapshot)
    numbers = [request.query_params.get(name, "") for name in ("partition", "offset")]
    if not all(text.isascii() and text.isdigit() and len(text) < 20 for text in numbers):
        raise HTTPException(400, "The address must have a partition and an offset.")
    partition, offset = map(int, numbers)
    answer = await asked(read_record(collector, found.name, partition, offset))
    is_part = request.headers.get("hx-request") == "true"
    shown = answer.value
    key, value = None, None
    if shown is not None:
        key = await in_thread(Work.RECORDS, byte_views, shown.key, shown.key_length)
        value = await in_thread(Work.RECORDS, byte_views, shown.value, shown.value_length)
    readers = None
    if shown is not None and not is_part:
        readers = await _readers(request, collector.snapshot, found)
    return page(
        request,
        "record_part.html" if is_part else "record.html",
        section="topics",
        topic=found,
        tab="messages",
        partition=partition,
        offset=offset,
        record=shown,
        failure=answer.failure,
        key=key,
        value=value,
        readers=readers,
        can_forward=bool(other_clusters(request, "forward-record")),
        reading_of=partial(_reading_of, found.name, partition, offset),
    )


async def _readers(
    request: Request, snapshot: ClusterSnapshot, topic: TopicInfo
) -> ListPage[GroupInfo]:
    """Return a page of the groups that committed offsets for a topic."""
    groups = [snapshot.groups[name] for name in topic.groups if name in snapshot.groups]
    return await page_of(
        groups,
        ListQuery.of(request.query_params),
        name=lambda group: group.name,
        columns={"name": lambda group: group.name},
        default_sort="name",
    )


def _reading_of(
    topic: str, partition: int, offset: int, group: GroupInfo
) -> tuple[int | None, str]:
    """Return a group's committed offset in a partition, and whether it is above an offset."""
    committed = committed_in(group, topic, partition)
    if committed is None:
        return None, "no offset"
    if committed > offset:
        return committed, "passed"
    # Members of a share group may have acknowledged later records.
    return committed, "unknown" if group.kind == "share" else "not committed yet"


async def download(request: Request) -> Response:
    """Stream the records of the form as JSON lines or CSV."""
    collector = collector_of(request)
    found = topic_of(request, collector.snapshot)
    form = request.query_params.get("form", "")
    if form not in _MEDIA_TYPES:
        raise HTTPException(400, "The form of a download is jsonl or csv.")
    try:
        query = search_query(found, form_of(request.query_params))
    except ValueError as error:
        return PlainTextResponse(f"{error}\n", status_code=400)
    chunks = downloaded(collector, query, form)
    first = await asked(anext(chunks, b""))
    if first.value is None:
        return PlainTextResponse(f"{first.failure}\n", status_code=502)
    name = "".join(
        letter if letter.isascii() and (letter.isalnum() or letter in "._-") else "_"
        for letter in found.name
    )
    return StreamingResponse(
        _chained(found.name, first.value, chunks),
        media_type=_MEDIA_TYPES[form],
        headers={"Content-Disposition": f'attachment; filename="{name}.{form}"'},
    )


async def _chained(topic: str, first: bytes, chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    source: Any = chunks
    async with aclosing(source):
        yield first
        try:
            async for chunk in source:
                yield chunk
        except ClientError as error:
            raise CutDownloadError(f"a download of {topic} ended early: {error}") from None
        except OSError as fault:
            raise CutDownloadError(
                f"a download of {topic} ended early: its temporary file in"
                f" {tempfile.gettempdir()} (TMPDIR) cannot be written: {fault.strerror}"
            ) from None
