"""A topic as a Spark table or stream, from Spark's connector or from log directories."""

from __future__ import annotations

import datetime
import json
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import pyspark

from wirebroker.pipelines.job.errors import JobFileError
from wirebroker.pipelines.job.job_file import like
from wirebroker.pipelines.source.reader_options import check_reader, of_a_client, texts_of
from wirebroker.segments import SegmentDataSource
from wirebroker.segments.errors import OptionError
from wirebroker.segments.log_directories import LogDirectories
from wirebroker.segments.options import parse_options

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import DataFrame, SparkSession

_CONNECTOR: Final = "org.apache.spark:spark-sql-kafka-0-10_2.13"


class SourceOptions(NamedTuple):
    """Where topics are read: log directories, or with path "" the connector."""

    bootstrap: str
    path: str
    options: dict[str, Any]
    topics: tuple[str, ...]

    @property
    def topics_at_brokers(self) -> tuple[str, ...]:
        """The topics that a broker must have."""
        return () if self.path else self.topics


def check_source(source: SourceOptions) -> None:
    """Check a path and options before Spark starts.

    Raises:
        JobFileError: A directory or topic is missing, or an option is invalid.
    """
    check_reader(source.path, source.options)
    if not source.path:
        return
    try:
        directories = LogDirectories(tuple(source.path.split(",")))
        folders = directories.find(lambda *_: True)
    except OptionError as error:
        raise JobFileError(f"path = {source.path!r}: {error}") from error
    topics = {topic for topic, _ in folders}
    for name in source.topics:
        if name not in topics:
            raise JobFileError(f"there is no topic {name} in {source.path}{like(name, topics)}")


def stream_of(
    spark: SparkSession,
    source: SourceOptions,
    topic: str,
    *,
    start_ms: int | None,
    max_offsets: int,
) -> DataFrame:
    """Return a stream of a topic's committed records from `start_ms`, with headers.

    Batches have at most `max_offsets` offsets.
    """
    reader = spark.readStream.format(_format(spark, source)).options(**_options(source, topic))
    if start_ms is None:
        reader = reader.option("startingOffsets", "earliest")
    else:
        reader = reader.option("startingTimestamp", str(start_ms))
        reader = reader.option("startingOffsetsByTimestampStrategy", "latest")
    reader = reader.option("maxOffsetsPerTrigger", str(max_offsets))
    return reader.options(**texts_of(source.options)).load()


def table_of(
    spark: SparkSession, source: SourceOptions, topic: str, *, ends: Mapping[str, int]
) -> DataFrame:
    """Return a topic's committed records as a table, up to the end offset of each partition."""
    reader = spark.read.format(_format(spark, source)).options(**_options(source, topic))
    reader = reader.options(**of_a_client(source.options)).option("startingOffsets", "earliest")
    # Compaction removes records.
    reader = reader.option("failOnDataLoss", "false")
    return reader.option("endingOffsets", json.dumps({topic: dict(ends)})).load()


def ends_in_directories(path: str, topic: str) -> dict[str, int]:
    """Return the end offset of each partition's committed records.

    Raises:
        OptionError: A directory is missing, or a partition is in two directories.
        KafkaError, OSError, DataLossError: A log cannot be read.
    """
    directories = LogDirectories(tuple(path.split(",")))
    folders = directories.find(lambda name, _: name == topic)
    return {
        str(key[1]): directories.end_offset(key, folder, folder.log(), is_committed=True)
        for key, folder in folders.items()
    }


def check_topics(path: str, pattern: str) -> None:
    """Check log directories and a pattern of topics before Spark starts.

    Raises:
        OptionError: A directory is missing, or the pattern is invalid.
        JobFileError: No topic matches.
    """
    options = parse_options({"path": path, "subscribePattern": pattern}, is_stream=False)
    directories = LogDirectories(options.directories)
    if not directories.find(options.wants):
        topics = {topic for topic, _ in directories.find(lambda *_: True)}
        raise JobFileError(f"no topic in {path} matches {pattern!r}{like(pattern, topics)}")


def packages_for(source: SourceOptions, settings: Mapping[str, Any]) -> dict[str, str]:
    """Return the settings with which Spark downloads the connector, unless they name jars."""
    if source.path or "spark.jars" in settings or "spark.jars.packages" in settings:
        return {}
    return {"spark.jars.packages": f"{_CONNECTOR}:{pyspark.__version__}"}


def milliseconds_at(name: str, text: str) -> int | None:
    """Convert a time to ms since 1970, or "" to None; raise JobFileError."""
    if not text:
        return None
    try:
        time = datetime.datetime.fromisoformat(text)
    except ValueError as error:
        raise JobFileError(f"{name} = {text!r} is not a time like 2026-01-31T12:00:00Z") from error
    if time.tzinfo is None:
        time = time.replace(tzinfo=datetime.UTC)
    return int(time.timestamp() * 1000)


def _format(spark: SparkSession, source: SourceOptions) -> str:
    if not source.path:
        return "kafka"
    spark.dataSource.register(SegmentDataSource)
    return SegmentDataSource.name()


def _options(source: SourceOptions, topic: str) -> dict[str, str]:
    address = (
        {"path": source.path} if source.path else {"kafka.bootstrap.servers": source.bootstrap}
    )
    common = {"kafka.isolation.level": "read_committed", "includeHeaders": "true"}
    return {**address, "subscribe": topic, **common}
