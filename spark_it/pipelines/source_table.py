"""A topic as a table or a stream of Spark's: by the stock connector, or by its log directories.

The connector's jar is fetched by Spark itself (`spark.jars.packages`) unless the job's file names
jars; the data source over directories needs none.
"""

from __future__ import annotations

import datetime
import json
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import pyspark

from wirebroker.pipelines.errors import JobFileError
from wirebroker.segments import SegmentDataSource

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import DataFrame, SparkSession

_CONNECTOR: Final = "org.apache.spark:spark-sql-kafka-0-10_2.13"


class SourceWish(NamedTuple):
    """Where a topic is read.

    Attributes:
        bootstrap: Brokers, for the connector.
        path: Log directories, comma between; "": by the connector.
        options: More options of either reader.
    """

    bootstrap: str
    path: str
    options: dict[str, Any]


def stream_of(
    spark: SparkSession, wish: SourceWish, topic: str, *, start_ms: int | None, most: int
) -> DataFrame:
    """Return a stream of a topic's committed records, with headers.

    Args:
        spark: The session.
        wish: Where it is read.
        topic: Its name.
        start_ms: The earliest timestamp, ms since 1970; None: from the first record on.
        most: How many offsets make a batch.
    """
    reader = spark.readStream.format(_format(spark, wish)).options(**_options(wish, topic))
    if start_ms is None:
        reader = reader.option("startingOffsets", "earliest")
    else:
        reader = reader.option("startingTimestamp", str(start_ms))
        reader = reader.option("startingOffsetsByTimestampStrategy", "latest")
    reader = reader.option("maxOffsetsPerTrigger", str(most))
    return reader.options(**_texts(wish.options)).load()


def table_of(
    spark: SparkSession, wish: SourceWish, topic: str, *, ends: Mapping[str, int]
) -> DataFrame:
    """Return a topic's committed records as a table, up to offsets.

    Args:
        spark: The session.
        wish: Where it is read.
        topic: Its name.
        ends: Of each partition, by its number: the first offset that is too late.
    """
    reader = spark.read.format(_format(spark, wish)).options(**_options(wish, topic))
    reader = reader.option("startingOffsets", "earliest")
    # A compacted topic has lost records by nature.
    reader = reader.option("failOnDataLoss", "false")
    return reader.option("endingOffsets", json.dumps({topic: dict(ends)})).load()


def packages_for(wish: SourceWish, settings: Mapping[str, Any]) -> dict[str, str]:
    """Return the settings by which Spark gets the connector, if the job needs and names none."""
    if wish.path or "spark.jars" in settings or "spark.jars.packages" in settings:
        return {}
    return {"spark.jars.packages": f"{_CONNECTOR}:{pyspark.__version__}"}


def milliseconds_at(name: str, text: str) -> int | None:
    """Return a moment of a job's file, ms since 1970; None: it is empty.

    Raises:
        JobFileError: It is none.
    """
    if not text:
        return None
    try:
        moment = datetime.datetime.fromisoformat(text)
    except ValueError as error:
        raise JobFileError(f"{name} = {text!r} is no moment, as 2026-01-31T12:00:00Z is") from error
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=datetime.UTC)
    return int(moment.timestamp() * 1000)


def _format(spark: SparkSession, wish: SourceWish) -> str:
    if not wish.path:
        return "kafka"
    spark.dataSource.register(SegmentDataSource)
    return SegmentDataSource.name()


def _options(wish: SourceWish, topic: str) -> dict[str, str]:
    place = {"path": wish.path} if wish.path else {"kafka.bootstrap.servers": wish.bootstrap}
    common = {"kafka.isolation.level": "read_committed", "includeHeaders": "true"}
    return {**place, "subscribe": topic, **common}


def _texts(options: Mapping[str, Any]) -> dict[str, str]:
    return {
        name: str(value).lower() if isinstance(value, bool) else str(value)
        for name, value in options.items()
    }
