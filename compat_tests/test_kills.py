"""A broker killed at random moments under load: nothing acknowledged is lost, nothing is twice.

pytest compat_tests/test_kills.py --kills 100 --seed 7      a hundred kills, from this seed

Idempotent producers of librdkafka go on over all kills by themselves. In the end every partition
must hold each producer's messages once and in order, the acknowledged ones at the offsets that
they were acknowledged with.
"""

from __future__ import annotations

import random
import threading
import time
from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from compat_tests import topics
from compat_tests.clients import confluent
from compat_tests.clients.message import WAIT_S

if TYPE_CHECKING:
    from compat_tests.brokers import Broker
    from compat_tests.conftest import StartBroker

PARTITIONS = 4
PRODUCERS = 3
# What one producer has on its way at most, so that a kill finds some of it.
MOST_IN_FLIGHT = 2_000
# Of load between a start and the next kill.
SHORTEST_LIFE_S, LONGEST_LIFE_S = 0.05, 1.5


class Load:
    """An idempotent producer that sends until it is told to stop; runs in a thread of its own.

    Attributes:
        sent: How many messages each partition was sent.
        acknowledged: (partition, number of the message) -> offset.
        errors: What was not delivered, and why.
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
        }
        self._producer: Producer = confluent.make_producer(broker.bootstrap, settings)
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def finish(self) -> None:
        """Send nothing more, and wait until everything is delivered."""
        self._is_over.set()
        self._thread.join()
        assert self._producer.flush(WAIT_S) == 0

    def value(self, number: int) -> bytes:
        """Return a message: larger and smaller ones."""
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
def test_nothing_acknowledged_is_lost_and_nothing_is_twice(
    start_broker: StartBroker, topic: str, durability: str, request: pytest.FixtureRequest
) -> None:
    choice = random.Random(request.config.getoption("--seed"))
    kills = max(1, int(request.config.getoption("--kills", default=10)) // 2)
    broker = start_broker({"wirebroker.durability": durability})
    configs = {"segment.bytes": str(4 << 20)}
    topics.create(broker.bootstrap, topic, partitions=PARTITIONS, configs=configs)
    loads = [Load(broker, topic, number) for number in range(PRODUCERS)]
    try:
        for _ in range(kills):
            before = sum(len(load.acknowledged) for load in loads)
            deadline = time.monotonic() + WAIT_S
            # A kill that finds no load under way shows nothing.
            while sum(len(load.acknowledged) for load in loads) == before:
                assert time.monotonic() < deadline, "nothing is acknowledged any more"
                time.sleep(0.01)
            time.sleep(choice.uniform(SHORTEST_LIFE_S, LONGEST_LIFE_S))
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


def check(broker: Broker, topic: str, partition: int, loads: list[Load]) -> None:
    """Compare a partition with what its producers know."""
    found = dict(read_all(broker, topic, partition))
    assert sorted(found) == list(range(len(found))), "offsets have gaps"
    for load in loads:
        name = load.name.encode()
        own = [(offset, value) for offset, value in found.items() if value.split()[0] == name]
        own.sort()
        assert [value for _, value in own] == [load.value(n) for n in range(load.sent[partition])]
        assert [offset for offset, _ in own] == [
            load.acknowledged[partition, number] for number in range(load.sent[partition])
        ]


def read_all(broker: Broker, topic: str, partition: int) -> list[tuple[int, bytes]]:
    """Return (offset, value) of every message."""
    consumer: Consumer = confluent.make_consumer(broker.bootstrap)
    try:
        consumer.assign([TopicPartition(topic, partition, 0)])
        place = TopicPartition(topic, partition)
        _, end = consumer.get_watermark_offsets(place, timeout=WAIT_S)
        messages: list[tuple[int, bytes]] = []
        while len(messages) < end:
            batch = consumer.consume(min(1_000, end - len(messages)), WAIT_S)
            assert batch, f"{len(messages)} of {end} messages came"
            messages += [(message.offset() or 0, message.value() or b"") for message in batch]
        return messages
    finally:
        consumer.close()
