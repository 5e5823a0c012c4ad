"""Numbered records: written by another client than Spark, and counted by it or by Spark."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NamedTuple

from confluent_kafka import OFFSET_BEGINNING, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewPartitions

from compat_tests.clients import confluent
from compat_tests.clients.message import WAIT_S
from compat_tests.support import topics
from tests.support.tools.waiting import eventually

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pyspark.sql import DataFrame

START_MS = 1_700_000_000_000  # record number n has the timestamp START_MS + n


def create_topic(bootstrap: str, topic: str, *, partitions: int) -> None:
    """Create a topic without retention, and wait for its leaders."""
    topics.create(bootstrap, topic, partitions=partitions, configs={"retention.ms": "-1"})


def write(
    bootstrap: str, topic: str, numbers: Iterable[int], *, partitions: int, codec: str = "none"
) -> None:
    """Write a record for each number, to partition number modulo count."""
    producer = confluent.make_producer(
        bootstrap, {"compression.type": codec, "enable.idempotence": True}
    )
    errors: list[Any] = []

    def on_delivery(error: Any, _: Any) -> None:
        if error is not None:
            errors.append(error)

    for number in numbers:
        producer.produce(
            topic,
            value=b"%d" % number,
            key=b"k%d" % (number % 10),
            partition=number % partitions,
            headers=[("codec", codec.encode())],
            timestamp=START_MS + number,
            on_delivery=on_delivery,
        )
        producer.poll(0)
    assert producer.flush(WAIT_S) == 0, "records are still waiting for their answers"
    assert not errors, errors[0]


def write_visits(bootstrap: str, topic: str, *, table: str) -> None:
    """Write a city to a table, and two visits; the later one closes the other's window."""
    producer = confluent.make_producer(bootstrap)
    producer.produce(table, json.dumps({"city": "Oslo"}), b"k")
    for minute in (1, 5):
        time_ms = START_MS + minute * 60_000
        producer.produce(topic, json.dumps({"who": "k"}), timestamp=time_ms)
    assert producer.flush(WAIT_S) == 0, "records are still waiting for their answers"


def read(bootstrap: str, topic: str, count: int, *, partitions: int) -> list[tuple[int, int, int]]:
    """Read `count` records as (partition, offset, number)."""
    consumer = confluent.make_consumer(bootstrap)
    try:
        consumer.assign([TopicPartition(topic, p, OFFSET_BEGINNING) for p in range(partitions)])
        positions_and_numbers: list[tuple[int, int, int]] = []
        while len(positions_and_numbers) < count:
            # At most the missing ones, because consume waits for all that it may return.
            messages = consumer.consume(
                min(10_000, count - len(positions_and_numbers)), timeout=WAIT_S
            )
            assert messages, (
                f"{len(positions_and_numbers)} of {count} records, then none for {WAIT_S:.0f} s"
            )
            positions_and_numbers += map(_place_and_number, messages)
        return positions_and_numbers
    finally:
        consumer.close()


def _place_and_number(message: Any) -> tuple[int, int, int]:
    assert message.error() is None, message.error()
    return message.partition(), message.offset(), int(message.value())


def end_offsets(bootstrap: str, topic: str, *, partitions: int) -> list[int]:
    consumer = confluent.make_consumer(bootstrap)
    try:
        topic_partitions = [TopicPartition(topic, partition) for partition in range(partitions)]
        return [
            consumer.get_watermark_offsets(topic_partition, timeout=WAIT_S)[1]
            for topic_partition in topic_partitions
        ]
    finally:
        consumer.close()


def add_partitions(bootstrap: str, topic: str, *, partitions: int) -> None:
    """Add partitions up to this number."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_partitions([NewPartitions(topic, partitions)], request_timeout=WAIT_S)[
        topic
    ].result()

    def all_led() -> bool:
        described = admin.list_topics(topic, timeout=WAIT_S).topics[topic].partitions
        return len(described) == partitions and all(
            partition.leader >= 0 for partition in described.values()
        )

    eventually(all_led)


class Count(NamedTuple):
    """Counts of a table of numbered records."""

    rows: int
    numbers: int  # distinct
    places: int  # distinct pairs of partition and offset
    total: int  # their sum

    @classmethod
    def of_all(cls, count: int) -> Count:
        """Return the counts of the numbers 0 to count - 1, once each."""
        return cls(count, count, count, count * (count - 1) // 2)


def count_rows(table: DataFrame) -> Count:
    numbered = table.selectExpr("CAST(CAST(value AS STRING) AS LONG) n", "partition", "offset")
    aggregates = ["count(*)", "count(DISTINCT n)", "count(DISTINCT partition, offset)"]
    row = numbered.selectExpr(*aggregates, "coalesce(sum(n), 0)").first()
    assert row is not None
    return Count(*row)
