"""Java's transactional producers, and a record of their committed transactions.

Their epoch rises with each transaction (transaction.version 2, KIP-890); librdkafka's does not.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import Consumer, KafkaError, TopicPartition

from compat_tests.clients import confluent
from compat_tests.clients.message import WAIT_S
from compat_tests.transactions.drivers.driver import FencedError
from compat_tests.transactions.drivers.java import Java
from tests.support.tools.background import BackgroundLoad

if TYPE_CHECKING:
    from compat_tests.transactions.drivers.driver import Driver

MOST_MESSAGES = 10  # per transaction and topic
ABORTED_SHARE = 0.25


class JavaLoad(BackgroundLoad):
    """Commits and aborts transactions over all topics until it is stopped.

    Attributes:
        committed: Values of committed transactions, in order, the same in each topic.
        aborted: Number of other transactions, including those that an error ended.
        errors: Errors before a commit; each led to a new producer.
    """

    def __init__(self, bootstrap: str, names: list[str], number: int, seed: str) -> None:
        super().__init__(f"j{number}", patience_s=3 * WAIT_S)
        self.committed: list[bytes] = []
        self.aborted = 0
        self.errors: list[str] = []
        self._bootstrap = bootstrap
        self._topics = names
        self._choice = random.Random(seed)

    def _work(self) -> None:
        driver: Driver | None = None
        try:
            while not self._is_over.is_set():
                if driver is None:
                    driver = Java().start(self._bootstrap, self.name)
                if not self._is_served(driver):
                    driver.close()  # the next one aborts its open transaction
                    driver = None
        finally:
            if driver is not None:
                driver.close()

    def _is_served(self, driver: Driver) -> bool:
        """Run one transaction; return false if its producer must be replaced."""
        self.count += 1
        count = self._choice.randint(1, MOST_MESSAGES)
        values = [f"{self.name} {self.count} {number}".encode() for number in range(count)]
        try:
            driver.begin()
            for topic in self._topics:
                driver.write(topic, values)
            if self._choice.random() < ABORTED_SHARE:
                driver.abort()
                self.aborted += 1
                return True
        except (AssertionError, FencedError) as error:
            self.errors.append(str(error))
            self.aborted += 1
            return False
        driver.commit()  # must succeed: it is retried for a minute
        self.committed += values
        return True


def read_committed(bootstrap: str, topic: str) -> list[bytes]:
    settings = {"isolation.level": "read_committed", "enable.partition.eof": True}
    consumer: Consumer = confluent.make_consumer(bootstrap, settings)
    values: list[bytes] = []
    try:
        consumer.assign([TopicPartition(topic, 0, 0)])
        while (message := consumer.poll(WAIT_S)) is not None:
            error = message.error()
            if error is None:
                values.append(message.value() or b"")
            else:
                assert error.code() == KafkaError._PARTITION_EOF, error
                return values
        pytest.fail(f"after {len(values)} messages nothing came")
    finally:
        consumer.close()
