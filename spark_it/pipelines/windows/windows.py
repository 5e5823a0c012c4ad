"""The job that aggregates a topic by event-time window, and joins a compacted topic.

    records ─► columns ─► windows by key ─► closed by the watermark ─► joined ─► a topic, Parquet
                  └─ invalid or too late: dropped and counted

A window is written once, when the watermark (the latest event time minus the delay) passes its end.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from pyspark.errors import AnalysisException
from pyspark.sql import functions

from wirebroker.pipelines.delivery.positions import end_offsets
from wirebroker.pipelines.job.errors import JobFileError
from wirebroker.pipelines.job.job_file import RECREATED_TOPIC, setting
from wirebroker.pipelines.rows.placed_batches import PlacingTask
from wirebroker.pipelines.rows.placed_rows import COLUMNS, PlacedRow, partition_of
from wirebroker.pipelines.rows.typed_rows import parse_schema
from wirebroker.pipelines.run.pipeline import Pipeline
from wirebroker.pipelines.source.source_table import (
    SourceOptions,
    check_source,
    ends_in_directories,
    stream_of,
    table_of,
)
from wirebroker.pipelines.windows.late_rows import set_late_watermark, too_late
from wirebroker.pipelines.windows.parsed_values import quoted, with_row

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import pyarrow
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming import StreamingQuery

    from wirebroker.pipelines.delivery.delivery import Target
    from wirebroker.pipelines.job.job_folder import BatchPlan


_OWN: Final = ("window_start", "window_end")
_COUNTS: Final = "rows"
# Distinct from columns of a schema.
_TIME: Final = "__event_time"
_WINDOW: Final = "__window"
_ROW: Final = "__row"


@dataclass(frozen=True, kw_only=True)
class WindowsJob:
    """Settings of a windows job."""

    name: str = setting("text", "the name of the job and of the group with its positions")
    source: str = setting("text", "the topic to read; values are JSON")
    topic: str = setting("text", "the topic for closed windows; created if missing")
    checkpoint: str = setting("path", "a folder for this job only, kept between runs")
    kafka: dict[str, Any] = setting("table", "librdkafka settings, at least bootstrap.servers")
    schema: dict[str, Any] = setting("table", "the columns of a value: name = type")
    key: str = setting("text", "the column to group rows by, also the windows' key")
    time: str = setting("text", "the column of the event time; default: the record's timestamp", "")
    window: str = setting("text", "the length of a window", "1 minute")
    slide: str = setting("text", "the time between window starts; default: the length", "")
    delay: str = setting("text", "how late rows may arrive, in event time", "1 minute")
    columns: dict[str, Any] = setting("table", "the results of a window: name = SQL aggregate")
    table: str = setting("text", "a compacted topic to join by its records' keys", "")
    table_schema: dict[str, Any] = setting("table", "the columns of its values: name = type", {})
    parquet: str | None = setting("path", "a folder to which windows are also written", None)
    path: str = setting("paths", "log directories to read instead of the broker", "")
    partitions: int = setting("count", "partitions of the topic if it is created", 1)
    records_per_batch: int = setting("count", "the maximum offsets per batch", 1_000_000)
    every: float | None = setting(
        "seconds", "how often to look for records; default: once, to the end", None
    )
    patience: float = setting("seconds", "how long to retry before giving up", 300.0)
    recreated_topic: str = setting(*RECREATED_TOPIC)
    metrics: str | None = setting("path", "a file for a line of JSON per batch", None)
    reader: dict[str, Any] = setting("table", "more options of Spark's reader", {})
    log: str | None = setting(
        "path",
        "a file for the output of Spark and librdkafka; default: spark.log in the checkpoint",
        None,
    )
    spark: dict[str, Any] = setting("table", "settings of Spark", {})


class Windows(Pipeline[WindowsJob]):
    """A windows job."""

    @staticmethod
    def check(job: WindowsJob, target: Target) -> None:
        """Check the settings.

        Raises:
            JobFileError: A column is missing or duplicate, or the source is invalid.
        """
        types = {column.name: column.type_name for column in parse_schema(job.schema)}
        if job.key not in types:
            raise JobFileError(f"key = {job.key!r} is not a column of [schema]")
        if job.time and types.get(job.time) != "timestamp":
            raise JobFileError(f"time = {job.time!r} is not a timestamp of [schema]")
        if not job.columns or not all(
            isinstance(expression, str) for expression in job.columns.values()
        ):
            raise JobFileError('[columns] is empty: name = "sum(price)", one per line')
        joined = [column.name for column in parse_schema(job.table_schema)] if job.table else []
        # Spark and Parquet ignore case.
        names = [name.lower() for name in (*_OWN, job.key, *job.columns, *joined)]
        twice = {name for name in names if names.count(name) > 1}
        if twice:
            raise JobFileError(f"a window would have {', '.join(sorted(twice))} twice")
        hidden = {_TIME, _WINDOW, _ROW}.intersection(map(str.lower, (*types, *names)))
        if hidden:
            raise JobFileError(f"a column cannot have the name {', '.join(sorted(hidden))}")
        if target.topic in (job.source, job.table):
            raise JobFileError(f"topic = {target.topic!r} is also a topic that the job reads")
        check_source(Windows.source_of(job, target))

    @staticmethod
    def source_of(job: WindowsJob, target: Target) -> SourceOptions:
        topics = (job.source, job.table) if job.table else (job.source,)
        return SourceOptions(target.kafka["bootstrap.servers"], job.path, job.reader, topics)

    def start(self, handle: Callable[[DataFrame, int], None]) -> StreamingQuery:
        """Start the query.

        Raises:
            JobFileError: Spark rejects a window or a column.
        """
        job = self._job
        records = stream_of(
            self._spark, self._source, job.source, start_ms=None, max_offsets=job.records_per_batch
        )
        try:
            windows = self._windows(records)
        except AnalysisException as error:
            raise JobFileError(f"[columns], window, slide or delay: {error}") from error
        return self._stream(windows, handle)

    def handle(self, table: DataFrame, batch: int) -> None:
        """Send a batch's closed windows to Kafka and Parquet."""
        began = self._clock.monotonic()
        job = self._job
        plan = self._delivery.plan(batch, self._table_ends)
        sparks_batch = batch - self._checkpoint.first_batch
        set_late_watermark(self._spark, Path(self._checkpoint.spark), sparks_batch)
        windows = self._joined(table, plan)
        if job.parquet is not None:
            windows = windows.persist()  # else Spark would aggregate and join twice
        try:
            text = functions.to_json(
                functions.struct(*map(quoted, windows.columns)), {"ignoreNullFields": "false"}
            )
            rows = windows.select(
                functions.col(quoted(job.key)).cast("string").cast("binary").alias("key"),
                text.cast("binary").alias("value"),
                functions.unix_millis("window_end").alias("timestamp"),
            )
            placer = WindowPlacer(self._target.topic, plan)
            sent = self._send(rows.mapInArrow(PlacingTask(placer.rows), COLUMNS), plan)
            if job.parquet is not None and not windows.isEmpty():
                folder = Path(job.parquet) / f"batch={batch:08d}"
                windows.write.mode("overwrite").parquet(str(folder))
        finally:
            windows.unpersist()
        self._reporter.batch(batch, sent, began)

    def note(self, progress: dict[str, Any]) -> None:
        counted = (progress.get("observedMetrics") or {}).get(_COUNTS)
        if counted is not None:
            late = counted["late"]
            self._reporter.count(rows=counted["all"], bad_rows=counted["bad"], late_rows=late)

    def _windows(self, records: DataFrame) -> DataFrame:
        job = self._job
        columns = parse_schema(job.schema)
        rows = with_row(records, columns).select("timestamp", "late_watermark_ms", "row")
        time = f"row.{quoted(job.time)}" if job.time else "timestamp"
        # Records, and so windows, cannot have timestamps before 1970.
        bad = functions.expr(f"row IS NULL OR {time} IS NULL OR {time} < timestamp_millis(0)")
        late = too_late(
            self._spark,
            functions.expr(time),
            rows["late_watermark_ms"],
            job.window,
            job.slide or job.window,
        )
        good = rows.observe(
            _COUNTS,
            functions.count("*").alias("all"),
            functions.count_if(bad).alias("bad"),
            functions.count_if(~bad & late).alias("late"),
        ).where(~bad)
        timed = good.select(functions.expr(time).alias(_TIME), "row.*")
        lengths = [job.window, *([job.slide] if job.slide else [])]
        grouped = timed.withWatermark(_TIME, job.delay).groupBy(
            functions.window(_TIME, *lengths).alias(_WINDOW), quoted(job.key)
        )
        aggregates = [functions.expr(text).alias(name) for name, text in job.columns.items()]
        return grouped.agg(*aggregates).select(
            functions.col(f"{_WINDOW}.start").alias(_OWN[0]),
            functions.col(f"{_WINDOW}.end").alias(_OWN[1]),
            *map(quoted, (job.key, *job.columns)),
        )

    @property
    def _source(self) -> SourceOptions:
        return self.source_of(self._job, self._target)

    def _table_ends(self) -> dict[str, Any]:
        job = self._job
        if not job.table:
            return {}
        if job.path:
            return {"table": ends_in_directories(job.path, job.table)}
        return {"table": end_offsets(self._target.kafka, job.table)}

    def _joined(self, windows: DataFrame, plan: BatchPlan) -> DataFrame:
        job = self._job
        if not job.table:
            return windows
        records = table_of(self._spark, self._source, job.table, ends=plan.more["table"])
        names = ("value", "timestamp")
        latest = records.groupBy("key").agg(
            *(functions.max_by(name, "offset").alias(name) for name in names)
        )
        rows = with_row(latest.where("value IS NOT NULL"), parse_schema(job.table_schema))
        side = rows.select(
            functions.col("key").cast("string").alias("_key"), functions.col("row").alias(_ROW)
        )
        key = windows[quoted(job.key)].cast("string")
        joined = windows.join(side, key == side["_key"], "left")
        return joined.select(*(windows[quoted(name)] for name in windows.columns), f"{_ROW}.*")


# Closed windows to placed rows


class WindowPlacer:
    """Placer for the windows of one batch."""

    def __init__(self, topic: str, plan: BatchPlan) -> None:
        self._topic = topic
        self._plan = plan

    def rows(self, batch: pyarrow.RecordBatch) -> Iterator[PlacedRow]:
        """Return the rows of an Arrow batch; the timestamp is a window's end."""
        columns = (batch.column(name).to_pylist() for name in ("key", "value", "timestamp"))
        for key, value, timestamp in zip(*columns, strict=True):
            partition = partition_of(key, value, "", self._plan.partitions)
            # Ordered by end.
            yield PlacedRow(
                *(partition, "", timestamp, 0, self._topic, partition),
                *(key, value, timestamp, []),
            )
