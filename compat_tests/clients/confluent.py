"""confluent-kafka (librdkafka)."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Literal

from confluent_kafka import (
    OFFSET_BEGINNING,
    OFFSET_END,
    TIMESTAMP_LOG_APPEND_TIME,
    Consumer,
    KafkaException,
    Producer,
    TopicPartition,
)

from compat_tests.clients.message import WAIT_S, Message, Start

if TYPE_CHECKING:
    from collections.abc import Sequence

_STARTS = {"earliest": OFFSET_BEGINNING, "latest": OFFSET_END}


class Confluent:
    name = "confluent-kafka"

    def produce(
        self, bootstrap: str, topic: str, messages: Sequence[Message], *, codec: str = "none"
    ) -> None:
        producer = make_producer(bootstrap, {"compression.type": codec})
        errors: list[Any] = []
        for message in messages:
            produce_one(producer, topic, message, errors)
        assert producer.flush(WAIT_S) == 0, "messages are still waiting for their answers"
        if errors:
            raise KafkaException(errors[0])

    def consume(
        self, bootstrap: str, topic: str, count: int, *, start: Start = "earliest"
    ) -> list[Message]:
        consumer = make_consumer(bootstrap)
        try:
            offset = start if isinstance(start, int) else _STARTS[start]
            consumer.assign([TopicPartition(topic, 0, offset)])
            return read(consumer, count)
        finally:
            consumer.close()


def make_producer(bootstrap: str, settings: dict[str, Any] | None = None) -> Producer:
    """Return a producer with a short linger, so that a batch holds several messages."""
    return Producer({"bootstrap.servers": bootstrap, "linger.ms": 5, **(settings or {})})


def make_consumer(bootstrap: str, settings: dict[str, Any] | None = None) -> Consumer:
    """Return a consumer for assigned partitions; its group name is unused."""
    defaults = {"bootstrap.servers": bootstrap, "group.id": "none", "enable.auto.commit": False}
    return Consumer({**defaults, **(settings or {})})


def has_committed(consumer: Consumer, topic_partition: TopicPartition) -> bool:
    """Commit an offset; return false if the group has no coordinator yet, and look it up."""
    try:
        consumer.commit(offsets=[topic_partition], asynchronous=False)
    except KafkaException as error:
        if "COORDINATOR" not in error.args[0].name():
            raise
        return False
    return True


def produce_one(producer: Producer, topic: str, message: Message, errors: list[Any]) -> None:
    """Produce one message; delivery errors are appended to `errors`."""

    def on_delivery(error: Any, _: Any) -> None:
        if error is not None:
            errors.append(error)

    producer.produce(
        topic,
        value=message.value,
        key=message.key,
        partition=0,
        headers=list(message.headers),
        timestamp=message.timestamp_ms or 0,
        on_delivery=on_delivery,
    )
    producer.poll(0)


def read(consumer: Consumer, count: int) -> list[Message]:
    """Poll for `count` messages; raise errors."""
    messages: list[Message] = []
    deadline = time.monotonic() + WAIT_S
    while len(messages) < count:
        assert time.monotonic() < deadline, f"{len(messages)} of {count} messages in {WAIT_S:.0f} s"
        polled = consumer.poll(0.5)
        if polled is None:
            continue
        error = polled.error()
        if error is not None:
            raise KafkaException(error)
        messages.append(_message(polled))
    return messages


def _message(message: Any) -> Message:
    kind, timestamp_ms = message.timestamp()
    timestamp_type: Literal["create", "append"] = (
        "append" if kind == TIMESTAMP_LOG_APPEND_TIME else "create"
    )
    return Message(
        value=message.value(),
        key=message.key(),
        headers=tuple(message.headers() or ()),
        timestamp_ms=timestamp_ms,
        offset=message.offset(),
        timestamp_type=timestamp_type,
    )
