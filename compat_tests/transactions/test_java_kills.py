"""A broker killed under Java's transactional producers, whose epoch rises with each transaction.

pytest compat_tests/transactions/test_java_kills.py --kills 100 --seed 7      a quarter of them here

Unlike librdkafka's they go by transaction.version 2 (KIP-890): a commit whose answer a kill has
swallowed is asked for again in an epoch that is over. In the end readers of what is committed see
each producer's committed transactions in every topic, in order, and nothing else.
"""

from __future__ import annotations

import random
import threading
import time
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import Consumer, KafkaError, TopicPartition

from compat_tests import topics
from compat_tests.clients import confluent
from compat_tests.clients.message import WAIT_S
from compat_tests.transactions.drivers.driver import FencedError
from compat_tests.transactions.drivers.java import Java
from compat_tests.transactions.settings import SETTINGS
from tests.support.waiting import eventually

if TYPE_CHECKING:
    from compat_tests.conftest import StartBroker
    from compat_tests.transactions.drivers.driver import Driver
    from tests.support.brokers import Broker

PRODUCERS = 2
TOPICS = 3
MOST_MESSAGES = 10  # of a transaction in each topic
ABORTED_SHARE = 0.25
SHORTEST_LIFE_S, LONGEST_LIFE_S = 0.05, 1.5

pytestmark = pytest.mark.java


class JavaLoad:
    """Commits and aborts transactions over all topics until it is told to stop; a thread.

    Attributes:
        committed: The values of committed transactions, in order, the same in each topic.
        aborted: How many transactions were not committed, those among them that an error ended.
        errors: What the producers have complained of, each before its commit; a new one followed.
    """

    def __init__(self, broker: Broker, names: list[str], number: int, seed: str) -> None:
        self.name = f"j{number}"
        self.committed: list[bytes] = []
        self.aborted = 0
        self.count = 0
        self.errors: list[str] = []
        self.failure: BaseException | None = None
        self._bootstrap = broker.bootstrap
        self._topics = names
        self._choice = random.Random(seed)
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def finish(self) -> None:
        """Begin no other transaction, and wait for the end of the last."""
        self._is_over.set()
        self._thread.join(3 * WAIT_S)
        assert not self._thread.is_alive(), f"{self.name} hangs in its transaction {self.count}"
        if self.failure:
            raise self.failure

    def _run(self) -> None:
        driver: Driver | None = None
        try:
            while not self._is_over.is_set():
                if driver is None:
                    driver = Java().start(self._bootstrap, self.name)
                if not self._is_served(driver):
                    driver.close()  # the next one aborts what it has begun
                    driver = None
        except BaseException as failure:  # noqa: BLE001 - raised again by `finish`
            self.failure = failure
        finally:
            if driver is not None:
                driver.close()

    def _is_served(self, driver: Driver) -> bool:
        """Run one transaction; false if its producer can't go on."""
        self.count += 1
        wanted = self._choice.randint(1, MOST_MESSAGES)
        values = [f"{self.name} {self.count} {each}".encode() for each in range(wanted)]
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
        driver.commit()  # which has to work: it is tried again for a minute
        self.committed += values
        return True


def test_what_java_has_committed_is_there_whole_and_nothing_else(
    start_broker: StartBroker, topic: str, request: pytest.FixtureRequest
) -> None:
    choice = random.Random(request.config.getoption("--seed"))
    kills = max(1, int(request.config.getoption("--kills", default=12)) // 4)
    broker = start_broker(SETTINGS)
    names = [f"{topic}-{number}" for number in range(TOPICS)]
    for name in names:
        topics.create(broker.bootstrap, name)
    loads = [JavaLoad(broker, names, number, str(choice.random())) for number in range(PRODUCERS)]
    try:
        for _ in range(kills):
            wait_for_a_commit(loads)
            time.sleep(choice.uniform(SHORTEST_LIFE_S, LONGEST_LIFE_S))
            broker.kill9()
            broker.start()
    finally:
        for load in loads:
            load.finish()
    aborted = sum(load.aborted for load in loads)
    errors = [error for load in loads for error in load.errors]
    counts = f"{sum(load.count for load in loads)} transactions, {aborted} aborted"
    print(f"\n{kills} kills, {counts}, errors {errors}")  # noqa: T201
    for name in names:
        values = read_committed(broker, name)
        for load in loads:
            own = [value for value in values if value.startswith(load.name.encode())]
            assert own == load.committed


def wait_for_a_commit(loads: list[JavaLoad]) -> None:
    """Wait until one more is done: a kill that finds no load under way shows nothing."""
    before = sum(len(load.committed) for load in loads)
    eventually(lambda: sum(len(load.committed) for load in loads) > before)


def read_committed(broker: Broker, topic: str) -> list[bytes]:
    """Return what is in partition 0 up to its last stable offset."""
    settings = {"isolation.level": "read_committed", "enable.partition.eof": True}
    consumer: Consumer = confluent.make_consumer(broker.bootstrap, settings)
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
