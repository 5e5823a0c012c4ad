"""Consumer loops of three Python clients that deduplicate, fail and start again."""

from __future__ import annotations

from contextlib import aclosing, closing
from typing import TYPE_CHECKING, Any

import aiokafka
import kafka
import pytest
from confluent_kafka import Consumer, Producer

from wirebroker.dedup import Deduplicator, SqliteStore, message_id

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator
    from pathlib import Path

    from tests.support.brokers.brokers import Broker

MESSAGES = 20
# Sent twice, by a producer that did not receive the response.
REPEATED = (3, 4, 11)
FAILS_AT = 12
_PATIENCE_S = 60


def send(bootstrap: str, topic: str) -> int:
    """Send messages with ids, some of them twice; return the number of records."""
    producer = Producer({"bootstrap.servers": bootstrap, "log_level": 0})
    numbers = sorted([*range(MESSAGES), *REPEATED])
    for number in numbers:
        headers: Any = [message_id(f"m{number}")]
        producer.produce(topic, b"%d" % number, partition=0, headers=headers)
    assert producer.flush(_PATIENCE_S) == 0
    return len(numbers)


async def records(client: str, bootstrap: str, topic: str) -> AsyncGenerator[Any]:
    """Yield the records of a topic, without an end; offsets are not committed."""
    if client == "confluent-kafka":
        settings = {
            "bootstrap.servers": bootstrap,
            "group.id": topic,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "log_level": 0,
        }
        with closing(Consumer(settings)) as confluent:
            confluent.subscribe([topic])
            while True:
                message = confluent.poll(_PATIENCE_S)
                assert message is not None
                assert message.error() is None
                yield message
    options = {"bootstrap_servers": bootstrap, "auto_offset_reset": "earliest", "group_id": topic}
    if client == "kafka-python":
        with closing(
            kafka.KafkaConsumer(topic, **options, enable_auto_commit=False)
        ) as with_python:
            for record in with_python:
                yield record
    async with aiokafka.AIOKafkaConsumer(topic, **options, enable_auto_commit=False) as with_aio:
        async for record in with_aio:
            yield record


def value_of(record: Any) -> int:
    return int(record.value() if callable(record.value) else record.value)


class Shop:
    """An application that stores its rows in the same database as the marks of processed ids."""

    def __init__(self, path: Path) -> None:
        self.store = SqliteStore(path)
        self.store.connection.execute("CREATE TABLE IF NOT EXISTS orders (number INTEGER)")
        self.deduplicator = Deduplicator(self.store)

    def process(self, record: Any, *, fails_at: int | None) -> None:
        number = value_of(record)
        with self.deduplicator.once(record) as is_new:
            if is_new:
                self.store.connection.execute("INSERT INTO orders VALUES (?)", (number,))
            if number == fails_at:
                raise RuntimeError("the price is missing")

    def numbers(self) -> list[int]:
        rows = self.store.connection.execute("SELECT number FROM orders ORDER BY number")
        return [number for (number,) in rows]


async def run_loop(
    client: str, broker: Broker, topic: str, shop: Shop, count: int, *, fails_at: int | None
) -> None:
    async with aclosing(records(client, broker.bootstrap, topic)) as source:
        async for record in source:
            shop.process(record, fails_at=fails_at)
            count -= 1
            if not count:
                return


@pytest.mark.parametrize("client", ["confluent-kafka", "kafka-python", "aiokafka"])
async def test_each_message_is_processed_once_by_a_loop_that_fails_and_starts_again(
    broker: Broker, topic: str, tmp_path: Path, client: str
) -> None:
    count = send(broker.bootstrap, topic)
    first = Shop(tmp_path / "shop.sqlite")
    with closing(first.store.connection):
        with pytest.raises(RuntimeError):
            await run_loop(client, broker, topic, first, count, fails_at=FAILS_AT)
        assert first.numbers() == list(range(FAILS_AT))
        assert first.deduplicator.duplicate_count == len(REPEATED)
    second = Shop(tmp_path / "shop.sqlite")
    with closing(second.store.connection):
        await run_loop(client, broker, topic, second, count, fails_at=None)
        assert second.numbers() == list(range(MESSAGES))
        # Offsets were not committed: what the first loop processed arrived again.
        assert second.deduplicator.duplicate_count == FAILS_AT + len(REPEATED)
