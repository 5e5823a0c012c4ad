"""Topics to Parquet and the comparison of the two: exactly once, resumable.

    TARGET/records/topic=T/date=YYYY-MM-DD/*.parquet   the records, all columns of the data source
    TARGET/checkpoint/                                 how far it goes
    TARGET/lost/                                       which offsets were gone (loss_report.py)

A run reads what has come since the last one, up to the last stable offset, and ends. Spark's file
sink enters the files of a micro-batch into its log (`records/_spark_metadata`) at once, and the
checkpoint holds which offsets a micro-batch has: a run that was killed is done again by the next,
and its files count once. What isn't in that log (files of a run that was killed) is no record; so
an archive is to be read by Spark, or by who reads that log.
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

    from wirebroker.pipelines.run.job_run import StopWish

_COLUMNS: Final = tuple(COLUMN_TYPES)
_COMMITTED: Final = {"kafka.isolation.level": "read_committed", "columns": ",".join(_COLUMNS)}
# So many offsets make a micro-batch: files of some 100 MB, and little is done again after a kill.
MOST_OFFSETS: Final = 2_000_000
_CONTENT: Final = ("offset", "timestamp", "key", "value", "headers")


class NoArchiveError(Exception):
    """A folder without an archive."""


class PartitionSummary(NamedTuple):
    """What a partition's records come to.

    Attributes:
        topic: Its topic.
        partition: Its number.
        record_count: How many.
        first_offset: The smallest; -1: there is none.
        last_offset: The largest.
        checksum: Of offset, timestamp, key, value and headers, whatever the order of records.
    """

    topic: str
    partition: int
    record_count: int
    first_offset: int
    last_offset: int
    checksum: int

    def told(self) -> str:
        """Return it in words."""
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
    stop: StopWish | None = None,
    tell: Callable[[dict[str, Any]], None] | None = None,
    look: Callable[[], None] = lambda: None,
) -> int:
    """Bring an archive up to date; return how many records came.

    Args:
        spark: The session; the data source is registered in it.
        path: Log directories, comma between.
        topics: A pattern.
        target: The archive's folder.
        most_offsets: That make a micro-batch.
        skips_lost: Whether records that retention or deletion removed are skipped, and noted in
            the archive's folder `lost`, instead of being an error.
        restarts_recreated: Whether a topic that was deleted and created again is archived from its
            beginning; else it is an error.
        stop: The wish for an end, which comes behind the micro-batch at work.
        tell: Is told what Spark says of each micro-batch.
        look: Is called every quarter of a second while the query runs.

    Raises:
        StreamingQueryException: Records that were to come are gone, or a log is damaged; what was
            archived before is kept, and the next run goes on from there.
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
    """Return an archive's records.

    Raises:
        NoArchiveError: There is none.
    """
    if not (target / "records" / "_spark_metadata").is_dir():
        raise NoArchiveError(f"there is no archive in {target}, or nothing in it yet")
    # Else topics named like numbers or dates would become such.
    setting = "spark.sql.sources.partitionColumnTypeInference.enabled"
    before = spark.conf.get(setting)
    spark.conf.set(setting, "false")
    try:
        # Files written before a column was added lack it.
        reader = spark.read.schema(f"{schema_text(_COLUMNS)}, date date")
        return reader.parquet(str(target / "records"))
    finally:
        spark.conf.set(setting, before or "true")


def compare(
    spark: SparkSession, path: str, topics: str, target: Path, *, restarts_recreated: bool = False
) -> list[tuple[PartitionSummary, PartitionSummary]]:
    """Return what each archived partition comes to in the archive and in the log.

    As far as both go: what retention has taken from the log since is not compared, nor what has
    come to it, nor what the archive has of a topic that was recreated since. A partition that the
    log has no more is not in the list. Compaction makes a difference: the archive keeps what it
    had.

    Raises:
        NoArchiveError: There is none.
        RecreatedTopicError: A topic was recreated, and nothing of the new one is in the archive;
            not if `restarts_recreated`.
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
    kept = table.join(functions.broadcast(bounds), key).where(is_there)
    in_log = {(each.topic, each.partition): each for each in _summaries(logged)}
    return [
        (each, in_log[each.topic, each.partition])
        for each in _summaries(kept)
        if (each.topic, each.partition) in in_log
    ]


def _summaries(table: DataFrame) -> list[PartitionSummary]:
    checksum = functions.bit_xor(functions.xxhash64(*_CONTENT))
    found = table.groupBy("topic", "partition").agg(
        functions.count("*"), functions.min("offset"), functions.max("offset"), checksum
    )
    return [PartitionSummary(*row) for row in found.orderBy("topic", "partition").collect()]
