"""The data source over log directories returns the connector's rows, for both brokers."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING, Any

import pytest

from compat_tests.clients import confluent
from compat_tests.clients.message import CODECS, WAIT_S
from compat_tests.support import topics
from spark_it.kit import records
from spark_it.kit.records import START_MS, Count, count_rows
from tests.support.tools.waiting import eventually

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming import StreamingQuery

    from compat_tests.conftest import StartBroker
    from tests.support.brokers.brokers import Broker

pytestmark = [pytest.mark.long, pytest.mark.java]

PARTITIONS = 3
FORMAT = "wirebroker-segments"
COMMITTED = {"kafka.isolation.level": "read_committed"}


@pytest.fixture(scope="module", autouse=True)
def registered(spark: SparkSession) -> None:
    import wirebroker.segments

    spark.dataSource.register(wirebroker.segments.SegmentDataSource)


def by_connector(spark: SparkSession, broker: Broker, **options: str) -> DataFrame:
    address = {"kafka.bootstrap.servers": broker.bootstrap}
    return spark.read.format("kafka").options(**address, **options).load()


def by_segments(spark: SparkSession, folder: Path, **options: str) -> DataFrame:
    return spark.read.format(FORMAT).options(**options).load(str(folder))


def assert_same_rows(spark: SparkSession, broker: Broker, count: int, **options: str) -> None:
    connector_rows = by_connector(spark, broker, includeHeaders="true", **options)
    segment_rows = by_segments(spark, broker.data_dir, includeHeaders="true", **options)
    assert segment_rows.columns[: len(connector_rows.columns)] == connector_rows.columns
    segment_rows = segment_rows.select(*connector_rows.columns)
    assert [field.dataType for field in segment_rows.schema] == [
        field.dataType for field in connector_rows.schema
    ]
    order = ["topic", "partition", "offset"]
    actual, expected = (
        segment_rows.orderBy(*order).collect(),
        connector_rows.orderBy(*order).collect(),
    )
    assert actual == expected
    assert len(expected) == count


def write_transactions(bootstrap: str, topic: str) -> int:
    committed = 0
    for codec in CODECS:
        producer = confluent.make_producer(
            bootstrap, {"transactional.id": f"{topic}-{codec}", "compression.type": codec}
        )
        producer.init_transactions(WAIT_S)
        for number in range(6):
            producer.begin_transaction()
            for index in range(50):
                value = b"%d" % (1_000_000 + index)
                producer.produce(topic, value, b"k%d" % index, partition=index % PARTITIONS)
            assert producer.flush(WAIT_S) == 0
            if number % 2:
                producer.abort_transaction(WAIT_S)
            else:
                producer.commit_transaction(WAIT_S)
                committed += 50
    return committed


def write_oddities(bootstrap: str, topic: str) -> int:
    producer = confluent.make_producer(bootstrap)
    unusual_messages: list[dict[str, Any]] = [
        {"value": None, "key": b"k"},
        {"value": b"", "key": b""},
        {"value": b"v" * 900_000, "key": None},
        {"value": b"v", "headers": [("h", None), ("h", b""), ("\u00e9", b"\xff\x00")]},
        {"value": b"v", "headers": [(f"h{n}", b"x" * n) for n in range(100)]},
    ]
    for fields in unusual_messages:
        producer.produce(topic, partition=0, timestamp=START_MS, **fields)
    assert producer.flush(WAIT_S) == 0
    return len(unusual_messages)


@pytest.mark.shows("transactions", "spark", "read_committed")
def test_rows_equal_connector_for_codecs_transactions_and_unusual_records(
    spark: SparkSession, broker: Broker, topic: str
) -> None:
    records.create_topic(broker.bootstrap, topic, partitions=PARTITIONS)
    count = 0
    for codec in CODECS:
        numbers = range(count, count + 500)
        records.write(broker.bootstrap, topic, numbers, partitions=PARTITIONS, codec=codec)
        count += 500
    count += write_oddities(broker.bootstrap, topic)
    committed = write_transactions(broker.bootstrap, topic)
    assert_same_rows(spark, broker, count + 2 * committed, subscribe=topic)
    assert_same_rows(spark, broker, count + committed, subscribe=topic, **COMMITTED)
    split = {"subscribe": topic, "minPartitions": "10"}
    segment_rows = by_segments(spark, broker.data_dir, **split, **COMMITTED)
    assert segment_rows.rdd.getNumPartitions() >= 10
    assert segment_rows.count() == count + committed


def test_offset_and_time_bounds_select_same_rows_as_connector(
    spark: SparkSession, broker: Broker, topic: str
) -> None:
    records.create_topic(broker.bootstrap, topic, partitions=PARTITIONS)
    records.write(broker.bootstrap, topic, range(3_000), partitions=PARTITIONS, codec="lz4")
    starts = json.dumps({topic: {"0": 10, "1": -2, "2": 900}})
    ends = json.dumps({topic: {"0": 20, "1": 5, "2": -1}})
    offsets = {"subscribe": topic, "startingOffsets": starts, "endingOffsets": ends}
    assert_same_rows(spark, broker, 10 + 5 + 100, **offsets)
    times = {
        "assign": json.dumps({topic: [0, 2]}),
        "startingTimestamp": str(START_MS + 1_000),
        "endingOffsetsByTimestamp": json.dumps({topic: {"0": START_MS + 2_500, "2": 1 << 50}}),
    }
    assert_same_rows(spark, broker, 500 + 667, **times)


def test_compacted_topic_has_same_rows_as_connector(
    spark: SparkSession, start_broker: StartBroker
) -> None:
    broker = start_broker({"log.cleaner.backoff.ms": "100"})
    configs = {
        "cleanup.policy": "compact",
        "segment.ms": "100",
        "min.cleanable.dirty.ratio": "0.01",
        "retention.ms": "-1",
    }
    topics.create(broker.bootstrap, "table", configs=configs)
    producer = confluent.make_producer(broker.bootstrap, {"compression.type": "zstd"})

    def write_a_round() -> bool:
        for number in range(200):
            producer.produce("table", b"%d" % number, b"k%d" % (number % 7))
        assert producer.flush(WAIT_S) == 0
        return by_segments(spark, broker.data_dir, subscribe="table").count() < end_of_table()

    def end_of_table() -> int:
        return records.end_offsets(broker.bootstrap, "table", partitions=1)[0]

    eventually(write_a_round)
    end = json.dumps({"table": {"0": end_of_table()}})

    def are_equal() -> bool:  # compaction may remove records between the reads
        options = {"subscribe": "table", "endingOffsets": end}
        segment_rows = by_segments(spark, broker.data_dir, **options).select(
            "key", "value", "offset"
        )
        connector_rows = by_connector(spark, broker, **options).select("key", "value", "offset")
        return sorted(segment_rows.collect()) == sorted(connector_rows.collect())

    eventually(are_equal)


def test_stream_resumes_with_new_records_and_partitions(
    spark: SparkSession, broker: Broker, topic: str, tmp_path: Path
) -> None:
    records.create_topic(broker.bootstrap, topic, partitions=2)
    records.write(broker.bootstrap, topic, range(1_000), partitions=2, codec="snappy")

    def run() -> list[int]:
        reader = spark.readStream.format(FORMAT).option("path", str(broker.data_dir))
        options = {"startingOffsets": "earliest", "maxOffsetsPerTrigger": "300"}
        table = reader.options(subscribe=topic, **options).load()
        writer = table.writeStream.format("parquet").option("path", str(tmp_path / "out"))
        writer = writer.option("checkpointLocation", str(tmp_path / "checkpoint"))
        query = writer.trigger(availableNow=True).start()
        query.awaitTermination(120)
        assert query.exception() is None
        return [progress["numInputRows"] for progress in query.recentProgress]

    assert sum(rows := run()) == 1_000
    assert max(rows) <= 300
    assert sum(run()) == 0
    records.add_partitions(broker.bootstrap, topic, partitions=PARTITIONS)
    records.write(broker.bootstrap, topic, range(1_000, 1_900), partitions=PARTITIONS)
    assert sum(run()) == 900
    assert count_rows(spark.read.parquet(str(tmp_path / "out"))) == Count.of_all(1_900)


@pytest.mark.nightly
@pytest.mark.parametrize("reader", ["kafka", FORMAT])
def test_stream_waits_for_min_offsets_or_max_trigger_delay(
    spark: SparkSession, broker: Broker, topic: str, tmp_path: Path, reader: str
) -> None:
    records.create_topic(broker.bootstrap, topic, partitions=2)
    location_option = (
        {"kafka.bootstrap.servers": broker.bootstrap}
        if reader == "kafka"
        else {"path": str(broker.data_dir)}
    )
    options = {**location_option, "subscribe": topic, "startingOffsets": "earliest"}
    idle_report_setting = "spark.sql.streaming.noDataProgressEventInterval"
    spark.conf.set(idle_report_setting, "0")  # report each idle trigger

    def start(name: str, *, is_once: bool = False, **limits: str) -> StreamingQuery:
        table = spark.readStream.format(reader).options(**options, **limits).load()
        writer = table.writeStream.format("noop")
        writer = writer.option("checkpointLocation", str(tmp_path / name))
        trigger: Any = {"availableNow": True} if is_once else {"processingTime": "500 milliseconds"}
        return writer.trigger(**trigger).start()

    def batches(query: StreamingQuery) -> list[int]:
        return [n for progress in query.recentProgress if (n := progress["numInputRows"])]

    records.write(broker.bootstrap, topic, range(50), partitions=2)
    query = start("waits", minOffsetsPerTrigger="100", maxTriggerDelay="1h")
    try:
        eventually(lambda: batches(query) == [50], timeout_s=WAIT_S)
        records.write(broker.bootstrap, topic, range(50, 110), partitions=2)
        progress_count = len(query.recentProgress)
        eventually(lambda: len(query.recentProgress) > progress_count + 2, timeout_s=WAIT_S)
        records.write(broker.bootstrap, topic, range(110, 170), partitions=2)
        eventually(lambda: sum(batches(query)) == 170, timeout_s=WAIT_S)
        assert batches(query) == [50, 120]
    finally:
        query.stop()
    query = start("delay", minOffsetsPerTrigger="1000", maxTriggerDelay="200ms")
    try:
        eventually(lambda: batches(query) == [170], timeout_s=WAIT_S)
        records.write(broker.bootstrap, topic, range(170, 200), partitions=2)
        eventually(lambda: batches(query) == [170, 30], timeout_s=WAIT_S)
    finally:
        query.stop()
        spark.conf.unset(idle_report_setting)
    limits = {"minOffsetsPerTrigger": "100", "maxOffsetsPerTrigger": "150"}
    query = start("now", is_once=True, **limits)
    assert query.awaitTermination(WAIT_S)
    # A run's first batch does not wait; fewer offsets are left to a later run.
    assert batches(query) == [150]


def test_directory_of_stopped_broker_and_its_archive_are_read(
    spark: SparkSession, start_broker: StartBroker, tmp_path: Path
) -> None:
    broker = start_broker()
    records.create_topic(broker.bootstrap, "kept", partitions=2)
    records.write(broker.bootstrap, "kept", range(2_000), partitions=2, codec="gzip")
    broker.stop()
    table = by_segments(spark, broker.data_dir, subscribePattern="ke.*")
    assert count_rows(table) == Count.of_all(2_000)
    for number in range(2):
        shutil.copytree(broker.data_dir / f"kept-{number}", tmp_path / f"kept-{number}")
    assert count_rows(by_segments(spark, tmp_path, subscribe="kept")) == Count.of_all(2_000)


def test_filters_and_columns_are_pushed_down(
    spark: SparkSession, broker: Broker, topic: str
) -> None:
    records.create_topic(broker.bootstrap, topic, partitions=PARTITIONS)
    records.write(broker.bootstrap, topic, range(3_000), partitions=PARTITIONS)
    setting = "spark.sql.python.filterPushdown.enabled"
    spark.conf.set(setting, "true")
    try:
        options = {"subscribe": topic, "pushFilters": "true", "columns": "offset,partition,value"}
        table = by_segments(spark, broker.data_dir, **options)
        assert table.columns == ["offset", "partition", "value"]
        filtered = table.where("partition = 1 AND offset >= 100 AND offset < 110")
        assert filtered.rdd.getNumPartitions() == 1
        assert [row.offset for row in filtered.orderBy("offset").collect()] == list(range(100, 110))
        assert table.where("partition = 7").count() == 0
        times = by_segments(spark, broker.data_dir, subscribe=topic, pushFilters="true")
        late = times.where(f"timestamp >= timestamp_millis({START_MS + 2_990})")
        assert late.count() == 10
    finally:
        spark.conf.unset(setting)


def test_unavailable_end_offset_is_reported(
    spark: SparkSession, broker: Broker, topic: str
) -> None:
    from pyspark.errors import PySparkException

    records.create_topic(broker.bootstrap, topic, partitions=1)
    records.write(broker.bootstrap, topic, range(10), partitions=1)
    table = by_segments(
        spark, broker.data_dir, subscribe=topic, endingOffsets=json.dumps({topic: {"0": 11}})
    )
    with pytest.raises(PySparkException, match="can be read up to offset 10, not to 11"):
        table.count()
