"""Files of lines (JSON, CSV, Avro) into a topic: typed, keyed, each row once.

    lines ──► read by the schema ──► records, by key ──► the topic    ┐ one transaction for each
                     └─ no row of it ──► dead letters, with the reason ┘ slice, with its position

A row's partition is the one that Java's producer chooses for its key. Rows of a file stay in order
within a partition. A file is taken up once, when it is first seen; it must be whole by then (move
it in) and must not be changed.
"""

from __future__ import annotations

import itertools
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from wirebroker.pipelines.errors import JobFileError
from wirebroker.pipelines.job_file import like, setting
from wirebroker.pipelines.line_rows import LinePlacer, PlacingWish
from wirebroker.pipelines.pipeline import Pipeline
from wirebroker.pipelines.placed_batches import PlacingTask
from wirebroker.pipelines.placed_rows import COLUMNS
from wirebroker.pipelines.typed_rows import parse_schema

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import DataFrame
    from pyspark.sql.streaming import StreamingQuery

    from wirebroker.pipelines.delivery import Target
    from wirebroker.pipelines.job_folder import BatchPlan

# What has a meaning of its own in patterns of paths, Hadoop's.
_PATTERN: Final = re.compile(r"[*?{\[]")
_FORMATS: Final = ("json", "csv", "avro")
# What Spark has for a file as a whole.
_BINARY_FILE: Final = "path STRING, modificationTime TIMESTAMP, length LONG, content BINARY"


@dataclass(frozen=True, kw_only=True)
class IngestJob:
    """The settings of an ingest, as its file has them."""

    name: str = setting("text", "the job's name, and its group's, where positions are kept")
    source: str = setting("path", "a file, a directory or a pattern of them")
    format: str = setting("text", "what a file holds", "json", _FORMATS)
    topic: str = setting("text", "the topic for the rows; made if it isn't there")
    checkpoint: str = setting("path", "a folder of the job's own, kept between runs")
    kafka: dict[str, Any] = setting("table", "settings of librdkafka; bootstrap.servers at least")
    schema: dict[str, Any] = setting("table", "the columns: name = type, in order")
    key: str = setting("text", "the column that is the record's key; none: no keys", "")
    timestamp: str = setting("text", "the timestamp column that is the record's time", "")
    value: str = setting(
        "text",
        "the record's value: the row as JSON, or its line as it was",
        "json",
        ("json", "raw"),
    )
    unknown_fields: str = setting(
        "text", "fields beyond the schema: a bad row, or left out", "bad", ("bad", "drop")
    )
    delimiter: str = setting("text", "between the cells of CSV", ",")
    dead_letters: str = setting("text", "the topic for bad rows; empty: TOPIC.dead-letters", "")
    partitions: int = setting("count", "of the topic, where it is made", 1)
    most_record_bytes: int = setting("count", "of key and value; more is a bad row", 900_000)
    files_per_batch: int = setting("count", "how many files make a batch at most", 1_000)
    every: float | None = setting(
        "seconds", "look for files so often; none: once, to the end", None
    )
    patience: float = setting("seconds", "how long it may fail before it gives up", 300.0)
    metrics: str | None = setting("path", "a file that a line of JSON is added to each batch", None)
    spark: dict[str, Any] = setting("table", "settings of Spark", {})


class Ingest(Pipeline[IngestJob]):
    """One ingest."""

    @staticmethod
    def check(job: IngestJob, target: Target) -> None:
        """Find mistakes of the settings before anything is begun.

        Raises:
            JobFileError: The schema, columns that aren't in it, or a folder that isn't there.
        """
        wish_of(job, target)
        folder = _folder_of(job.source)
        if "://" not in job.source and not folder.exists():
            raise JobFileError(f"source = {job.source!r}: there is no {folder}")

    def start(self, handle: Callable[[DataFrame, int], None]) -> StreamingQuery:
        """Start the query."""
        is_avro = self._job.format == "avro"
        reader = self._spark.readStream.format("binaryFile" if is_avro else "text")
        if is_avro:
            reader = reader.schema(_BINARY_FILE)
        reader = reader.option("maxFilesPerTrigger", self._job.files_per_batch)
        table = reader.option("recursiveFileLookup", "true").load(self._job.source)
        content = "content" if is_avro else "CAST(value AS BINARY) AS content"
        lines = table.selectExpr(
            content, "_metadata.file_path AS source", "_metadata.file_block_start AS block"
        )
        return self._stream(lines, handle)

    def handle(self, table: DataFrame, batch: int) -> None:
        """Do a batch: what a table of lines holds goes to Kafka, once."""
        began = self._clock.monotonic()
        plan = self._delivery.plan(batch)
        sent = self._delivery.send(self._placed(table, plan), plan)
        self._reporter.batch(batch, sent, began)

    def _placed(self, table: DataFrame, plan: BatchPlan) -> DataFrame:
        return table.mapInArrow(
            PlacingTask(LinePlacer(wish_of(self._job, self._target), plan).rows), COLUMNS
        )


def _folder_of(source: str) -> Path:
    """Return what of a pattern must be there, though no file may match it yet."""
    parts = Path(source).parts
    plain = itertools.takewhile(lambda part: not _PATTERN.search(part), parts)
    return Path(*plain)


def wish_of(job: IngestJob, target: Target) -> PlacingWish:
    """Return how lines become rows.

    Raises:
        JobFileError: The schema, or a column that isn't in it.
    """
    columns = parse_schema(job.schema)
    types = {each.name: each.type_name for each in columns}
    for what, name in (("key", job.key), ("timestamp", job.timestamp)):
        if name and name not in types:
            raise JobFileError(f"{what} = {name!r} is no column of [schema]{like(name, types)}")
    if job.timestamp and types[job.timestamp] != "timestamp":
        raise JobFileError(f"timestamp = {job.timestamp!r} is {types[job.timestamp]} in [schema]")
    if len(job.delimiter) != 1 or job.delimiter in '"\r\n':
        raise JobFileError(f"delimiter = {job.delimiter!r} is not one character between cells")
    if job.format == "avro" and job.value == "raw":
        raise JobFileError('value = "raw" is for lines; format = "avro" has none')
    return PlacingWish(
        format=job.format,
        columns=columns,
        drops_unknown=job.unknown_fields == "drop",
        delimiter=job.delimiter,
        key=job.key,
        timestamp=job.timestamp,
        is_raw=job.value == "raw",
        most_bytes=job.most_record_bytes,
        job=target.job,
        topic=target.topic,
        dead_letters=target.dead_letters,
    )
