"""A broker killed at random moments under load loses and duplicates no acknowledged message.

pytest compat_tests/faults/test_kills.py --kills 100 --seed 7      100 kills with this seed

Idempotent producers of librdkafka continue through all kills. In the end every partition must
hold each producer's messages once and in order, at the offsets of their acknowledgments.
read_committed readers must see exactly the committed transactions, and never part of one.
"""

from __future__ import annotations

import random
import threading
import time
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from compat_tests.clients import confluent
from compat_tests.clients.message import WAIT_S
from compat_tests.faults.transactional_load import TransactionalLoad
from compat_tests.support import topics
from compat_tests.transactions.watcher import Watcher
from tests.support.tools.waiting import eventually

if TYPE_CHECKING:
    from collections.abc import Callable

    from compat_tests.conftest import StartBroker
    from tests.support.brokers.brokers import Broker

PARTITIONS = 4
PRODUCERS = 3
# Maximum of unacknowledged messages per producer, so that a kill interrupts some.
MOST_IN_FLIGHT = 2_000
SETTINGS = {"transaction.state.log.num.partitions": "4"}
# Time under load between a start and the next kill.
SHORTEST_LIFE_S, LONGEST_LIFE_S = 0.05, 1.5


class Load:
    """A thread with an idempotent producer that sends until it is stopped.

    Attributes:
        sent: Number of messages sent to each partition.
        acknowledged: (partition, number of the message) -> offset.
        errors: Undelivered messages and the reasons.
    """

    def __init__(self, broker: Broker, topic: str, number: int) -> None:
        self.name = f"p{number}"
        self.sent = [0] * PARTITIONS
        self.acknowledged: dict[tuple[int, int], int] = {}
        self.errors: list[Any] = []
        self._topic = topic
        self._is_over = threading.Event()
        settings = {
            "enable.idempotence": True,
            "linger.ms": 1,
            "batch.num.messages": 50,
            "retry.backoff.ms": 20,
            "reconnect.backoff.max.ms": 100,
            "message.timeout.ms": 300_000,
            "log_level": 2,
        }
        self._producer: Producer = confluent.make_producer(broker.bootstrap, settings)
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def finish(self) -> None:
        self._is_over.set()
        self._thread.join()
        assert self._producer.flush(WAIT_S) == 0

    def value(self, number: int) -> bytes:
        """Return a message, of varying size."""
        return f"{self.name} {number} ".encode() * (1 + number % 7 * 20)

    def _run(self) -> None:
        while not self._is_over.is_set():
            if len(self._producer) >= MOST_IN_FLIGHT:
                self._producer.poll(0.01)
                continue
            for partition in range(PARTITIONS):
                self._send(partition)
            self._producer.poll(0)

    def _send(self, partition: int) -> None:
        number = self.sent[partition]
        self.sent[partition] += 1

        def on_delivery(error: Any, message: Any) -> None:
            if error is None:
                self.acknowledged[partition, number] = message.offset()
            else:
                self.errors.append(error)

        self._producer.produce(
            self._topic, value=self.value(number), partition=partition, on_delivery=on_delivery
        )


@pytest.mark.parametrize("durability", ["os", "fsync"])
def test_acknowledged_records_are_neither_lost_nor_duplicated(
    start_broker: StartBroker, topic: str, durability: str, request: pytest.FixtureRequest
) -> None:
    choice, kills = plan(request)
    broker = start_broker({"wirebroker.durability": durability})
    create_topic(broker, topic)
    loads = [Load(broker, topic, number) for number in range(PRODUCERS)]
    try:
        for _ in range(kills):
            wait_for_load(lambda: sum(len(load.acknowledged) for load in loads))
            time.sleep(choice.uniform(SHORTEST_LIFE_S, LONGEST_LIFE_S))  # any moment
            broker.kill9()
            broker.start()
    finally:
        for load in loads:
            load.finish()
    for load in loads:
        assert not load.errors, load.errors[0]
        assert len(load.acknowledged) == sum(load.sent)
    for partition in range(PARTITIONS):
        check(broker, topic, partition, loads)


@pytest.mark.parametrize("durability", ["os", "fsync"])
def test_only_complete_committed_transactions_are_read(
    start_broker: StartBroker, topic: str, durability: str, request: pytest.FixtureRequest
) -> None:
    choice, kills = plan(request)
    broker = start_broker({"wirebroker.durability": durability, **SETTINGS})
    create_topic(broker, topic)
    watcher = Watcher(broker.bootstrap, topic, PARTITIONS)
    loads = [
        TransactionalLoad(broker, topic, PARTITIONS, number, str(choice.random())).start()
        for number in range(PRODUCERS)
    ]
    try:
        for _ in range(kills):
            wait_for_load(lambda: sum(load.committed.total() for load in loads))
            alive_until = time.monotonic() + choice.uniform(SHORTEST_LIFE_S, LONGEST_LIFE_S)
            while time.monotonic() < alive_until:
                watcher.read(0.02)
            broker.kill9()
            broker.start()
    finally:
        for load in loads:
            load.finish()
    watcher.close()
    counts = {
        "committed": sum(load.count - len(load.aborted) - len(load.undecided) for load in loads),
        "aborted": sum(len(load.aborted) for load in loads),
        "undecided": sum(len(load.undecided) for load in loads),
    }
    print(f"\n{durability}: {kills} kills, transactions {counts}")  # noqa: T201
    check_committed(broker, topic, loads)


def plan(request: pytest.FixtureRequest) -> tuple[random.Random, int]:
    """Return a test's random generator and its share of the kills."""
    kills = int(request.config.getoption("--kills", default=8))
    return random.Random(request.config.getoption("--seed")), max(1, kills // 4)


def create_topic(broker: Broker, topic: str) -> None:
    configs = {"segment.bytes": str(4 << 20)}
    topics.create(broker.bootstrap, topic, partitions=PARTITIONS, configs=configs)


def wait_for_load(progress: Callable[[], int]) -> None:
    before = progress()
    eventually(lambda: progress() > before)


def check_committed(broker: Broker, topic: str, loads: list[TransactionalLoad]) -> None:
    reader = Watcher(broker.bootstrap, topic, PARTITIONS)
    try:
        deadline = time.monotonic() + WAIT_S
        while reader.ended != set(range(PARTITIONS)):
            reader.read(0.05)
            assert time.monotonic() < deadline, "a transaction is still open"
        reader.check_transactions(
            {transaction_id for load in loads for transaction_id in load.aborted}
        )
    finally:
        reader.close()
    expected: Counter[bytes] = Counter()
    for load in loads:
        expected += load.committed
        for transaction, values in load.undecided.items():
            if transaction in reader.wholes:  # whole, as check_transactions has verified
                expected += values
    assert reader.seen == expected


def check(broker: Broker, topic: str, partition: int, loads: list[Load]) -> None:
    values_by_offset = dict(read_all(broker, topic, partition))
    assert sorted(values_by_offset) == list(range(len(values_by_offset))), "offsets have gaps"
    for load in loads:
        name = load.name.encode()
        values_of_load = [
            (offset, value)
            for offset, value in values_by_offset.items()
            if value.split()[0] == name
        ]
        values_of_load.sort()
        assert [value for _, value in values_of_load] == [
            load.value(n) for n in range(load.sent[partition])
        ]
        assert [offset for offset, _ in values_of_load] == [
            load.acknowledged[partition, number] for number in range(load.sent[partition])
        ]


def read_all(broker: Broker, topic: str, partition: int) -> list[tuple[int, bytes]]:
    consumer: Consumer = confluent.make_consumer(broker.bootstrap)
    try:
        consumer.assign([TopicPartition(topic, partition, 0)])
        topic_partition = TopicPartition(topic, partition)
        _, end = consumer.get_watermark_offsets(topic_partition, timeout=WAIT_S)
        messages: list[tuple[int, bytes]] = []
        while len(messages) < end:
            batch = consumer.consume(min(1_000, end - len(messages)), WAIT_S)
            assert batch, f"{len(messages)} of {end} messages came"
            messages += [(message.offset() or 0, message.value() or b"") for message in batch]
        return messages
    finally:
        consumer.close()
