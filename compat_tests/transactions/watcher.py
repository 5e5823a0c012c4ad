"""A read_committed reader of a whole topic that checks the visible records as they arrive."""

from __future__ import annotations

import json
import time
from collections import Counter
from typing import TYPE_CHECKING, Any

from confluent_kafka import Consumer, KafkaError, TopicPartition

from compat_tests.clients import confluent
from compat_tests.clients.message import WAIT_S

if TYPE_CHECKING:
    from collections.abc import Collection

_RETRIED = (KafkaError._TRANSPORT, KafkaError._ALL_BROKERS_DOWN, KafkaError._TIMED_OUT)


class Watcher:
    """Reads while the topic grows, and through restarts of its broker.

    A writer's transactions are sequential, so a reader that sees one has read all records of the
    writer's earlier ones in that partition. (At the end, the last stable offset, it may have read
    part of a transaction: the rest follows the first record of another open transaction.)

    Attributes:
        seen: Count of each value.
        ended: Partitions that the reader has read to the end.
        ends: Number of times that the reader reached a partition's end.
        wholes: Transaction -> number of records in each of its partitions.
    """

    def __init__(self, bootstrap: str, topic: str, partitions: int) -> None:
        self.bootstrap = bootstrap
        self.topic = topic
        self.ended: set[int] = set()
        self.seen: Counter[bytes] = Counter()
        self.ends = 0
        self.wholes: dict[str, list[int]] = {}
        self.parts: list[Counter[str]] = [Counter() for _ in range(partitions)]
        # By partition: each writer's incomplete transaction.
        self._unfinished: list[dict[str, str]] = [{} for _ in range(partitions)]
        settings = {
            "isolation.level": "read_committed",
            "enable.partition.eof": True,
            "fetch.wait.max.ms": 50,
            "reconnect.backoff.max.ms": 200,
            "log_level": 2,
        }
        self._consumer: Consumer = confluent.make_consumer(bootstrap, settings)
        self._consumer.assign(
            [TopicPartition(topic, partition, 0) for partition in range(partitions)]
        )

    def close(self) -> None:
        self._consumer.close()

    def read(self, timeout_s: float) -> None:
        """Read the available records, waiting for the first one up to a timeout."""
        for message in self._consumer.consume(1000, timeout_s):
            error = message.error()
            if error is None:
                self._take(message)
            elif error.code() == KafkaError._PARTITION_EOF:
                self.ends += 1
                self.ended.add(message.partition() or 0)
            else:
                assert error.code() in _RETRIED or error.retriable(), error

    def settle(self) -> None:
        """Read until nothing is open: a new reader then sees no more records than this one."""
        new_watcher = Watcher(self.bootstrap, self.topic, len(self.parts))
        try:
            read, deadline = 0, time.monotonic() + WAIT_S
            while len(new_watcher.ended) < len(self.parts) or new_watcher.seen != self.seen:
                new_watcher.read(0.05)
                self.read(0.05)
                if new_watcher.seen.total() > read:  # reading takes long on a busy machine
                    read, deadline = new_watcher.seen.total(), time.monotonic() + WAIT_S
                assert time.monotonic() < deadline, (
                    f"{self.topic}: one reader has {self.seen.total()} records, a fresh one"
                    f" {new_watcher.seen.total()}"
                )
        finally:
            new_watcher.close()

    def _take(self, message: Any) -> None:
        self.seen[message.value()] += 1
        headers = dict(message.headers())
        transaction: str = headers["txn"].decode()
        expected_counts = self.wholes.setdefault(transaction, json.loads(headers["parts"]))
        partition: int = message.partition()
        self.parts[partition][transaction] += 1
        count = self.parts[partition][transaction]
        assert count <= expected_counts[partition], (
            f"{transaction} has {count} records of {expected_counts[partition]}"
        )
        writer, unfinished = transaction.rpartition("-")[0], self._unfinished[partition]
        before = unfinished.pop(writer, transaction)
        assert before == transaction, f"{transaction} begins, and {before} is here in part"
        if count < expected_counts[partition]:
            unfinished[writer] = transaction

    def check_transactions(self, aborted: Collection[str]) -> None:
        """Check that every transaction is complete in all its partitions, and none was aborted."""
        for transaction, expected_counts in self.wholes.items():
            actual_counts = [counts[transaction] for counts in self.parts]
            assert actual_counts == expected_counts, (
                f"{transaction} is here with {actual_counts} records of {expected_counts}"
            )
            assert transaction not in aborted, f"{transaction} was aborted, and yet is here"

    def describe(self, expected: Collection[bytes]) -> tuple[int, int]:
        lost = sum(1 for value in expected if value not in self.seen)
        return lost, sum(1 for count in self.seen.values() if count > 1)
