"""The job that writes files (JSON lines, CSV, Avro) into a topic, each row once.

    lines ──► read by the schema ──► records, by key ──► the topic    ┐ one transaction for each
                     └─ invalid ──► dead letters, with the reason ────┘ slice, with its position

A file is read once: it must then be complete, and must not change later.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property, reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote

from pyspark.sql import DataFrame, functions

from wirebroker.pipelines.ingest.file_lines import is_for_spark
from wirebroker.pipelines.ingest.file_rows import (
    CONTENT_COLUMNS,
    PIECE_COLUMNS,
    FileRows,
    SourceFile,
    local_path,
    pieces_of,
)
from wirebroker.pipelines.ingest.hidden_files import HiddenLinks, folder_of, hidden_files
from wirebroker.pipelines.ingest.line_rows import PlacingOptions
from wirebroker.pipelines.job.errors import JobFileError
from wirebroker.pipelines.job.job_file import like, setting
from wirebroker.pipelines.rows.placed_batches import PlacingTask
from wirebroker.pipelines.rows.placed_rows import COLUMNS
from wirebroker.pipelines.rows.typed_rows import parse_schema
from wirebroker.pipelines.run.pipeline import Pipeline

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql.streaming import StreamingQuery

    from wirebroker.pipelines.delivery.delivery import Target
    from wirebroker.pipelines.job.job_folder import BatchPlan

_FORMATS: Final = ("json", "csv", "avro")
_BINARY_FILE: Final = "path STRING, modificationTime TIMESTAMP, length LONG, content BINARY"
# By default Spark silently skips files more than a week older than the newest. With this
# age it remembers all paths.
_ANY_AGE: Final = "36500d"


@dataclass(frozen=True, kw_only=True)
class IngestJob:
    """Settings of an ingest."""

    name: str = setting("text", "the name of the job and of the group with its positions")
    source: str = setting("path", "a file, a directory or a pattern of them")
    format: str = setting("text", "the format of the files", "json", _FORMATS)
    topic: str = setting("text", "the topic for the rows; created if missing")
    checkpoint: str = setting("path", "a folder for this job only, kept between runs")
    kafka: dict[str, Any] = setting("table", "librdkafka settings, at least bootstrap.servers")
    schema: dict[str, Any] = setting("table", "the columns: name = type, in order")
    key: str = setting("text", "the column for the record's key; default: no key", "")
    timestamp: str = setting("text", "the column for the record's timestamp", "")
    value: str = setting(
        "text",
        "the record's value: the row as JSON, or the unchanged line",
        "json",
        ("json", "raw"),
    )
    unknown_fields: str = setting(
        "text", "fields that the schema lacks: a bad row, or dropped", "bad", ("bad", "drop")
    )
    hidden_files: bool = setting(
        "flag", "also read files whose names begin with _ or ., as temporary files do", False
    )
    damaged_files: str = setting(
        "text",
        "if a file is truncated or damaged: write a dead letter after its rows, or stop",
        "dead-letter",
        ("dead-letter", "stop"),
    )
    delimiter: str = setting("text", "the character between CSV cells", ",")
    dead_letters: str = setting("text", "the topic for bad rows; default: TOPIC.dead-letters", "")
    partitions: int = setting("count", "partitions of the topic if it is created", 1)
    most_record_bytes: int = setting(
        "count", "bytes of key and value; larger rows are bad", 900_000
    )
    files_per_batch: int = setting("count", "the maximum files per batch", 1_000)
    every: float | None = setting(
        "seconds", "how often to look for files; default: once, to the end", None
    )
    patience: float = setting("seconds", "how long to retry before giving up", 300.0)
    metrics: str | None = setting("path", "a file for a line of JSON per batch", None)
    log: str | None = setting(
        "path",
        "a file for the output of Spark and librdkafka; default: spark.log in the checkpoint",
        None,
    )
    spark: dict[str, Any] = setting("table", "settings of Spark", {})


class Ingest(Pipeline[IngestJob]):
    """An ingest job."""

    @staticmethod
    def check(job: IngestJob, target: Target) -> None:
        """Check the settings.

        Raises:
            JobFileError: The schema is invalid, or a column or the source's folder is missing.
        """
        placing_settings(job, target)
        is_address = "://" in job.source
        folder = folder_of(job.source)
        if not is_address and not folder.exists():
            raise JobFileError(f"source = {job.source!r}: there is no {folder}")
        if is_address and job.hidden_files:
            raise JobFileError("hidden_files = true needs a source that is a path, not an address")

    def start(self, handle: Callable[[DataFrame, int], None]) -> StreamingQuery:
        """Start the query, whose rows are files."""
        source = self._job.source
        if self._job.hidden_files:
            self._links.refresh()
            source = self._links.pattern()
        reader = self._spark.readStream.format("binaryFile").schema(_BINARY_FILE)
        reader = reader.option("maxFilesPerTrigger", self._job.files_per_batch)
        reader = reader.option("maxFileAge", _ANY_AGE).option("recursiveFileLookup", "true")
        # Without the content, which tasks read as a stream.
        files = reader.load(source).selectExpr(
            "_metadata.file_path AS source", "_metadata.file_size AS size"
        )
        return self._stream(files, handle)

    def look(self) -> None:
        """Link new hidden files, as often as Spark lists files."""
        job = self._job
        if job.every is None or not job.hidden_files:
            return
        if self._clock.monotonic() - self._looked >= job.every:
            self._links.refresh()
            self._looked = self._clock.monotonic()

    def handle(self, table: DataFrame, batch: int) -> None:
        began = self._clock.monotonic()
        files = sorted((str(source), int(size)) for source, size in table.collect())
        self._reporter.found(batch, len(files), sum(size for _, size in files))
        plan = self._delivery.plan(batch)
        sent = self._send(self._placed(files, plan), plan)
        self._reporter.batch(batch, sent, began)

    def summary_fields(self) -> dict[str, Any]:
        """Return how many files were skipped by name, and the first."""
        job = self._job
        self._reporter.count(damaged_files=0)
        if "://" in job.source:
            return {}  # only Spark can list them
        unread = [] if job.hidden_files else sorted(hidden_files(job.source))
        first = {"first_unread_file": str(unread[0])} if unread else {}
        return {"unread_files": len(unread), **first}

    def _placed(self, files: list[tuple[str, int]], plan: BatchPlan) -> DataFrame:
        rows = FileRows(placing_settings(self._job, self._target), plan)
        own: list[SourceFile] = []
        sparks: list[str] = []
        for source, size in files:
            path = local_path(source)
            is_sparks = self._job.format != "avro" and is_for_spark(source)
            if path is None or is_sparks:
                sparks.append(source)
                continue
            target = self._links.target_of(path)
            own.append(SourceFile(source if target == path else target.as_uri(), str(path), size))
        tables = []
        if own or not sparks:
            cores = self._spark.sparkContext.defaultParallelism
            pieces = pieces_of(own, format_name=self._job.format, cores=cores)
            table = self._spark.createDataFrame(pieces, PIECE_COLUMNS)
            tasks = 1 + max((piece.task for piece in pieces), default=0)
            tables.append(
                table.repartitionById(tasks, functions.col("task")).mapInArrow(
                    PlacingTask(rows.of_pieces), COLUMNS
                )
            )
        if sparks:
            tables.append(self._read(sparks).mapInArrow(PlacingTask(rows.of_contents), COLUMNS))
        return reduce(DataFrame.union, tables)

    def _read(self, sources: list[str]) -> DataFrame:
        reader = self._spark.read.option("recursiveFileLookup", "true")
        kind = "binaryFile" if self._job.format == "avro" else "text"
        content = "content" if self._job.format == "avro" else "CAST(value AS BINARY) AS content"
        # Only the preceding text shows where a CSV record begins.
        reader = reader.option("wholetext", str(self._job.format == "csv").lower())
        columns = ("_metadata.file_path AS source", "_metadata.file_block_start AS block")
        table = reader.format(kind).load([_as_path(source) for source in sources])
        return table.selectExpr(*columns, content).select(*CONTENT_COLUMNS)

    _looked = 0.0

    @cached_property
    def _links(self) -> HiddenLinks:
        return HiddenLinks(self._job.source, Path(self._job.checkpoint).resolve() / "hidden")


def _as_path(address: str) -> str:
    """Return an address from Spark as a path, with pattern characters escaped."""
    return re.sub(r"([*?{}\[\]\\])", r"\\\1", unquote(address))


def placing_settings(job: IngestJob, target: Target) -> PlacingOptions:
    """Return how lines become rows.

    Raises:
        JobFileError: A setting is invalid, or names a column that the schema lacks.
    """
    columns = parse_schema(job.schema)
    types = {column.name: column.type_name for column in columns}
    for option, name in (("key", job.key), ("timestamp", job.timestamp)):
        if name and name not in types:
            raise JobFileError(
                f"{option} = {name!r} is not a column of [schema]{like(name, types)}"
            )
    if job.timestamp and types[job.timestamp] != "timestamp":
        raise JobFileError(f"timestamp = {job.timestamp!r} is {types[job.timestamp]} in [schema]")
    if len(job.delimiter) != 1 or job.delimiter in '"\r\n':
        raise JobFileError(f"delimiter = {job.delimiter!r} must be one character, not a quote")
    if job.format == "avro" and job.value == "raw":
        raise JobFileError('value = "raw" is for lines; format = "avro" has none')
    return PlacingOptions(
        format=job.format,
        columns=columns,
        drops_unknown=job.unknown_fields == "drop",
        delimiter=job.delimiter,
        key=job.key,
        timestamp=job.timestamp,
        is_raw=job.value == "raw",
        most_bytes=job.most_record_bytes,
        stops_at_damage=job.damaged_files == "stop",
        job=target.job,
        topic=target.topic,
        dead_letters=target.dead_letters,
    )
