"""The data source returns the connector's rows, for random topics (`tests.nightly spark-rows`).

Topics differ in codecs, sizes, null and empty values, headers, order of timestamps, transactions
and compaction. Both read them within random bounds.
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

    Attributes:
        is_compacted: Whether the topic is compacted, until `settle`.
    """

    def __init__(self, chance: Random, bootstrap: str, topic: str, *, is_compacted: bool) -> None:
        self.is_compacted = is_compacted
        self.partitions = chance.randint(1, 4)
        self.written = self.aborted = 0
        self._chance = chance
        self._bootstrap = bootstrap
        self._topic = topic
        configs = {
            "retention.ms": "-1",
            "segment.bytes": "1048576",
            "compression.type": chance.choice(("producer", "producer", "lz4", "uncompressed")),
            "message.timestamp.type": chance.choice(("CreateTime", "CreateTime", "LogAppendTime")),
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

    def settle(self, whole: Callable[[], DataFrame]) -> None:
        """Write until compaction has removed records, and disable it."""

        def is_less() -> bool:
            self._write_plain()
            return whole().count() < self.written

        eventually(is_less, timeout_s=120)
        entry = ConfigEntry("cleanup.policy", "delete", incremental_operation=AlterConfigOpType.SET)
        resource = ConfigResource(ResourceType.TOPIC, self._topic, incremental_configs=[entry])
        admin = AdminClient({"bootstrap.servers": self._bootstrap})
        admin.incremental_alter_configs([resource])[resource].result(WAIT_S)

    def _settings(self) -> dict[str, Any]:
        chance = self._chance
        return {
            "compression.type": chance.choice(CODECS),
            "linger.ms": chance.choice((0, 20)),
            "batch.num.messages": chance.choice((1, 7, 500)),
        }

    def _write_plain(self) -> None:
        producer = confluent.make_producer(self._bootstrap, self._settings())
        self._produce(producer, self._chance.randint(1, 400))

    def _write_transactions(self, name: str) -> None:
        # Keeps open transactions open during the reads.
        more = {"transactional.id": name, "transaction.timeout.ms": 900_000}
        settings = self._settings() | more
        producer = confluent.make_producer(self._bootstrap, settings)
        producer.init_transactions(WAIT_S)
        for _ in range(self._chance.randint(1, 4)):
            producer.begin_transaction()
            count = self._chance.randint(1, 100)
            self._produce(producer, count)
            how = self._chance.choice(("commit", "commit", "abort", "abort", "open"))
            if how == "open" and self.is_compacted:
                how = "commit"  # an open transaction would stop compaction
            if how == "commit":
                producer.commit_transaction(WAIT_S)
            elif how == "abort":
                producer.abort_transaction(WAIT_S)
                self.aborted += count
            else:
                self._open.append(producer)
                return

    def _produce(self, producer: Any, count: int) -> None:
        chance = self._chance
        for _ in range(count):
            producer.produce(
                self._topic,
                self._bytes(),
                b"k%d" % chance.randrange(9) if self.is_compacted else self._bytes(40),
                partition=chance.randrange(self.partitions),
                headers=[(f"h{chance.randrange(3)}", self._bytes(20)) for _ in range(self._few())],
                timestamp=START_MS + chance.randrange(SPAN_MS),
            )
        assert producer.flush(WAIT_S) == 0
        self.written += count

    def _bytes(self, most: int = 3_000) -> bytes | None:
        kind = self._chance.random()
        if kind < 0.1:
            return None if kind < 0.05 else b""
        length = self._chance.randrange(most)
        return self._chance.randbytes(length // 8 + 1) * 8 if kind < 0.99 else bytes(200_000)

    def _few(self) -> int:
        return self._chance.choice((0, 0, 0, 1, 2, 20))


def random_bounds(chance: Random, topic: str, ends: list[int]) -> dict[str, str]:
    options = {"minPartitions": str(chance.randint(1, 12))} if chance.random() < 0.5 else {}
    kind = chance.choice(("all", "offsets", "times"))
    if kind == "offsets":
        pairs = [sorted((chance.randint(0, end), chance.randint(0, end))) for end in ends]
        for name, side in (("startingOffsets", 0), ("endingOffsets", 1)):
            places = {str(number): pair[side] for number, pair in enumerate(pairs)}
            options[name] = json.dumps({topic: places})
    elif kind == "times":
        options["startingTimestamp"] = str(START_MS + chance.randrange(SPAN_MS))
        options["startingOffsetsByTimestampStrategy"] = "latest"
    return options


def test_rows_of_random_topics_are_the_connectors(
    spark: SparkSession, start_broker: StartBroker, topic: str, pytestconfig: pytest.Config
) -> None:
    broker = start_broker({"log.cleaner.backoff.ms": "100"})
    rows = compacted = 0
    for number in range(TOPICS):
        chance = Random(f"{pytestconfig.option.seed}-{number}")
        name = f"{topic}-{number}"
        history = History(chance, broker.bootstrap, name, is_compacted=number % 3 == 2)
        history.write()
        whole = partial(by_segments, spark, broker.data_dir, subscribe=name)
        if history.is_compacted:
            history.settle(whole)
            compacted += 1
        else:
            assert whole().count() == history.written
        ends = records.end_offsets(broker.bootstrap, name, partitions=history.partitions)
        for _ in range(READS):
            options = {"subscribe": name, "includeHeaders": "true"}
            options |= random_bounds(chance, name, ends)
            # With read_committed, both reject an end after the last stable offset.
            if "endingOffsets" not in options and chance.random() < 0.6:
                options |= COMMITTED
            found, expected = both_reads(spark, broker, options)
            if found != expected and history.is_compacted:
                # The last compaction may have finished between the two reads.
                found, expected = both_reads(spark, broker, options)
            assert found == expected, (number, options)
            rows += len(found)
    sys.stdout.write(
        f"rows as the connector's: {rows} records, {TOPICS} topics, {compacted} of them compacted\n"
    )


def both_reads(
    spark: SparkSession, broker: Broker, options: dict[str, str]
) -> tuple[list[Row], list[Row]]:
    """Return the data source's and the connector's rows, in the log's order."""
    theirs = by_connector(spark, broker, **options)
    ours = by_segments(spark, broker.data_dir, **options).select(*theirs.columns)
    order = ["partition", "offset"]
    return ours.orderBy(*order).collect(), theirs.orderBy(*order).collect()
