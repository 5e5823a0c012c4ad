"""Counts, rates, gaps and duplicates of each partition."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from pyspark.sql import functions

from wirebroker.segments import SegmentDataSource
from wirebroker.segments.log_directories import LogDirectories, topic_ids
from wirebroker.segments.options import parse_options

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import DataFrame, SparkSession

    from wirebroker.segments.log_directories import PartitionFolder
    from wirebroker.storage.checkpoints import TopicPartition

_PLACE: Final = ("topic", "partition")
_OF_KAFKA: Final = "__"  # prefix of internal topics; most of their partitions are empty


class PartitionQuality(NamedTuple):
    """The statistics of a partition; its transaction markers are not records.

    `value_bytes` includes keys. `first_offset` is -1 without records. `seconds` is the time between
    the earliest and the latest timestamp. `keys` is the number of different keys, `keyed` that of
    records with a key.
    """

    topic: str
    partition: int
    records: int
    value_bytes: int
    first_offset: int
    last_offset: int
    markers: int
    seconds: float
    resent: int
    keys: int
    keyed: int

    @property
    def gaps(self) -> int:
        """The number of offsets between first and last that compaction removed."""
        if self.first_offset < 0:
            return 0
        return self.last_offset - self.first_offset + 1 - self.records - self.markers

    @property
    def rate(self) -> float:
        """Records a second, by timestamps."""
        return self.records / self.seconds if self.seconds else 0.0


def look_at(spark: SparkSession, path: str, topics: str) -> list[PartitionQuality]:
    """Return the statistics of each partition, by topic and number.

    Internal topics' partitions without records are left out.

    Raises:
        OptionError: A directory is missing, or the pattern is invalid.
    """
    options = {"path": path, "subscribePattern": topics, "includeControlRecords": "true"}
    partitions = _partition_folders(options)
    spark.dataSource.register(SegmentDataSource)
    table = spark.read.format(SegmentDataSource.name()).options(**options).load()
    counted = _counted(table).join(_resent(table), [*_PLACE], "left").na.fill(0, ["resent"])
    rows = counted.orderBy(*_PLACE).select(*PartitionQuality._fields).collect()
    empty = [
        _without_records(*partition)
        for partition in partitions
        if not partition[0].startswith(_OF_KAFKA)
    ]
    by_partition = {(row.topic, row.partition): row for row in empty}
    by_partition |= {(row.topic, row.partition): PartitionQuality(*row) for row in rows}
    return [by_partition[key] for key in sorted(by_partition)]


def existing_topics(path: str, topics: str) -> list[str]:
    """Return the reported topics, except internal ones; raise OptionError as `look_at`."""
    partitions = _partition_folders({"path": path, "subscribePattern": topics})
    return sorted({topic for topic, _ in partitions if not topic.startswith(_OF_KAFKA)})


def existing_topic_ids(path: str, topics: str) -> dict[str, str]:
    """Return these topics' known ids; raise OptionError as `look_at`."""
    ids = topic_ids(_partition_folders({"path": path, "subscribePattern": topics}))
    return {topic: topic_id for topic, topic_id in ids.items() if not topic.startswith(_OF_KAFKA)}


def _partition_folders(options: Mapping[str, str]) -> dict[TopicPartition, PartitionFolder]:
    parsed = parse_options(options, is_stream=False)
    return LogDirectories(parsed.directories).find(parsed.wants)


def _without_records(topic: str, partition: int) -> PartitionQuality:
    return PartitionQuality(topic, partition, 0, 0, -1, -1, 0, 0.0, 0, 0, 0)


def _counted(table: DataFrame) -> DataFrame:
    data_filter = "FILTER (WHERE NOT control)"
    size = "ifnull(length(key), 0) + ifnull(length(value), 0)"
    time = "unix_millis(timestamp)"
    expressions = {
        "records": "count_if(NOT control)",
        "value_bytes": f"coalesce(sum({size}) {data_filter}, 0)",
        "first_offset": f"coalesce(min(offset) {data_filter}, -1)",
        "last_offset": f"coalesce(max(offset) {data_filter}, -1)",
        "seconds": f"coalesce(max({time}) {data_filter} - min({time}) {data_filter}, 0) / 1000D",
        "keys": f"count(DISTINCT key) {data_filter}",
        "keyed": "count_if(NOT control AND key IS NOT NULL)",
    }
    counts = [functions.expr(text).alias(name) for name, text in expressions.items()]
    counted = table.groupBy(*_PLACE).agg(*counts)
    bounds = counted.select(*_PLACE, "first_offset", "last_offset")
    inside = table.where("control").join(functions.broadcast(bounds), [*_PLACE])
    inside = inside.where("offset BETWEEN first_offset AND last_offset")
    markers = inside.groupBy(*_PLACE).agg(functions.count("*").alias("markers"))
    return counted.join(markers, [*_PLACE], "left").na.fill(0, ["markers"])


def _resent(table: DataFrame) -> DataFrame:
    produced = table.where("NOT control AND producerId >= 0")
    counts = produced.groupBy(*_PLACE, "producerId", "producerEpoch", "sequence").count()
    return counts.groupBy(*_PLACE).agg(functions.expr("sum(count - 1)").alias("resent"))
