"""The helpers with confluent-kafka, kafka-python and aiokafka: what they send, what they read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import aiokafka
import kafka
import pytest
from confluent_kafka import Consumer, Producer

from tests.support.delivery.delivery_process import committed_records
from wirebroker.base.dead_letter_headers import read_dead_letter_headers
from wirebroker.dedup import Deduplicator, MemoryStore, message_id
from wirebroker.delivery.client import later, retry

if TYPE_CHECKING:
    from tests.support.brokers.brokers import Broker

CLIENTS = ("confluent-kafka", "kafka-python", "aiokafka")


async def send(client: str, bootstrap: str, arguments: dict[str, Any]) -> None:
    if client == "confluent-kafka":
        confluent = Producer({"bootstrap.servers": bootstrap, "log_level": 0})
        confluent.produce(**arguments)
        assert confluent.flush(60) == 0
    elif client == "kafka-python":
        with_python = kafka.KafkaProducer(bootstrap_servers=bootstrap)
        with_python.send(**arguments).get(60)
        with_python.close()
    else:
        async with aiokafka.AIOKafkaProducer(bootstrap_servers=bootstrap) as with_aio:
            await with_aio.send_and_wait(**arguments)


async def receive(client: str, bootstrap: str, topic: str) -> Any:
    if client == "confluent-kafka":
        settings = {"bootstrap.servers": bootstrap, "group.id": topic, "log_level": 0}
        confluent = Consumer({**settings, "auto.offset.reset": "earliest"})
        confluent.subscribe([topic])
        message = confluent.poll(60)
        confluent.close()
        assert message is not None
        assert message.error() is None
        return message
    options = {"bootstrap_servers": bootstrap, "auto_offset_reset": "earliest"}
    if client == "kafka-python":
        with_python = kafka.KafkaConsumer(topic, **options, consumer_timeout_ms=60_000)
        record = next(with_python)
        with_python.close()
        return record
    async with aiokafka.AIOKafkaConsumer(topic, **options) as with_aio:
        return await with_aio.getone()


@pytest.mark.parametrize("client", CLIENTS)
async def test_helpers_work_with_a_client(broker: Broker, topic: str, client: str) -> None:
    sent = later("orders", b"v", key=b"k", headers=[message_id("m1")], input_topic=topic)
    await send(client, broker.bootstrap, sent)
    record = await receive(client, broker.bootstrap, topic)
    again = retry(record, ValueError("no price"), group="billing", input_topic=f"{topic}-retry")
    await send(client, broker.bootstrap, again)
    (written,) = committed_records(broker.bootstrap, f"{topic}-retry")
    headers = dict(written.headers())
    assert headers["retry-topic"] == f"{topic}.retry.billing".encode()
    assert read_dead_letter_headers(written.headers()) == {
        "topic": topic,
        "partition": "0",
        "offset": "0",
        "group": "billing",
        "delivery.count": "1",
        "message": "no price",
    }
    assert (written.key(), written.value()) == (b"k", b"v")
    deduplicator = Deduplicator(MemoryStore())
    for expected in (True, False):
        with deduplicator.once(record) as is_new:
            assert is_new is expected
