"""`exactly_once` delivers batches of other queries as the jobs do."""

from __future__ import annotations

import datetime
from typing import TYPE_CHECKING, Any

import pytest

from spark_it.kit import faulty_runs, job_kit, records
from spark_it.kit.counted_jobs import CountedQuery
from spark_it.kit.faulty_runs import FaultyRun

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

    from compat_tests.conftest import StartBroker
    from tests.support.brokers.brokers import Broker
    from wirebroker.pipelines import ExactlyOnce

pytestmark = [pytest.mark.long, pytest.mark.java]

MOMENT = datetime.datetime(2026, 3, 1, 12, tzinfo=datetime.UTC)


def sender(broker: Broker, topic: str, folder: Path, **options: Any) -> ExactlyOnce:
    from wirebroker.pipelines import exactly_once

    kafka = {"bootstrap.servers": broker.bootstrap}
    return exactly_once(topic, f"job-{topic}", kafka=kafka, checkpoint=folder, **options)


def test_a_query_sends_each_batch_once(
    spark: SparkSession, broker: Broker, topic: str, tmp_path: Path
) -> None:
    records.create_topic(broker.bootstrap, topic, partitions=2)
    records.write(broker.bootstrap, topic, range(1_000), partitions=2)
    target = f"{topic}-to"
    records.create_topic(broker.bootstrap, target, partitions=3)
    send = sender(broker, target, tmp_path / "checkpoint")
    counts: list[tuple[int, int]] = []

    def handle(table: DataFrame, batch: int) -> None:
        sent = send(table.select("key", "value", "timestamp", "headers"), batch)
        counts.append((sent.records, sent.slices_sent_before))

    def run() -> None:
        reader = spark.readStream.format("kafka").option("subscribe", topic)
        reader = reader.option("kafka.bootstrap.servers", broker.bootstrap)
        reader = reader.option("startingOffsets", "earliest").option("includeHeaders", "true")
        table = reader.option("maxOffsetsPerTrigger", "400").load()
        writer = table.writeStream.foreachBatch(handle).trigger(availableNow=True)
        writer.option("checkpointLocation", send.checkpoint).start().awaitTermination()

    run()
    assert sum(count for count, _ in counts) == 1_000
    job_kit.forget_last_commit(tmp_path)
    run()
    assert counts[-1] == (0, 3)
    send.close()
    messages = job_kit.read_all(broker.bootstrap, target, 1_000, partitions=3)
    assert sorted(int(message.value()) for message in messages) == list(range(1_000))
    seventh = next(message for message in messages if message.value() == b"7")
    assert (seventh.key(), seventh.headers()) == (b"k7", [("codec", b"none")])
    assert seventh.timestamp()[1] == records.START_MS + 7


@pytest.mark.nightly
def test_rows_have_the_columns_of_spark_kafka_sink(
    spark: SparkSession, broker: Broker, topic: str, tmp_path: Path
) -> None:
    # Without retention, which would delete old records.
    records.create_topic(broker.bootstrap, topic, partitions=2)
    send = sender(broker, topic, tmp_path, partitions=2)
    values = [(f"v{number}", number % 2, MOMENT) for number in range(4)]
    assert send(
        spark.createDataFrame(values, "value string, partition int, timestamp timestamp"), 0
    )
    sent = send(spark.createDataFrame([(None, "k"), ("w", "k")], "value string, key string"), 1)
    assert (sent.records, sent.sent_bytes, sent.slices_sent_before) == (2, 3, 0)
    messages = job_kit.read_all(broker.bootstrap, topic, 6, partitions=2)
    placed = {message.value(): message.partition() for message in messages}
    assert [placed[b"v%d" % number] for number in range(4)] == [0, 1, 0, 1]
    assert messages[0].timestamp()[1] == MOMENT.timestamp() * 1_000
    assert len({message.partition() for message in messages if message.key() == b"k"}) == 1


def test_invalid_tables_and_checkpoints_are_rejected(
    spark: SparkSession, broker: Broker, topic: str, tmp_path: Path
) -> None:
    from wirebroker.pipelines import exactly_once
    from wirebroker.pipelines.job.errors import JobFileError, PositionError

    send = sender(broker, topic, tmp_path / "one")
    for text, expected in (
        ("id bigint", "column id is not one of key, value, partition, headers, timestamp"),
        ("valu string", "column valu is not one of .*; did you mean value"),
        ("key string", "column value is missing"),
        ("value bigint", "column value is bigint, not binary or string"),
        ("value string, partition string", "column partition is string, not int"),
    ):
        with pytest.raises(JobFileError, match=expected):
            send(spark.createDataFrame([], text), 0)
    with pytest.raises(Exception, match="there is no partition 7"):
        send(spark.createDataFrame([("v", 7)], "value string, partition int"), 0)
    send(spark.createDataFrame([("v",)], "value string"), 0)
    with pytest.raises(PositionError, match="one of them was reset"):
        send(spark.createDataFrame([("v",)], "value string"), 5)
    with pytest.raises(PositionError, match="positions of another checkpoint"):
        sender(broker, topic, tmp_path / "two")(spark.createDataFrame([("v",)], "value string"), 1)
    with pytest.raises(PositionError, match="is the checkpoint of"):
        sender(broker, f"{topic}-other", tmp_path / "one")
    with pytest.raises(JobFileError, match=r"has no .bootstrap\.servers"):
        exactly_once(topic, "name", kafka={}, checkpoint=tmp_path)
    with pytest.raises(JobFileError, match="topic = '' is not a name"):
        exactly_once("", "name", kafka={}, checkpoint=tmp_path)


@pytest.mark.nightly
@pytest.mark.timeout(1_200)
def test_rows_are_sent_once_when_broker_driver_and_workers_are_killed(
    start_broker: StartBroker, topic: str, tmp_path: Path, pytestconfig: pytest.Config
) -> None:
    broker, job = start_broker(), CountedQuery(24, 500, 2)
    path = job.write(tmp_path, broker.bootstrap, topic, faulty_runs.spark_table(tmp_path))
    FaultyRun(job.kind, path, broker, pytestconfig.option.seed, times=4).run()
    job.check(tmp_path, broker.bootstrap, topic)
