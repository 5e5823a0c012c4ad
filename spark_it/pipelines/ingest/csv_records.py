"""Splitting of lines into CSV records (RFC 4180); quoted fields may contain line breaks.

    1,"two
    lines","a ""b"" c"          one record, in two lines of the file

Invalid records, with a `fault`, are read as Python's csv and spreadsheets read them, so that later
records are found.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from wirebroker.pipelines.ingest.file_lines import MOST_LINE_BYTES

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from wirebroker.pipelines.ingest.file_lines import TextLine

MOST_QUOTED_BYTES: Final = 16 << 20
_QUOTE: Final = b'"'


class CsvRecord(NamedTuple):
    """A CSV record without its line end; `fault` is the reason why it is invalid."""

    content: bytes
    fault: str | None = None


class CsvSplitter:
    """Splitter of a file's lines into records."""

    def __init__(self, delimiter: str) -> None:
        self._delimiter = delimiter.encode()
        # State of the current record.
        self._is_quoted = False
        self._quote_line = 0
        self._quoted_bytes = 0
        self._too_long = ""
        self._fault: str | None = None

    def records(self, lines: Iterable[TextLine]) -> Iterator[CsvRecord]:
        """Return the records of a file, up to one that is too long."""
        record: list[bytes] = []
        record_bytes = 0
        for number, (content, is_cut) in enumerate(lines, 1):
            if not record and _QUOTE not in content and not is_cut:  # the usual case
                yield CsvRecord(content.rstrip(b"\r\n"))
                continue
            record.append(content)
            record_bytes += len(content)
            self._scan(content, number)
            if not self._too_long and record_bytes > MOST_LINE_BYTES and self._is_quoted:
                self._too_long = f"the record of line {number} is longer than 64 MiB"
            if self._too_long:
                fault = f"{self._too_long}: the rest of the file is skipped"
                yield CsvRecord(b"".join(record), fault)
                return
            if is_cut:
                self._is_quoted = False
                self._fault = f"line {number} is longer than {MOST_LINE_BYTES >> 20} MiB"
            if not self._is_quoted:
                yield CsvRecord(b"".join(record).rstrip(b"\r\n"), self._fault)
                record, record_bytes = [], 0
                self._fault = None
        if record:
            fault = f"the quoted field that begins in line {self._quote_line} is not closed"
            yield CsvRecord(b"".join(record), fault)

    def _scan(self, line: bytes, number: int) -> None:
        position = 0
        if self._is_quoted:
            position = self._pass_quoted(line, 0)
        while position >= 0:
            if line.startswith(_QUOTE, position):
                self._is_quoted, self._quote_line, self._quoted_bytes = True, number, 0
                position = self._pass_quoted(line, position + 1)
                continue
            if _QUOTE in line[position : self._end_of_field(line, position)]:
                self._fault = f"a quote inside an unquoted field, in line {number}"
            position = self._next_field(line, position)

    def _pass_quoted(self, line: bytes, position: int) -> int:
        """Skip a quoted part; return where the next field begins, or -1 if not in this line."""
        end = line.find(_QUOTE, position)
        while end >= 0 and line.startswith(_QUOTE, end + 1):
            end = line.find(_QUOTE, end + 2)
        self._quoted_bytes += (len(line) if end < 0 else end) - position
        if self._quoted_bytes > MOST_QUOTED_BYTES:
            quoted_field = f"the quoted field that begins in line {self._quote_line}"
            self._too_long = f"{quoted_field} is longer than {MOST_QUOTED_BYTES >> 20} MiB"
        if end < 0:
            return -1
        self._is_quoted = False
        if line[end + 1 : self._end_of_field(line, end + 1)].strip(b"\r\n"):
            self._fault = f"text after the closing quote of a field of line {self._quote_line}"
        return self._next_field(line, end + 1)

    def _next_field(self, line: bytes, position: int) -> int:
        end = line.find(self._delimiter, position)
        return -1 if end < 0 else end + len(self._delimiter)

    def _end_of_field(self, line: bytes, position: int) -> int:
        end = line.find(self._delimiter, position)
        return len(line) if end < 0 else end
