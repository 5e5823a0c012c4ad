"""Transactions by kafka-python."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

from kafka import KafkaConsumer, KafkaProducer, TopicPartition
from kafka.errors import InvalidProducerEpochError, ProducerFencedError
from kafka.structs import OffsetAndMetadata

from compat_tests.clients import kafka_python
from compat_tests.clients.message import WAIT_S
from compat_tests.transactions.drivers.driver import TRANSACTION_TIMEOUT_MS, FencedError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

READ_COMMITTED = {
    "isolation_level": "read_committed",
    "auto_offset_reset": "earliest",
    "enable_auto_commit": False,
}


class KafkaPythonDriver:
    def __init__(self, bootstrap: str, transactional_id: str) -> None:
        self._bootstrap = bootstrap
        self._producer: Any = KafkaProducer(
            bootstrap_servers=bootstrap,
            transactional_id=transactional_id,
            transaction_timeout_ms=TRANSACTION_TIMEOUT_MS,
        )
        self._producer.init_transactions()

    def begin(self) -> None:
        with _telling_fenced():
            self._producer.begin_transaction()

    def write(self, topic: str, values: Sequence[bytes]) -> None:
        with _telling_fenced():
            sent = [self._producer.send(topic, value, partition=0) for value in values]
            self._producer.flush(WAIT_S)
            for future in sent:
                future.get(WAIT_S)

    def copy(self, source: str, target: str, group: str, count: int) -> None:
        consumer: Any = KafkaConsumer(
            source, bootstrap_servers=self._bootstrap, group_id=group, **READ_COMMITTED
        )
        try:
            messages = kafka_python.read(consumer, count)
            self.write(target, [(message.value or b"").upper() for message in messages])
            offset = OffsetAndMetadata((messages[-1].offset or 0) + 1, "", -1)
            offsets = {TopicPartition(source, 0): offset}
            with _telling_fenced():
                self._producer.send_offsets_to_transaction(offsets, consumer.group_metadata())
        finally:
            consumer.close()

    def commit(self) -> None:
        with _telling_fenced():
            self._producer.commit_transaction()

    def abort(self) -> None:
        with _telling_fenced():
            self._producer.abort_transaction()

    def close(self) -> None:
        self._producer.close(timeout=1)


class KafkaPython:
    """kafka-python as a DriverFactory."""

    def start(self, bootstrap: str, transactional_id: str) -> KafkaPythonDriver:
        return KafkaPythonDriver(bootstrap, transactional_id)

    def read(self, bootstrap: str, topic: str, count: int) -> list[bytes]:
        consumer = kafka_python.make_consumer(bootstrap, **READ_COMMITTED)
        try:
            kafka_python.place(consumer, topic, "earliest")
            return [message.value or b"" for message in kafka_python.read(consumer, count)]
        finally:
            consumer.close()


@contextlib.contextmanager
def _telling_fenced() -> Iterator[None]:
    try:
        yield
    except (ProducerFencedError, InvalidProducerEpochError) as error:
        raise FencedError(str(error)) from error
