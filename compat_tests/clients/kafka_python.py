"""kafka-python."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from kafka import KafkaConsumer, KafkaProducer, TopicPartition

from compat_tests.clients.message import WAIT_S, Message, Start

if TYPE_CHECKING:
    from collections.abc import Sequence


class KafkaPython:
    name = "kafka-python"

    def produce(
        self, bootstrap: str, topic: str, messages: Sequence[Message], *, codec: str = "none"
    ) -> None:
        compression = None if codec == "none" else codec
        producer = KafkaProducer(
            bootstrap_servers=bootstrap, compression_type=compression, acks="all", linger_ms=5
        )
        try:
            futures = [send(producer, topic, message) for message in messages]
            for future in futures:
                future.get(timeout=WAIT_S)
        finally:
            producer.close(timeout=5)

    def consume(
        self, bootstrap: str, topic: str, count: int, *, start: Start = "earliest"
    ) -> list[Message]:
        consumer = make_consumer(bootstrap)
        try:
            place(consumer, topic, start)
            return read(consumer, count)
        finally:
            consumer.close()


def make_consumer(bootstrap: str, **settings: Any) -> Any:
    defaults = {"group_id": None, "enable_auto_commit": False, "auto_offset_reset": "none"}
    return KafkaConsumer(bootstrap_servers=bootstrap, **{**defaults, **settings})


def send(producer: Any, topic: str, message: Message) -> Any:
    return producer.send(
        topic,
        value=message.value,
        key=message.key,
        headers=list(message.headers),
        partition=0,
        timestamp_ms=message.timestamp_ms,
    )


def place(consumer: Any, topic: str, start: Start) -> None:
    partition = TopicPartition(topic, 0)
    consumer.assign([partition])
    if start == "earliest":
        consumer.seek_to_beginning(partition)
    elif start == "latest":
        consumer.seek_to_end(partition)
    else:
        consumer.seek(partition, start)
    consumer.position(partition)


def read(consumer: Any, count: int) -> list[Message]:
    messages: list[Message] = []
    deadline = time.monotonic() + WAIT_S
    while len(messages) < count:
        assert time.monotonic() < deadline, f"{len(messages)} of {count} messages in {WAIT_S:.0f} s"
        for records in consumer.poll(timeout_ms=500, max_records=count - len(messages)).values():
            messages.extend(_message(record) for record in records)
    return messages


def _message(record: Any) -> Message:
    return Message(
        value=record.value,
        key=record.key,
        headers=tuple(record.headers),
        timestamp_ms=record.timestamp,
        offset=record.offset,
        timestamp_type="append" if record.timestamp_type == 1 else "create",
    )
