"""Downloads of the records of a search, as lines of JSON or CSV."""

from __future__ import annotations

import contextlib
import csv
import io
import json
import re
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from wirebroker.client.records.json_lines import json_line_of, json_value_of
from wirebroker.client.topics.leaders import TopicPartition
from wirebroker.codecs.records.record import Record
from wirebroker.console.records.record_stream import RecordStream
from wirebroker.console.records.search import scans_of

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from wirebroker.console.model.collector import Collector
    from wirebroker.console.records.queries import FoundRecord, SearchQuery

# Whole records: a batch has at most 16 MiB.
_MOST_BYTES: Final = 16 << 20
_MOST_HEADERS: Final = 100
_COLUMNS: Final = ("topic", "partition", "offset", "timestamp", "key", "value", "headers")
# Spreadsheets take such cells for formulas, which may run commands (CWE-1236).
_FORMULA: Final = re.compile(r"[=+\-@\t\r]")
_NUMBER: Final = re.compile(r"[+-]?[0-9.]+(?:[eE][+-]?[0-9]+)?")


class CutDownloadError(Exception):
    """A download that has begun cannot go on; its connection is closed before its end.

    A complete response would hide from the client that records are missing.
    """


async def download(
    collector: Collector, query: SearchQuery, form: str
) -> AsyncGenerator[bytes, None]:
    """Yield the matching records in chunks; `limit` of the query does not apply.

    The first chunk has no records and comes before the topic is read.

    `form` is jsonl, as `wirebroker consume --json` prints, or csv. Bytes that are not UTF-8 become
    `{"base64": "…"}`. In CSV an apostrophe precedes a cell that spreadsheets take for a formula.

    Raises:
        ClientError: The topic cannot be read.
        ValueError: The form or the search cannot be used.
    """
    if form not in {"jsonl", "csv"}:
        raise ValueError(f"records are downloaded as jsonl or csv, not as {form!r}")
    query.check()
    scans = await scans_of(
        collector.client, query, most_bytes=_MOST_BYTES, most_headers=_MOST_HEADERS
    )
    stream = RecordStream(collector.client, scans, is_committed=query.is_committed)
    # The response begins before the first hit, which a filter may find only after minutes.
    yield _csv([_COLUMNS]) if form == "csv" else b""
    async with contextlib.aclosing(stream.lists()) as lists:
        async for found in lists:
            if found:
                yield _lines(found) if form == "jsonl" else _csv(map(_row, found))


def _lines(records: list[FoundRecord]) -> bytes:
    return b"".join(
        json_line_of(
            TopicPartition(record.topic, record.partition),
            Record(record.offset, record.timestamp_ms, record.key, record.value, record.headers),
        )
        for record in records
    )


def _csv(rows: Any) -> bytes:
    text = io.StringIO()
    csv.writer(text, lineterminator="\r\n").writerows(rows)
    return text.getvalue().encode("utf-8", "replace")


def _row(record: FoundRecord) -> tuple[Any, ...]:
    headers = [{"key": name, "value": json_value_of(value)} for name, value in record.headers]
    return (
        record.topic,
        record.partition,
        record.offset,
        _time_text(record.timestamp_ms),
        _cell(record.key),
        _cell(record.value),
        json.dumps(headers) if headers else "",
    )


def _time_text(time_ms: int) -> str:
    try:
        time = datetime.fromtimestamp(time_ms / 1000, UTC)
    except (ValueError, OverflowError, OSError):
        return str(time_ms)
    return time.isoformat(timespec="milliseconds")


def _cell(data: bytes | None) -> str:
    plain = json_value_of(data)
    if plain is None:
        return ""
    text = plain if isinstance(plain, str) else json.dumps(plain)
    is_formula = _FORMULA.match(text) is not None and _NUMBER.fullmatch(text) is None
    return f"'{text}" if is_formula else text
