"""A transactional producer that continues through kills of its broker and records its commits."""

from __future__ import annotations

import json
import random
from collections import Counter
from typing import TYPE_CHECKING, Any

from confluent_kafka import KafkaException, Producer

from compat_tests.clients.message import WAIT_S
from tests.support.tools.background import BackgroundLoad

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.support.brokers.brokers import Broker

ABORTED_SHARE = 0.25
MOST_MESSAGES = 20  # per transaction
CALL_S = 5.0  # timeout of one call
MOST_CALLS = 12


class TransactionalLoad(BackgroundLoad):
    """Commits and aborts transactions until it is stopped.

    Each message names its transaction and the transaction's message count per partition, as
    `compat_tests.transactions.watcher` expects.

    Attributes:
        committed: Messages of transactions with a confirmed commit.
        undecided: By transaction, messages with an unconfirmed commit.
        aborted: Names of transactions that were not committed.
    """

    def __init__(self, broker: Broker, topic: str, partitions: int, number: int, seed: str) -> None:
        super().__init__(f"t{number}", patience_s=MOST_CALLS * CALL_S + WAIT_S)
        self.committed: Counter[bytes] = Counter()
        self.undecided: dict[str, Counter[bytes]] = {}
        self.aborted: set[str] = set()
        self._bootstrap = broker.bootstrap
        self._topic, self._partitions = topic, partitions
        self._choice = random.Random(seed)

    def _work(self) -> None:
        producer = self._open()
        while not self._is_over.is_set():
            if not self._is_served(producer):
                producer = self._open()  # aborts the last transaction unless it has ended

    def _open(self) -> Producer:
        settings = {
            "bootstrap.servers": self._bootstrap,
            "transactional.id": self.name,
            "transaction.timeout.ms": 60_000,
            "linger.ms": 1,
            "retry.backoff.ms": 20,
            "reconnect.backoff.max.ms": 100,
            "log_level": 2,
        }
        producer = Producer(settings)
        _again(producer.init_transactions)
        return producer

    def _is_served(self, producer: Producer) -> bool:
        """Run one transaction; return false if its producer must be replaced."""
        self.count += 1
        transaction = f"{self.name}-{self.count}"
        messages = self._messages()
        values = Counter(value for _, value in messages)
        is_commit = self._choice.random() >= ABORTED_SHARE
        self.aborted.add(transaction)  # until its commit is requested
        try:
            producer.begin_transaction()
            self._write(producer, transaction, messages)
            if not is_commit:
                producer.flush(CALL_S)
                _again(producer.abort_transaction)
                return True
            self.aborted.remove(transaction)
            self.undecided[transaction] = values
            _again(producer.commit_transaction)
        except KafkaException as error:
            if not error.args[0].txn_requires_abort():
                return False
            self.undecided.pop(transaction, None)
            self.aborted.add(transaction)
            return _is_done(producer.abort_transaction)
        del self.undecided[transaction]
        self.committed += values
        return True

    def _messages(self) -> list[tuple[int, bytes]]:
        """Return (partition, value) of the next transaction's messages, of varying size."""
        return [
            (
                self._choice.randrange(self._partitions),
                f"{self.name} {self.count} {number} ".encode()
                * self._choice.choice((1, 1, 1, 200)),
            )
            for number in range(self._choice.randint(1, MOST_MESSAGES))
        ]

    def _write(
        self, producer: Producer, transaction: str, messages: list[tuple[int, bytes]]
    ) -> None:
        counts = Counter(partition for partition, _ in messages)
        parts = [counts[partition] for partition in range(self._partitions)]
        headers: Any = [("txn", transaction.encode()), ("parts", json.dumps(parts).encode())]
        for partition, value in messages:
            producer.produce(self._topic, value, partition=partition, headers=headers)
            producer.poll(0)


def _again(call: Callable[[float], None]) -> None:
    """Retry a call until it succeeds.

    Raises:
        KafkaException: It fails for good, or still fails after MOST_CALLS.
    """
    for number in range(MOST_CALLS):
        try:
            call(CALL_S)
        except KafkaException as error:
            if not error.args[0].retriable() or number == MOST_CALLS - 1:
                raise
        else:
            return


def _is_done(call: Callable[[float], None]) -> bool:
    try:
        _again(call)
    except KafkaException:
        return False
    return True
