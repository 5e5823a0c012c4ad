"""Downloads of the records of a search, as lines of JSON or CSV."""

from __future__ import annotations

import contextlib
import csv
import io
import json
import re
import tempfile
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from wirebroker.base.threads import Work, in_thread
from wirebroker.client.records.json_lines import (
    base64_pieces,
    is_utf8,
    json_headers_of,
    json_headers_pieces,
    json_line_of,
    json_line_pieces,
    json_value_of,
)
from wirebroker.client.topics.leaders import TopicPartition
from wirebroker.codecs.records.record import Record
from wirebroker.console.records.partition_scan import kept_bytes
from wirebroker.console.records.record_stream import RecordStream
from wirebroker.console.records.search import scans_of

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Iterable, Iterator

    from wirebroker.console.model.collector import Collector
    from wirebroker.console.records.queries import FoundRecord, SearchQuery

# Nothing is cut, because larger batches are skipped.
_MOST_BYTES: Final = 16 << 20
_MOST_HEADERS: Final = 10_000
# Larger records become lines in pieces.
_LARGE_BYTES: Final = 64 << 10
# A package with more lines uses a temporary file.
_MOST_UNREAD_BYTES: Final = 512 << 10
_CHUNK_BYTES: Final = 256 << 10
# A package with so many is full: lines can be much longer than their records.
_FULL_BYTES: Final = 16 << 20
# After this many bytes (about 10 ms) the thread does other work.
_PAUSE_BYTES: Final = 128 << 10
_COLUMNS: Final = ("topic", "partition", "offset", "timestamp", "key", "value", "headers")
# Spreadsheets take such cells for formulas, which may run commands (CWE-1236).
_FORMULA: Final = re.compile(r"[=+\-@\t\r\n＝＋－＠]")  # noqa: RUF001 - full-width forms count
_NUMBER: Final = re.compile(r"[+-]?[0-9.]+(?:[eE][+-]?[0-9]+)?")

_LONGEST_NUMBER: Final = 64


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
    if form not in _FORMS:
        raise ValueError(f"records are downloaded as jsonl or csv, not as {form!r}")
    query.check()
    scans = await scans_of(
        collector.client, query, most_bytes=_MOST_BYTES, most_headers=_MOST_HEADERS
    )
    stream = RecordStream(
        collector.record_connections,
        scans,
        partial(_Lines, *_FORMS[form]),
        is_committed=query.is_committed,
    )
    # The response begins before the first hit, which a filter may find only after minutes.
    yield _csv([_COLUMNS]) if form == "csv" else b""
    async with contextlib.aclosing(stream.packages()) as packages:
        async for package in packages:
            async for chunk in package.chunks():
                if chunk:
                    yield chunk
            for scan in scans.values():
                if scan.notes:
                    raise CutDownloadError(f"a download of {query.topic} ended: {scan.notes[0]}")


class _Lines:
    """A package of records as lines."""

    __slots__ = ("_bytes", "_file", "_lines_of", "_paused_bytes", "_pieces_of")

    def __init__(
        self,
        lines_of: Callable[[list[FoundRecord]], bytes],
        pieces_of: Callable[[FoundRecord], Iterator[bytes]],
    ) -> None:
        """Store how small records become lines together, and a large one its line in pieces."""
        self._lines_of = lines_of
        self._pieces_of = pieces_of
        self._file = tempfile.SpooledTemporaryFile(_MOST_UNREAD_BYTES)  # noqa: SIM115
        # Bytes written; of these, before the last pause.
        self._bytes = self._paused_bytes = 0

    @property
    def is_full(self) -> bool:
        """See Package."""
        return self._bytes >= _FULL_BYTES

    def add(self, found: list[FoundRecord]) -> bool:
        """See Package."""
        small: list[FoundRecord] = []
        for record in found:
            _check_headers(record)
            if kept_bytes(record) <= _LARGE_BYTES:
                small.append(record)
            else:
                self._write(self._lines_of(small))
                small = []
                for piece in self._pieces_of(record):
                    self._write(piece)
        self._write(self._lines_of(small))
        must_pause = not found or self._bytes - self._paused_bytes >= _PAUSE_BYTES
        if must_pause:
            self._paused_bytes = self._bytes
        return must_pause

    async def chunks(self) -> AsyncGenerator[bytes, None]:
        """Yield the lines."""
        self._file.seek(0)
        if self._bytes <= _MOST_UNREAD_BYTES:
            yield self._file.read()
            return
        while chunk := await in_thread(Work.RECORDS, self._file.read, _CHUNK_BYTES):
            yield chunk

    def close(self) -> None:
        """See Package."""
        self._file.close()

    def _write(self, data: bytes) -> None:
        self._bytes += self._file.write(data)


def _check_headers(record: FoundRecord) -> None:
    if record.header_count > len(record.headers):
        raise CutDownloadError(
            f"a download ended: the record at offset {record.offset:,} of"
            f" {record.topic}-{record.partition} has more than {_MOST_HEADERS:,} headers"
        )


def _json_lines(records: list[FoundRecord]) -> bytes:
    return b"".join(json_line_of(*_placed(record)) for record in records)


def _json_pieces(record: FoundRecord) -> Iterator[bytes]:
    return json_line_pieces(*_placed(record))


def _placed(record: FoundRecord) -> tuple[TopicPartition, Record]:
    return TopicPartition(record.topic, record.partition), Record(
        record.offset, record.timestamp_ms, record.key, record.value, record.headers
    )


def _csv_lines(records: list[FoundRecord]) -> bytes:
    return _csv(map(_row, records))


def _csv(rows: Any) -> bytes:
    text = io.StringIO()
    csv.writer(text, lineterminator="\r\n").writerows(rows)
    return text.getvalue().encode("utf-8", "replace")


def _csv_pieces(record: FoundRecord) -> Iterator[bytes]:
    """Yield a row in pieces; keys, values and headers are quoted."""
    time = _time_text(record.timestamp_ms)
    yield f"{record.topic},{record.partition},{record.offset},{time}".encode()
    for content in (record.key, record.value):
        yield b","
        if content:
            yield from _quoted(_cell_pieces(content))
    yield b","
    if record.headers:
        yield from _quoted(json_headers_pieces(record.headers))
    yield b"\r\n"


def _quoted(pieces: Iterable[bytes]) -> Iterator[bytes]:
    yield b'"'
    for piece in pieces:
        yield piece.replace(b'"', b'""')
    yield b'"'


def _cell_pieces(data: bytes) -> Iterator[bytes]:
    if not is_utf8(data):
        yield from base64_pieces(data)
        return
    # A number is short.
    beginning = data if len(data) <= _LONGEST_NUMBER else data[:1]
    if _is_formula(beginning.decode("utf-8", "replace")):
        yield b"'"
    for start in range(0, len(data), _CHUNK_BYTES):
        yield data[start : start + _CHUNK_BYTES]


def _row(record: FoundRecord) -> tuple[Any, ...]:
    headers = json_headers_of(record.headers)
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
    return f"'{text}" if _is_formula(text) else text


def _is_formula(text: str) -> bool:
    return _FORMULA.match(text) is not None and _NUMBER.fullmatch(text) is None


_FORMS: Final = {"jsonl": (_json_lines, _json_pieces), "csv": (_csv_lines, _csv_pieces)}
