"""Clients that use a broker during monitoring tests."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

from confluent_kafka import Consumer, Producer, TopicPartition

from compat_tests.support.topics import create

if TYPE_CHECKING:
    from typing import Self

_PARTITIONS = 2
_TURN_S = 0.1
_MOST_AT_ONCE = 500


class Traffic:
    """Produces, consumes and commits a little at a time until it is stopped.

    Args:
        bootstrap: HOST:PORT of the broker.
        topic: Created with two partitions; each turn writes to both.
        group: Commits what it has read.
        reads: The partitions that the group reads, from the start.
        value: Of each record.
        rest: When the group is paused, in seconds since the start.
    """

    def __init__(
        self,
        bootstrap: str,
        topic: str = "orders",
        group: str = "billing",
        *,
        reads: tuple[int, ...] = (0,),
        value: bytes = b"v",
        rest: tuple[float, float] = (0.0, 0.0),
    ) -> None:
        self._bootstrap = bootstrap
        self._topic = topic
        self._group = group
        self._reads = reads
        self._value = value
        self._rest = rest
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> Self:
        create(self._bootstrap, self._topic, partitions=_PARTITIONS)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        self._thread.join()

    def _run(self) -> None:
        producer = Producer({"bootstrap.servers": self._bootstrap})
        consumer = Consumer(
            {
                "bootstrap.servers": self._bootstrap,
                "group.id": self._group,
                "auto.offset.reset": "earliest",
                # After an automatic commit, our explicit commit would have no offsets, which is an
                # error.
                "enable.auto.commit": "false",
            }
        )
        consumer.assign([TopicPartition(self._topic, number, 0) for number in self._reads])
        began = time.monotonic()
        while not self._is_over.wait(_TURN_S):
            for number in range(_PARTITIONS):
                producer.produce(self._topic, self._value, partition=number)
            producer.flush(10)
            rest_from, rest_until = self._rest
            if rest_from <= time.monotonic() - began < rest_until:
                continue
            messages = consumer.consume(_MOST_AT_ONCE, timeout=_TURN_S)
            if any(message.error() is None for message in messages):
                consumer.commit(asynchronous=False)
        consumer.close()
