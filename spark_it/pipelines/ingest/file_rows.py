"""Conversion of files, divided into pieces for tasks, to rows."""

from __future__ import annotations

import io
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from urllib.parse import unquote, urlsplit

from wirebroker.pipelines.ingest.file_lines import (
    MOST_LINE_BYTES,
    DamagedFileError,
    is_compressed,
    lines_of,
    open_file,
)
from wirebroker.pipelines.ingest.line_rows import Line, LinePlacer
from wirebroker.pipelines.job.errors import JobFileError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    import pyarrow

    from wirebroker.pipelines.ingest.file_lines import TextLine
    from wirebroker.pipelines.ingest.line_rows import PlacingOptions
    from wirebroker.pipelines.job.job_folder import BatchPlan
    from wirebroker.pipelines.rows.placed_rows import PlacedRow

# Input of `FileRows`: a FilePiece, or content read by Spark.
PIECE_COLUMNS: Final = "task INT, source STRING, path STRING, start LONG, end LONG"
CONTENT_COLUMNS: Final = ("source", "block", "content")
# Spark's maxPartitionBytes, and openCostInBytes (the cost of opening a file).
_MOST_PIECE_BYTES: Final = 128 << 20
_OPEN_BYTES: Final = 4 << 20


class SourceFile(NamedTuple):
    """A file of a batch; `source` is its address, for dead letters."""

    source: str
    path: str
    size: int


class FilePiece(NamedTuple):
    """A piece of a file, and the number of the task that reads it."""

    task: int
    source: str
    path: str
    start: int
    end: int | None


def pieces_of(files: Iterable[SourceFile], *, format_name: str, cores: int) -> list[FilePiece]:
    """Return the pieces of files, for tasks from 0; `cores` tasks run at a time.

    As in Spark, several tasks share a JSON file. One task reads any other file from its beginning,
    because only the preceding records show where a record begins.
    """
    file_list = list(files)
    total = sum(file.size + _OPEN_BYTES for file in file_list)
    max_bytes = min(_MOST_PIECE_BYTES, max(_OPEN_BYTES, -(-total // cores)))
    pieces: list[FilePiece] = []
    task = task_bytes = 0
    for file in file_list:
        is_split = format_name == "json" and not is_compressed(file.path) and file.size > max_bytes
        for start in range(0, file.size, max_bytes) if is_split else (0,):
            end = start + max_bytes if is_split and start + max_bytes < file.size else None
            size = (end or file.size) - start + _OPEN_BYTES
            if task_bytes and task_bytes + size > max_bytes:
                task, task_bytes = task + 1, 0
            pieces.append(FilePiece(task, file.source, file.path, start, end))
            task_bytes += size
    return pieces


class FileRows:
    """Placer for the rows of a batch of files."""

    def __init__(self, settings: PlacingOptions, plan: BatchPlan) -> None:
        self._wish = settings
        self._placer = LinePlacer(settings, plan)
        # Counts over the whole task, so that lines of a block are consecutive.
        self._count = 0

    def of_pieces(self, batch: pyarrow.RecordBatch) -> Iterator[PlacedRow]:
        """Return the rows of an Arrow batch with PIECE_COLUMNS."""
        columns = (batch.column(name).to_pylist() for name in ("source", "path", "start", "end"))
        for source, path, start, end in zip(*columns, strict=True):
            # Avro containers are compressed inside, whatever the suffix.
            with open_file(Path(path), as_it_is=self._wish.format == "avro") as file:
                yield from self.of_file(file, source, start, end)

    def of_contents(self, batch: pyarrow.RecordBatch) -> Iterator[PlacedRow]:
        """Return the rows of an Arrow batch with CONTENT_COLUMNS: JSON lines or whole files."""
        columns = (batch.column(name).to_pylist() for name in CONTENT_COLUMNS)
        for source, block, content in zip(*columns, strict=True):
            if self._wish.format == "json":
                self._count += 1
                row = self._placer.place(Line(content, source, block, self._count))
                yield from () if row is None else (row,)
            else:
                yield from self.of_file(io.BytesIO(content), source)

    def of_file(
        self, file: io.BufferedIOBase, source: str, start: int = 0, end: int | None = None
    ) -> Iterator[PlacedRow]:
        """Return the rows of a file or a piece of it."""
        if self._wish.format == "avro":
            yield from self._of_avro(file, source)
            return
        number = 0
        lines = lines_of(file, start, end)
        try:
            for number, (content, fault) in enumerate(self._records(lines), 1):
                row = self._placer.place(Line(content, source, start, number), fault)
                if row is not None:
                    yield row
        except DamagedFileError as error:
            yield self._damage(Line(b"", source, start, number + 1), str(error))

    def _records(self, lines: Iterable[Any]) -> Iterator[tuple[bytes, str | None]]:
        if self._wish.format == "csv":
            for record in CsvSplitter(self._wish.delimiter).records(lines):
                yield record.content, record.fault and f"is not valid CSV: {record.fault}"
            return
        for content, is_cut in lines:
            fault = f"is longer than {MOST_LINE_BYTES >> 20} MiB" if is_cut else None
            yield content.rstrip(b"\r\n"), fault

    def _of_avro(self, file: Any, source: str) -> Iterator[PlacedRow]:
        import fastavro

        number = 0
        try:
            for number, record in enumerate(fastavro.reader(file), 1):
                yield self._placer.place_record(record, Line(b"", source, 0, number))
        except Exception as error:  # fastavro's for damaged files have many classes
            if isinstance(error, OSError) and error.errno is not None:
                raise  # a retry may succeed
            yield self._damage(Line(b"", source, 0, number + 1), repr(error))

    def _damage(self, line: Line, error: str) -> PlacedRow:
        unit = "line" if self._wish.format == "json" else "record"
        reason = f"the file cannot be read after {unit} {line.number - 1}: {error}"
        if self._wish.stops_at_damage:
            raise JobFileError(
                f"{line.source}: {reason}; damaged_files = 'dead-letter' would continue"
            )
        return self._placer.dead(line, reason, is_damage=True)


def local_path(address: str) -> Path | None:
    """Return the path of a local file from Spark's address; None for other addresses."""
    parts = urlsplit(address)
    return Path(unquote(parts.path)) if parts.scheme == "file" else None


# Splitting of lines into CSV records (RFC 4180); quoted fields may contain line breaks

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
