"""The data source returns the connector's rows, for random topics (`tests.nightly spark-rows`).

Topics differ in codecs, sizes, null and empty values, headers, order of timestamps, transactions
and compaction.
"""

from __future__ import annotations

import json
import sys
from functools import partial
from random import Random
from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ResourceType,
)

from compat_tests.clients import confluent
from compat_tests.clients.message import CODECS, WAIT_S
from compat_tests.support import topics
from spark_it.directories.test_segments import COMMITTED, by_connector, by_segments, registered
from spark_it.kit import records
from spark_it.kit.records import START_MS
from tests.support.tools.waiting import eventually

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import DataFrame, Row, SparkSession

    from compat_tests.conftest import StartBroker
    from tests.support.brokers.brokers import Broker

__all__ = ["registered"]

pytestmark = [pytest.mark.long, pytest.mark.java, pytest.mark.timeout(1_800)]

TOPICS, READS = 6, 6
SPAN_MS = 100_000  # of timestamps
COMPACTED = {
    "cleanup.policy": "compact",
    "segment.ms": "100",  # compaction skips the active segment
    "min.cleanable.dirty.ratio": "0.01",
}


class History:
    """Random records of a topic, determined by a seed.

    `settle` ends compaction (`is_compacted`).
    """

    def __init__(self, rng: Random, bootstrap: str, topic: str, *, is_compacted: bool) -> None:
        self.is_compacted = is_compacted
        self.partitions = rng.randint(1, 4)
        self.written = self.aborted = 0
        self._chance = rng
        self._bootstrap = bootstrap
        self._topic = topic
        configs = {
            "retention.ms": "-1",
            "segment.bytes": "1048576",
            "compression.type": rng.choice(("producer", "producer", "lz4", "uncompressed")),
            "message.timestamp.type": rng.choice(("CreateTime", "CreateTime", "LogAppendTime")),
        }
        configs |= COMPACTED if is_compacted else {}
        topics.create(bootstrap, topic, partitions=self.partitions, configs=configs)
        # Stored, because the end of a producer aborts its transaction.
        self._open: list[Any] = []

    def write(self) -> None:
        """Write some batches, and sometimes leave a transaction open."""
        for number in range(self._chance.randint(2, 8)):
            if self._chance.random() < 0.5:
                self._write_plain()
            else:
                self._write_transactions(f"{self._topic}-{number}")

    def settle(self, read_topic: Callable[[], DataFrame]) -> None:
        """Write until compaction has removed records, and disable it."""

        def is_less() -> bool:
            self._write_plain()
            return read_topic().count() < self.written

        eventually(is_less, timeout_s=120)
        entry = ConfigEntry("cleanup.policy", "delete", incremental_operation=AlterConfigOpType.SET)
        resource = ConfigResource(ResourceType.TOPIC, self._topic, incremental_configs=[entry])
        admin = AdminClient({"bootstrap.servers": self._bootstrap})
        admin.incremental_alter_configs([resource])[resource].result(WAIT_S)

    def _settings(self) -> dict[str, Any]:
        rng = self._chance
        return {
            "compression.type": rng.choice(CODECS),
            "linger.ms": rng.choice((0, 20)),
            "batch.num.messages": rng.choice((1, 7, 500)),
        }

    def _write_plain(self) -> None:
        producer = confluent.make_producer(self._bootstrap, self._settings())
        self._produce(producer, self._chance.randint(1, 400))

    def _write_transactions(self, name: str) -> None:
        # Keeps open transactions open during the reads.
        transaction_settings = {"transactional.id": name, "transaction.timeout.ms": 900_000}
        settings = self._settings() | transaction_settings
        producer = confluent.make_producer(self._bootstrap, settings)
        producer.init_transactions(WAIT_S)
        for _ in range(self._chance.randint(1, 4)):
            producer.begin_transaction()
            count = self._chance.randint(1, 100)
            self._produce(producer, count)
            outcome = self._chance.choice(("commit", "commit", "abort", "abort", "open"))
            if outcome == "open" and self.is_compacted:
                outcome = "commit"  # an open transaction would stop compaction
            if outcome == "commit":
                producer.commit_transaction(WAIT_S)
            elif outcome == "abort":
                producer.abort_transaction(WAIT_S)
                self.aborted += count
            else:
                self._open.append(producer)
                return

    def _produce(self, producer: Any, count: int) -> None:
        rng = self._chance
        for _ in range(count):
            producer.produce(
                self._topic,
                self._bytes(),
                b"k%d" % rng.randrange(9) if self.is_compacted else self._bytes(40),
                partition=rng.randrange(self.partitions),
                headers=[(f"h{rng.randrange(3)}", self._bytes(20)) for _ in range(self._few())],
                timestamp=START_MS + rng.randrange(SPAN_MS),
            )
        assert producer.flush(WAIT_S) == 0
        self.written += count

    def _bytes(self, max_length: int = 3_000) -> bytes | None:
        kind = self._chance.random()
        if kind < 0.1:
            return None if kind < 0.05 else b""
        length = self._chance.randrange(max_length)
        return self._chance.randbytes(length // 8 + 1) * 8 if kind < 0.99 else bytes(200_000)

    def _few(self) -> int:
        return self._chance.choice((0, 0, 0, 1, 2, 20))


def random_bounds(rng: Random, topic: str, ends: list[int]) -> dict[str, str]:
    options = {"minPartitions": str(rng.randint(1, 12))} if rng.random() < 0.5 else {}
    kind = rng.choice(("all", "offsets", "times"))
    if kind == "offsets":
        pairs = [sorted((rng.randint(0, end), rng.randint(0, end))) for end in ends]
        for name, side in (("startingOffsets", 0), ("endingOffsets", 1)):
            offsets = {str(number): pair[side] for number, pair in enumerate(pairs)}
            options[name] = json.dumps({topic: offsets})
    elif kind == "times":
        options["startingTimestamp"] = str(START_MS + rng.randrange(SPAN_MS))
        options["startingOffsetsByTimestampStrategy"] = "latest"
    return options


def test_rows_of_random_topics_equal_connector(
    spark: SparkSession, start_broker: StartBroker, topic: str, pytestconfig: pytest.Config
) -> None:
    broker = start_broker({"log.cleaner.backoff.ms": "100"})
    rows = compacted = 0
    for number in range(TOPICS):
        rng = Random(f"{pytestconfig.option.seed}-{number}")
        name = f"{topic}-{number}"
        history = History(rng, broker.bootstrap, name, is_compacted=number % 3 == 2)
        history.write()
        read_topic = partial(by_segments, spark, broker.data_dir, subscribe=name)
        if history.is_compacted:
            history.settle(read_topic)
            compacted += 1
        else:
            assert read_topic().count() == history.written
        ends = records.end_offsets(broker.bootstrap, name, partitions=history.partitions)
        for _ in range(READS):
            options = {"subscribe": name, "includeHeaders": "true"}
            options |= random_bounds(rng, name, ends)
            # With read_committed, both reject an end after the last stable offset.
            if "endingOffsets" not in options and rng.random() < 0.6:
                options |= COMMITTED
            actual, expected = both_reads(spark, broker, options)
            if actual != expected and history.is_compacted:
                # The last compaction may have finished between the two reads.
                actual, expected = both_reads(spark, broker, options)
            assert actual == expected, (number, options)
            rows += len(actual)
    sys.stdout.write(
        f"rows as the connector's: {rows} records, {TOPICS} topics, {compacted} of them compacted\n"
    )


def both_reads(
    spark: SparkSession, broker: Broker, options: dict[str, str]
) -> tuple[list[Row], list[Row]]:
    """Return the data source's and the connector's rows, in the log's order."""
    connector_rows = by_connector(spark, broker, **options)
    segment_rows = by_segments(spark, broker.data_dir, **options).select(*connector_rows.columns)
    order = ["partition", "offset"]
    return segment_rows.orderBy(*order).collect(), connector_rows.orderBy(*order).collect()
