"""aiokafka."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition

from compat_tests.clients.message import WAIT_S, Message, Start

if TYPE_CHECKING:
    from collections.abc import Sequence


class AioKafka:
    name = "aiokafka"

    def produce(
        self, bootstrap: str, topic: str, messages: Sequence[Message], *, codec: str = "none"
    ) -> None:
        compression = None if codec == "none" else codec
        asyncio.run(_produce(bootstrap, topic, messages, compression))

    def consume(
        self, bootstrap: str, topic: str, count: int, *, start: Start = "earliest"
    ) -> list[Message]:
        return asyncio.run(_consume(bootstrap, topic, count, start))


async def _produce(
    bootstrap: str, topic: str, messages: Sequence[Message], compression: str | None
) -> None:
    producer = AIOKafkaProducer(
        bootstrap_servers=bootstrap, compression_type=compression, acks="all", linger_ms=5
    )
    await producer.start()
    try:
        futures = [
            await producer.send(
                topic,
                value=message.value,
                key=message.key,
                partition=0,
                headers=list(message.headers),
                timestamp_ms=message.timestamp_ms,
            )
            for message in messages
        ]
        await asyncio.wait_for(asyncio.gather(*futures), WAIT_S)
    finally:
        await producer.stop()


async def _consume(bootstrap: str, topic: str, count: int, start: Start) -> list[Message]:
    consumer = AIOKafkaConsumer(bootstrap_servers=bootstrap, enable_auto_commit=False)
    await consumer.start()
    try:
        partition = TopicPartition(topic, 0)
        consumer.assign([partition])
        if start == "earliest":
            await consumer.seek_to_beginning(partition)
        elif start == "latest":
            await consumer.seek_to_end(partition)
        else:
            consumer.seek(partition, start)
        async with asyncio.timeout(WAIT_S):
            return [_message(await consumer.getone()) for _ in range(count)]
    finally:
        await consumer.stop()


def _message(record: Any) -> Message:
    return Message(
        value=record.value,
        key=record.key,
        headers=tuple(record.headers),
        timestamp_ms=record.timestamp,
        offset=record.offset,
        timestamp_type="append" if record.timestamp_type == 1 else "create",
    )
