"""Spark over SASL_SSL, with a SCRAM login that expires every 1.5 s.

Batches and streams at brokers of both kinds with an authorizer, and with a
wrong password: `python -m tests.nightly spark-connector`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from compat_tests.conftest import new_topic_name
from compat_tests.security.listeners import guarded_broker
from compat_tests.security.secured import PASSWORD
from spark_it.kit import records
from spark_it.kit.records import Count, count_rows
from tests.support.security.tls_files import authority, write
from tests.support.tools.ports import HOST

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

    from compat_tests.security.listeners import KafkaOfListeners, WirebrokerOfListeners

    Guarded = KafkaOfListeners | WirebrokerOfListeners

pytestmark = [pytest.mark.long, pytest.mark.java]

PARTITIONS = 3
MODULE = "org.apache.kafka.common.security.scram.ScramLoginModule"


@pytest.fixture(scope="module", params=["wirebroker", "apache"])
def guarded(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Guarded, Path]]:
    with guarded_broker(request.param, tmp_path_factory) as running:
        yield running


def options(guarded: tuple[Guarded, Path], password: str = PASSWORD) -> dict[str, str]:
    broker, folder = guarded
    return {
        "kafka.bootstrap.servers": f"{HOST}:{broker.ports['LOGIN']}",
        "kafka.security.protocol": "SASL_SSL",
        "kafka.sasl.mechanism": "SCRAM-SHA-512",
        "kafka.sasl.jaas.config": f'{MODULE} required username="alice" password="{password}";',
        "kafka.ssl.truststore.type": "PEM",
        "kafka.ssl.truststore.location": write(folder, "authority.pem", authority().certificate),
    }


def test_batches_are_written_and_read(spark: SparkSession, guarded: tuple[Guarded, Path]) -> None:
    topic = new_topic_name()
    records.create_topic(guarded[0].bootstrap, topic, partitions=PARTITIONS)
    kafka_options = options(guarded)
    table = spark.range(10_000).selectExpr("CAST(id AS STRING) value")
    table.write.format("kafka").options(topic=topic, **kafka_options).save()
    rows = spark.read.format("kafka").options(subscribe=topic, **kafka_options).load()
    assert count_rows(rows) == Count.of_all(10_000)


def test_stream_continues_across_reauthentications(
    spark: SparkSession, guarded: tuple[Guarded, Path], tmp_path: Path
) -> None:
    broker, kafka_options = guarded[0].bootstrap, options(guarded)
    topic = new_topic_name()
    for name in (topic, f"{topic}-copy"):
        records.create_topic(broker, name, partitions=PARTITIONS)
    read = spark.readStream.format("kafka").options(subscribe=topic, **kafka_options)
    table = read.option("startingOffsets", "earliest").load().select("value")
    writer = table.writeStream.format("kafka").trigger(processingTime="100 milliseconds")
    writer = writer.options(
        topic=f"{topic}-copy", checkpointLocation=str(tmp_path), **kafka_options
    )
    query = writer.start()
    try:
        for batch in range(10):
            numbers = range(batch * 1_000, (batch + 1) * 1_000)
            records.write(broker, topic, numbers, partitions=PARTITIONS)
            query.processAllAvailable()
    finally:
        query.stop()
    copies = records.read(broker, f"{topic}-copy", 10_000, partitions=PARTITIONS)
    assert sorted(number for _, _, number in copies) == list(range(10_000))


def test_wrong_password_fails_read(spark: SparkSession, guarded: tuple[Guarded, Path]) -> None:
    from py4j.protocol import Py4JJavaError

    topic = new_topic_name()
    records.create_topic(guarded[0].bootstrap, topic, partitions=1)
    kafka_options = options(guarded, "another")
    with pytest.raises(Py4JJavaError, match="SaslAuthenticationException"):
        spark.read.format("kafka").options(subscribe=topic, **kafka_options).load().count()
