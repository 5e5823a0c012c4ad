"""Spark streams topics with a checkpoint, each record once, even across `kill -9`."""

from __future__ import annotations

import contextlib
import threading
from typing import TYPE_CHECKING, Any

import pytest

from compat_tests.clients import confluent
from spark_it.kit import records
from spark_it.kit.records import Count, count_rows
from tests.support.tools.waiting import eventually

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from compat_tests.conftest import StartBroker
    from tests.support.brokers.brokers import Broker
    from tests.support.brokers.own_trio import VotingTrio

pytestmark = [pytest.mark.long, pytest.mark.java]

PARTITIONS = 3
# Apache Kafka needs 13 s to restart after a kill, and Spark's clients some seconds to notice.
WAIT_S = 180.0
_OLD_WAY = "spark.sql.streaming.kafka.useDeprecatedOffsetFetching"


def read_stream(
    spark: SparkSession, broker: Broker | VotingTrio, topic: str, **options: str
) -> DataFrame:
    settings = {
        "kafka.bootstrap.servers": broker.bootstrap,
        "subscribe": topic,
        "startingOffsets": "earliest",
    }
    return spark.readStream.format("kafka").options(**settings, **options).load()


class FileSink:
    """A stream into Parquet files, which contain each row once even if batches repeat."""

    def __init__(self, spark: SparkSession, directory: Path) -> None:
        self._spark = spark
        self._files = str(directory / "files")
        self._checkpoint = str(directory / "checkpoint")

    def start(self, table: DataFrame) -> StreamingQuery:
        columns = table.select("value", "partition", "offset")
        writer = columns.writeStream.format("parquet").trigger(processingTime="200 milliseconds")
        return writer.option("checkpointLocation", self._checkpoint).start(self._files)

    def count(self) -> Count:
        schema = "value BINARY, partition INT, offset LONG"
        return count_rows(self._spark.read.schema(schema).parquet(self._files))


@contextlib.contextmanager
def stopped_at_the_end(query: StreamingQuery) -> Iterator[StreamingQuery]:
    """Stop the query even if the test fails."""
    try:
        yield query
    finally:
        query.stop()


def wait_until(query: StreamingQuery, condition: Callable[[], bool], description: str) -> None:
    """Wait for a condition; fail if the query has ended."""

    def is_true() -> bool:
        failure = query.exception()
        assert failure is None, failure
        return condition()

    try:
        eventually(is_true, timeout_s=WAIT_S, poll_s=0.2)
    except AssertionError as error:
        error.add_note(f"{description}; {query.status}")
        raise


def rows_read(query: StreamingQuery) -> int:
    return sum(progress["numInputRows"] for progress in query.recentProgress)


def wait_for_rows(query: StreamingQuery, count: int) -> None:
    wait_until(query, lambda: rows_read(query) >= count, f"{count} rows")


class Writer:
    """A producer in a thread, which continues after a broker's restart.

    It writes the numbers from 0, about 2,000 a second.
    """

    def __init__(self, bootstrap: str, topic: str) -> None:
        self.count = 0
        self._topic = topic
        self._errors: list[Any] = []
        self._finish = threading.Event()
        self._producer = confluent.make_producer(bootstrap, {"enable.idempotence": True})
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def finish(self) -> int:
        """Stop and return the number of acknowledged records."""
        self._finish.set()
        self._thread.join()
        assert self._producer.flush(WAIT_S) == 0, "records are still waiting for their answers"
        assert not self._errors, self._errors[0]
        return self.count

    def _run(self) -> None:
        while not self._finish.wait(0.01):
            for _ in range(20):
                self._producer.produce(
                    self._topic,
                    value=b"%d" % self.count,
                    partition=self.count % PARTITIONS,
                    on_delivery=self._note,
                )
                self.count += 1
            self._producer.poll(0)

    def _note(self, error: Any, _: Any) -> None:
        if error is not None:
            self._errors.append(error)


def test_running_stream_is_exact_when_broker_is_killed(
    spark: SparkSession, start_broker: StartBroker, topic: str, tmp_path: Path
) -> None:
    broker = start_broker()
    records.create_topic(broker.bootstrap, topic, partitions=PARTITIONS)
    writer = Writer(broker.bootstrap, topic)
    sink = FileSink(spark, tmp_path)
    table = read_stream(spark, broker, topic, maxOffsetsPerTrigger="3000")
    with stopped_at_the_end(sink.start(table)) as query:
        for _ in range(2):
            wait_for_rows(query, rows_read(query) + 5_000)
            broker.kill9()
            broker.start()
        wait_for_rows(query, rows_read(query) + 5_000)
        count = writer.finish()
        wait_for_rows(query, count)
        assert count > 15_000
        assert sink.count() == Count.of_all(count)
    assert sum(records.end_offsets(broker.bootstrap, topic, partitions=PARTITIONS)) == count


@pytest.mark.nightly
def test_stream_resumes_from_checkpoint_after_broker_and_query_end(
    spark: SparkSession, start_broker: StartBroker, topic: str, tmp_path: Path
) -> None:
    broker = start_broker()
    records.create_topic(broker.bootstrap, topic, partitions=PARTITIONS)
    sink = FileSink(spark, tmp_path)
    for round_number in range(3):
        numbers = range(round_number * 5_000, (round_number + 1) * 5_000)
        records.write(broker.bootstrap, topic, numbers, partitions=PARTITIONS)
        table = read_stream(spark, broker, topic, maxOffsetsPerTrigger="2000")
        with stopped_at_the_end(sink.start(table)) as query:
            wait_for_rows(query, 5_000)
            assert rows_read(query) == 5_000, "rows of an earlier turn came again"
        assert sink.count() == Count.of_all((round_number + 1) * 5_000)
        broker.kill9()
        broker.start()


@pytest.mark.shows("produce, consume", "spark", "streaming")
def test_stream_copies_topic_completely(
    spark: SparkSession, broker: Broker, topic: str, tmp_path: Path
) -> None:
    count = 10_000
    target = f"{topic}-copy"
    for name in (topic, target):
        records.create_topic(broker.bootstrap, name, partitions=PARTITIONS)
    records.write(broker.bootstrap, topic, range(count), partitions=PARTITIONS, codec="lz4")
    table = read_stream(spark, broker, topic, maxOffsetsPerTrigger="4000")
    writer = table.select("key", "value").writeStream.format("kafka").trigger(availableNow=True)
    options = {"kafka.bootstrap.servers": broker.bootstrap, "topic": target}
    query = writer.options(checkpointLocation=str(tmp_path), **options).start()
    with stopped_at_the_end(query):
        assert query.awaitTermination(int(WAIT_S))
    assert sum(records.end_offsets(broker.bootstrap, target, partitions=PARTITIONS)) == count
    copies = records.read(broker.bootstrap, target, count, partitions=PARTITIONS)
    assert sorted(number for _, _, number in copies) == list(range(count))


def test_running_stream_reads_added_partitions(
    spark: SparkSession, broker: Broker, topic: str, tmp_path: Path
) -> None:
    records.create_topic(broker.bootstrap, topic, partitions=1)
    records.write(broker.bootstrap, topic, range(1_000), partitions=1)
    sink = FileSink(spark, tmp_path)
    with stopped_at_the_end(sink.start(read_stream(spark, broker, topic))) as query:
        wait_for_rows(query, 1_000)
        records.add_partitions(broker.bootstrap, topic, partitions=PARTITIONS)
        records.write(broker.bootstrap, topic, range(1_000, 4_000), partitions=PARTITIONS)
        wait_for_rows(query, 4_000)
        assert sink.count() == Count.of_all(4_000)


@pytest.mark.nightly
def test_stream_with_consumer_group_offset_fetching_is_complete(
    spark: SparkSession, broker: Broker, topic: str, tmp_path: Path
) -> None:
    records.create_topic(broker.bootstrap, topic, partitions=PARTITIONS)
    records.write(broker.bootstrap, topic, range(5_000), partitions=PARTITIONS)
    sink = FileSink(spark, tmp_path)
    spark.conf.set(_OLD_WAY, "true")
    try:
        table = read_stream(spark, broker, topic, maxOffsetsPerTrigger="1000")
        with stopped_at_the_end(sink.start(table)) as query:
            wait_for_rows(query, 5_000)
            assert sink.count() == Count.of_all(5_000)
    finally:
        spark.conf.unset(_OLD_WAY)
