"""The data source gives the connector's rows, of random topics; `tests.nightly spark-rows`.

Topics of random histories (codecs, sizes, keys and values that are null or empty, headers, times in
no order, transactions that commit, abort or stay open, compaction) are read by both with random
bounds.
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
SPAN_MS = 100_000  # of the records' times
COMPACTED = {
    "cleanup.policy": "compact",
    "segment.ms": "100",  # the one that is written to is never compacted
    "min.cleanable.dirty.ratio": "0.01",
}


class History:
    """What is written to a topic, as a seed says.

    Attributes:
        is_compacted: Whether it was, at some places; then it isn't any more.
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
        # Kept, since the end of a producer aborts its transaction.
        self._open: list[Any] = []

    def write(self) -> None:
        """Write some batches, and leave a transaction open now and then."""
        for number in range(self._chance.randint(2, 8)):
            if self._chance.random() < 0.5:
                self._write_plain()
            else:
                self._write_transactions(f"{self._topic}-{number}")

    def settle(self, whole: Callable[[], DataFrame]) -> None:
        """Write on until compaction has taken something, and end it then."""

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
        # An open one stays so while it is read.
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
                how = "commit"  # nothing behind the first open one is compacted
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
    """Return options of a read: where it begins and ends, and in how many pieces it is made."""
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
            # An end behind the last stable offset is an error of both.
            if "endingOffsets" not in options and chance.random() < 0.6:
                options |= COMMITTED
            found, expected = both_reads(spark, broker, options)
            if found != expected and history.is_compacted:
                # A pass that was at work when compaction ended: gone for one of them alone.
                found, expected = both_reads(spark, broker, options)
            assert found == expected, (number, options)
            rows += len(found)
    sys.stdout.write(
        f"rows as the connector's: {rows} records, {TOPICS} topics, {compacted} of them compacted\n"
    )


def both_reads(
    spark: SparkSession, broker: Broker, options: dict[str, str]
) -> tuple[list[Row], list[Row]]:
    """Return what the data source and the connector read, in the order of the log."""
    theirs = by_connector(spark, broker, **options)
    ours = by_segments(spark, broker.data_dir, **options).select(*theirs.columns)
    order = ["partition", "offset"]
    return ours.orderBy(*order).collect(), theirs.orderBy(*order).collect()
