"""Transactions by confluent-kafka (librdkafka)."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition

from compat_tests.clients import confluent
from compat_tests.clients.message import WAIT_S
from compat_tests.transactions.drivers.driver import TRANSACTION_TIMEOUT_MS, FencedError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

READ_COMMITTED = {"isolation.level": "read_committed", "auto.offset.reset": "earliest"}
_FENCED = (KafkaError._FENCED, KafkaError.PRODUCER_FENCED, KafkaError.INVALID_PRODUCER_EPOCH)


class ConfluentDriver:
    def __init__(self, bootstrap: str, transactional_id: str) -> None:
        self._bootstrap = bootstrap
        self._producer = Producer(
            {
                "bootstrap.servers": bootstrap,
                "transactional.id": transactional_id,
                "transaction.timeout.ms": TRANSACTION_TIMEOUT_MS,
            }
        )
        self._producer.init_transactions(WAIT_S)

    def begin(self) -> None:
        with _telling_fenced():
            self._producer.begin_transaction()

    def write(self, topic: str, values: Sequence[bytes]) -> None:
        errors: list[KafkaError] = []

        def on_delivery(error: KafkaError | None, _: Any) -> None:
            if error is not None:
                errors.append(error)

        with _telling_fenced():
            for value in values:
                self._producer.produce(topic, value, partition=0, on_delivery=on_delivery)
            assert self._producer.flush(WAIT_S) == 0
            if errors:
                raise KafkaException(errors[0])

    def copy(self, source: str, target: str, group: str, count: int) -> None:
        consumer = Consumer(
            {
                "bootstrap.servers": self._bootstrap,
                "group.id": group,
                "enable.auto.commit": False,
                **READ_COMMITTED,
            }
        )
        try:
            consumer.subscribe([source])
            messages = confluent.read(consumer, count)
            self.write(target, [(message.value or b"").upper() for message in messages])
            offset = TopicPartition(source, 0, (messages[-1].offset or 0) + 1)
            with _telling_fenced():
                self._producer.send_offsets_to_transaction(
                    [offset], consumer.consumer_group_metadata(), WAIT_S
                )
        finally:
            consumer.close()

    def commit(self) -> None:
        with _telling_fenced():
            self._producer.commit_transaction(WAIT_S)

    def abort(self) -> None:
        with _telling_fenced():
            self._producer.abort_transaction(WAIT_S)

    def close(self) -> None:
        del self._producer


class ConfluentKafka:
    """confluent-kafka as a DriverFactory."""

    def start(self, bootstrap: str, transactional_id: str) -> ConfluentDriver:
        return ConfluentDriver(bootstrap, transactional_id)

    def read(self, bootstrap: str, topic: str, count: int) -> list[bytes]:
        consumer = confluent.make_consumer(bootstrap, dict(READ_COMMITTED))
        try:
            consumer.assign([TopicPartition(topic, 0, 0)])
            return [message.value or b"" for message in confluent.read(consumer, count)]
        finally:
            consumer.close()


@contextlib.contextmanager
def _telling_fenced() -> Iterator[None]:
    try:
        yield
    except KafkaException as error:
        if error.args[0].code() in _FENCED:
            raise FencedError(str(error)) from error
        raise
