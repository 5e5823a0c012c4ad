"""Spark reads and writes topics in batches; Spark and another client count the records."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from compat_tests.clients.message import CODECS
from spark_it.kit import records
from spark_it.kit.records import START_MS, Count, count_rows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from tests.support.brokers.brokers import Broker

pytestmark = [pytest.mark.long, pytest.mark.java]

PARTITIONS = 3
PER_CODEC = 4_000


def load(spark: SparkSession, broker: Broker, **options: str) -> DataFrame:
    address = {"kafka.bootstrap.servers": broker.bootstrap}
    return spark.read.format("kafka").options(**address, **options).load()


@pytest.mark.shows("produce, consume", "spark", "batch")
def test_batch_contains_each_record_of_every_codec_once(
    spark: SparkSession, broker: Broker, topic: str
) -> None:
    records.create_topic(broker.bootstrap, topic, partitions=PARTITIONS)
    for position, codec in enumerate(CODECS):
        numbers = range(position * PER_CODEC, (position + 1) * PER_CODEC)
        records.write(broker.bootstrap, topic, numbers, partitions=PARTITIONS, codec=codec)
    table = load(spark, broker, subscribe=topic, includeHeaders="true")
    assert count_rows(table) == Count.of_all(len(CODECS) * PER_CODEC)
    by_header = table.selectExpr("CAST(headers[0].value AS STRING) codec").groupBy("codec").count()
    assert dict(by_header.collect()) == dict.fromkeys(CODECS, PER_CODEC)
    matching = table.where(
        "CAST(key AS STRING) = concat('k', CAST(value AS STRING) % 10)"
        f" AND unix_millis(timestamp) = {START_MS} + CAST(value AS STRING)"
        f" AND partition = CAST(value AS STRING) % {PARTITIONS} AND timestampType = 0"
    )
    assert matching.count() == len(CODECS) * PER_CODEC


def test_batch_between_offsets_contains_only_these(
    spark: SparkSession, broker: Broker, topic: str
) -> None:
    records.create_topic(broker.bootstrap, topic, partitions=PARTITIONS)
    records.write(broker.bootstrap, topic, range(3_000), partitions=PARTITIONS)
    starts = json.dumps({topic: {"0": 10, "1": -2, "2": 900}})
    ends = json.dumps({topic: {"0": 20, "1": 5, "2": -1}})
    table = load(spark, broker, subscribe=topic, startingOffsets=starts, endingOffsets=ends)
    offsets = {(row.partition, row.offset) for row in table.collect()}
    expected = {(0, n) for n in range(10, 20)} | {(1, n) for n in range(5)}
    assert offsets == expected | {(2, n) for n in range(900, 1000)}


def test_batch_between_timestamps_contains_only_these(
    spark: SparkSession, broker: Broker, topic: str
) -> None:
    records.create_topic(broker.bootstrap, topic, partitions=PARTITIONS)
    records.write(broker.bootstrap, topic, range(3_000), partitions=PARTITIONS)
    first, last = START_MS + 1_000, START_MS + 2_500
    table = load(
        spark,
        broker,
        subscribe=topic,
        startingTimestamp=str(first),
        endingOffsetsByTimestamp=json.dumps({topic: dict.fromkeys("012", last)}),
    )
    numbers = sorted(int(row.value) for row in table.collect())
    assert numbers == list(range(1_000, 2_500))


def test_a_pattern_of_topics_is_read_in_more_tasks_than_there_are_partitions(
    spark: SparkSession, broker: Broker, topic: str
) -> None:
    for suffix in ("a", "b"):
        records.create_topic(broker.bootstrap, f"{topic}-{suffix}", partitions=PARTITIONS)
        records.write(broker.bootstrap, f"{topic}-{suffix}", range(6_000), partitions=PARTITIONS)
    table = load(spark, broker, subscribePattern=f"{topic}-[ab]", minPartitions="12")
    assert table.rdd.getNumPartitions() == 12
    by_topic = {row.topic: row["count"] for row in table.groupBy("topic").count().collect()}
    assert by_topic == {f"{topic}-a": 6_000, f"{topic}-b": 6_000}
    assert count_rows(table.where(f"topic = '{topic}-b'")) == Count.of_all(6_000)


@pytest.mark.shows("produce, consume", "spark", "writing")
@pytest.mark.parametrize("codec", CODECS)
def test_batch_write_writes_each_record_once(
    spark: SparkSession, broker: Broker, topic: str, codec: str
) -> None:
    count = 20_000
    records.create_topic(broker.bootstrap, topic, partitions=PARTITIONS)
    columns = ["CAST(id AS STRING) value", "concat('k', id % 10) key", f"id % {PARTITIONS} part"]
    table = spark.range(count, numPartitions=4).selectExpr(*columns)
    table = table.withColumn("partition", table.part.cast("int")).drop("part")
    options = {"kafka.bootstrap.servers": broker.bootstrap, "kafka.compression.type": codec}
    table.write.format("kafka").options(topic=topic, **options).save()
    ends = records.end_offsets(broker.bootstrap, topic, partitions=PARTITIONS)
    assert sum(ends) == count
    written = records.read(broker.bootstrap, topic, count, partitions=PARTITIONS)
    assert sorted(number for _, _, number in written) == list(range(count))
    assert all(number % PARTITIONS == partition for partition, _, number in written)
