"""Archive of topics in Parquet, exactly once, and its comparison with the log.

    TARGET/records/topic=T/date=YYYY-MM-DD/*.parquet   the records, all columns of the data source
    TARGET/checkpoint/                                 the progress
    TARGET/lost/                                       ranges of lost offsets (loss_report.py)

Only files in the log of Spark's file sink (`records/_spark_metadata`) belong to the archive.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from pyspark.sql import functions

from wirebroker.pipelines.archive.archived_topics import of_the_log
from wirebroker.pipelines.run.query_watch import QueryWatch
from wirebroker.segments import SegmentDataSource
from wirebroker.segments.row_schema import COLUMN_TYPES, schema_text

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

    from wirebroker.pipelines.run.job_run import StopRequest

_COLUMNS: Final = tuple(COLUMN_TYPES)
_COMMITTED: Final = {"kafka.isolation.level": "read_committed", "columns": ",".join(_COLUMNS)}
# Files of about 100 MB; a killed run repeats little.
MOST_OFFSETS: Final = 2_000_000
_CONTENT: Final = ("offset", "timestamp", "key", "value", "headers")


class NoArchiveError(Exception):
    """A folder without an archive."""


class PartitionSummary(NamedTuple):
    """A summary of a partition's records.

    The checksum is of offset, timestamp, key, value and headers, independent of order.
    """

    topic: str
    partition: int
    record_count: int
    first_offset: int
    last_offset: int
    checksum: int

    def told(self) -> str:
        """Return the summary as text."""
        return (
            f"{self.record_count} records, offsets {self.first_offset} to {self.last_offset}, "
            f"checksum {self.checksum & (1 << 64) - 1:016x}"
        )


def archive(
    spark: SparkSession,
    path: str,
    topics: str,
    target: Path,
    most_offsets: int = MOST_OFFSETS,
    *,
    skips_lost: bool = False,
    restarts_recreated: bool = False,
    stop: StopRequest | None = None,
    tell: Callable[[dict[str, Any]], None] | None = None,
    look: Callable[[], None] = lambda: None,
) -> int:
    """Add new records to an archive; return their number.

    With `skips_lost`, lost records are listed in the folder `lost`; with `restarts_recreated`,
    recreated topics are archived from their beginning. `tell` and `look` are those of QueryWatch.

    Raises:
        StreamingQueryException: Records are lost or a log is damaged; the next run continues.
    """
    spark.dataSource.register(SegmentDataSource)
    options = {"path": path, "subscribePattern": topics, "startingOffsets": "earliest"}
    if skips_lost:
        options |= {"failOnDataLoss": "false", "lossReport": str(target / "lost")}
    reader = spark.readStream.format(SegmentDataSource.name()).options(**options, **_COMMITTED)
    reader = reader.option("recreatedTopics", "restart" if restarts_recreated else "fail")
    table = reader.option("maxOffsetsPerTrigger", str(most_offsets)).load()
    writer = table.withColumn("date", functions.to_date("timestamp")).writeStream
    query = (
        writer.format("parquet")
        .partitionBy("topic", "date")
        .option("path", str(target / "records"))
        .option("checkpointLocation", str(target / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    watch = QueryWatch(query, stop, tell, look)
    watch.follow()
    return watch.rows


def archived(spark: SparkSession, target: Path) -> DataFrame:
    """Return an archive's records; raise NoArchiveError if there is no archive."""
    if not (target / "records" / "_spark_metadata").is_dir():
        raise NoArchiveError(f"there is no archive in {target}, or it is empty")
    # Otherwise Spark converts topic names that look like numbers or dates.
    setting = "spark.sql.sources.partitionColumnTypeInference.enabled"
    before = spark.conf.get(setting)
    spark.conf.set(setting, "false")
    try:
        # Older files lack newer columns.
        reader = spark.read.schema(f"{schema_text(_COLUMNS)}, date date")
        return reader.parquet(str(target / "records"))
    finally:
        spark.conf.set(setting, before or "true")


def compare(
    spark: SparkSession, path: str, topics: str, target: Path, *, restarts_recreated: bool = False
) -> list[tuple[PartitionSummary, PartitionSummary]]:
    """Return each archived partition's summaries: in the archive and in the log.

    Only offsets that both cover are compared, without records of deleted topics that were
    recreated.

    Raises:
        NoArchiveError: There is no archive.
        RecreatedTopicError: As `of_the_log`.
    """
    spark.dataSource.register(SegmentDataSource)
    table = of_the_log(
        *(spark, archived(spark, target), path, topics), restarts_recreated=restarts_recreated
    )
    options = {"subscribePattern": topics, **_COMMITTED}
    log = spark.read.format(SegmentDataSource.name()).options(**options).load(path)
    lasts = table.groupBy("topic", "partition").agg(functions.max("offset").alias("last"))
    firsts = log.groupBy("topic", "partition").agg(functions.min("offset").alias("first"))
    bounds = lasts.join(firsts, ["topic", "partition"]).cache()
    is_there = (functions.col("offset") >= functions.col("first")) & (
        functions.col("offset") <= functions.col("last")
    )
    key = ["topic", "partition"]
    logged = log.join(functions.broadcast(bounds), key).where(is_there)
    archived_rows = table.join(functions.broadcast(bounds), key).where(is_there)
    in_log = {(summary.topic, summary.partition): summary for summary in _summaries(logged)}
    return [
        (summary, in_log[summary.topic, summary.partition])
        for summary in _summaries(archived_rows)
        if (summary.topic, summary.partition) in in_log
    ]


def _summaries(table: DataFrame) -> list[PartitionSummary]:
    checksum = functions.bit_xor(functions.xxhash64(*_CONTENT))
    aggregated = table.groupBy("topic", "partition").agg(
        functions.count("*"), functions.min("offset"), functions.max("offset"), checksum
    )
    return [PartitionSummary(*row) for row in aggregated.orderBy("topic", "partition").collect()]
