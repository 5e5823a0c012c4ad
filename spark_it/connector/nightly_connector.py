"""Other modes of Spark's connector (`python -m tests.nightly spark-connector`).

Real-time and continuous mode, lost data, created and deleted topics, and batch limits.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient

from compat_tests.clients.message import WAIT_S
from spark_it.connector.test_stream import (
    PARTITIONS,
    FileSink,
    read_stream,
    rows_read,
    stopped_at_the_end,
    wait_for_rows,
    wait_until,
)
from spark_it.kit import records
from spark_it.kit.records import Count

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from tests.support.brokers.brokers import Broker

pytestmark = [pytest.mark.long, pytest.mark.java]


def delete_records(bootstrap: str, topic: str, before: int) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    for future in admin.delete_records([TopicPartition(topic, 0, before)]).values():
        future.result(WAIT_S)


def start_to_topic(
    spark: SparkSession, broker: Broker, topic: str, folder: Path, mode: dict[str, str]
) -> StreamingQuery:
    table = read_stream(spark, broker, topic).select("value")
    writer = table.writeStream.format("kafka").trigger(**mode)
    if "realTime" in mode:
        writer = writer.outputMode("update")
    options = {"kafka.bootstrap.servers": broker.bootstrap, "topic": f"{topic}-copy"}
    return writer.options(checkpointLocation=str(folder), **options).start()


@pytest.mark.parametrize(
    "mode", [{"continuous": "1 second"}, {"realTime": "5 seconds"}], ids=["continuous", "real-time"]
)
def test_continuous_and_real_time_modes_copy_each_record(
    spark: SparkSession, broker: Broker, topic: str, tmp_path: Path, mode: dict[str, str]
) -> None:
    for name in (topic, f"{topic}-copy"):
        records.create_topic(broker.bootstrap, name, partitions=2)
    records.write(broker.bootstrap, topic, range(1_000), partitions=2)
    with stopped_at_the_end(start_to_topic(spark, broker, topic, tmp_path, mode)) as query:

        def copied() -> int:
            return sum(records.end_offsets(broker.bootstrap, f"{topic}-copy", partitions=2))

        wait_until(query, lambda: copied() >= 1_000, "the first thousand")
        records.write(broker.bootstrap, topic, range(1_000, 2_000), partitions=2)
        wait_until(query, lambda: copied() >= 2_000, "the second thousand")
    copies = records.read(broker.bootstrap, f"{topic}-copy", 2_000, partitions=2)
    assert sorted(number for _, _, number in copies) == list(range(2_000))


def test_topics_of_pattern_are_added_and_removed(
    spark: SparkSession, broker: Broker, topic: str, tmp_path: Path
) -> None:
    records.create_topic(broker.bootstrap, f"{topic}-a", partitions=1)
    records.write(broker.bootstrap, f"{topic}-a", range(1_000), partitions=1)
    options = {
        "kafka.bootstrap.servers": broker.bootstrap,
        "startingOffsets": "earliest",
        "subscribePattern": f"{topic}-.*",
        "failOnDataLoss": "false",
        # Short, so that new topics that match are found soon.
        "kafka.metadata.max.age.ms": "500",
    }
    table = spark.readStream.format("kafka").options(**options).load()
    sink = FileSink(spark, tmp_path)
    with stopped_at_the_end(sink.start(table)) as query:
        wait_for_rows(query, 1_000)
        records.create_topic(broker.bootstrap, f"{topic}-b", partitions=1)
        records.write(broker.bootstrap, f"{topic}-b", range(1_000, 2_000), partitions=1)
        wait_for_rows(query, 2_000)
        admin = AdminClient({"bootstrap.servers": broker.bootstrap})
        admin.delete_topics([f"{topic}-a"])[f"{topic}-a"].result(WAIT_S)
        records.write(broker.bootstrap, f"{topic}-b", range(2_000, 3_000), partitions=1)
        wait_for_rows(query, 3_000)
        assert sink.count().numbers == 3_000


@pytest.mark.parametrize("old_way", [False, True], ids=["admin", "consumer"])
def test_batch_size_is_limited_by_max_offsets_per_trigger(
    spark: SparkSession, broker: Broker, topic: str, tmp_path: Path, *, old_way: bool
) -> None:
    records.create_topic(broker.bootstrap, topic, partitions=PARTITIONS)
    records.write(broker.bootstrap, topic, range(3_000), partitions=PARTITIONS)
    limits = {"maxOffsetsPerTrigger": "700", "minPartitions": "6", "includeHeaders": "true"}
    sink = FileSink(spark, tmp_path)
    name = "spark.sql.streaming.kafka.useDeprecatedOffsetFetching"
    spark.conf.set(name, str(old_way).lower())
    try:
        table = read_stream(spark, broker, topic, **limits)
        with stopped_at_the_end(sink.start(table)) as query:
            wait_for_rows(query, 3_000)
            sizes = [progress["numInputRows"] for progress in query.recentProgress]
    finally:
        spark.conf.unset(name)
    assert max(sizes) <= 700
    assert sink.count() == Count.of_all(3_000)


@pytest.mark.parametrize("fails", [True, False])
def test_deleted_records_fail_stream_with_fail_on_data_loss(
    spark: SparkSession, broker: Broker, topic: str, tmp_path: Path, *, fails: bool
) -> None:
    records.create_topic(broker.bootstrap, topic, partitions=1)
    records.write(broker.bootstrap, topic, range(1_000), partitions=1)
    sink = FileSink(spark, tmp_path)
    with stopped_at_the_end(sink.start(read_stream(spark, broker, topic))) as query:
        wait_for_rows(query, 1_000)
    records.write(broker.bootstrap, topic, range(1_000, 3_000), partitions=1)
    delete_records(broker.bootstrap, topic, 2_000)
    table = read_stream(spark, broker, topic, failOnDataLoss=str(fails).lower())
    with stopped_at_the_end(sink.start(table)) as query:
        if fails:
            with pytest.raises(Exception, match="data may have been lost"):
                query.awaitTermination(int(WAIT_S * 4))
        else:
            wait_for_rows(query, 1_000)
            assert rows_read(query) == 1_000
    assert sink.count().rows == (1_000 if fails else 2_000)


def test_stream_starts_at_timestamp(
    spark: SparkSession, broker: Broker, topic: str, tmp_path: Path
) -> None:
    records.create_topic(broker.bootstrap, topic, partitions=PARTITIONS)
    records.write(broker.bootstrap, topic, range(3_000), partitions=PARTITIONS)
    starts = json.dumps({topic: dict.fromkeys("012", records.START_MS + 2_000)})
    sink = FileSink(spark, tmp_path)
    table = read_stream(spark, broker, topic, startingOffsetsByTimestamp=starts)
    with stopped_at_the_end(sink.start(table)) as query:
        wait_for_rows(query, 1_000)
        assert rows_read(query) == 1_000
    assert sink.count().total == sum(range(2_000, 3_000))
