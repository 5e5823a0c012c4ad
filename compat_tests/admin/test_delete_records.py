"""DeleteRecords through admin clients, and its effect on consumers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from aiokafka import TopicPartition as AioPartition
from aiokafka.admin import AIOKafkaAdminClient, RecordsToDelete
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from kafka import KafkaAdminClient
from kafka import TopicPartition as PythonPartition

from compat_tests.clients.message import WAIT_S

if TYPE_CHECKING:
    from tests.support.brokers.brokers import Broker

RECORDS = 10


def fill(broker: Broker, topic: str) -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap})
    for number in range(RECORDS):
        producer.produce(topic, value=str(number).encode(), partition=0)
    assert producer.flush(WAIT_S) == 0


def test_confluent_deletes_records_and_reads_the_remaining_ones(broker: Broker, topic: str):
    fill(broker, topic)
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    [future] = admin.delete_records([TopicPartition(topic, 0, 4)]).values()
    assert future.result(WAIT_S).low_watermark == 4
    consumer = Consumer(
        {
            "bootstrap.servers": broker.bootstrap,
            "group.id": topic,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
        }
    )
    assert consumer.get_watermark_offsets(TopicPartition(topic, 0), WAIT_S) == (4, RECORDS)
    # Its position is deleted, so it is reset to the first remaining record.
    consumer.assign([TopicPartition(topic, 0, 1)])
    messages = consumer.consume(RECORDS - 4, WAIT_S)
    assert [message.value() for message in messages] == [b"4", b"5", b"6", b"7", b"8", b"9"]
    consumer.close()


def test_confluent_gets_error_for_offset_after_the_end(broker: Broker, topic: str):
    fill(broker, topic)
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    [future] = admin.delete_records([TopicPartition(topic, 0, RECORDS + 1)]).values()
    with pytest.raises(KafkaException) as raised:
        future.result(WAIT_S)
    assert raised.value.args[0].code() == KafkaError.OFFSET_OUT_OF_RANGE


def test_kafka_python_deletes_all_records(broker: Broker, topic: str):
    fill(broker, topic)
    admin = KafkaAdminClient(bootstrap_servers=broker.bootstrap)
    deleted = admin.delete_records({PythonPartition(topic, 0): -1})
    assert deleted[PythonPartition(topic, 0)]["low_watermark"] == RECORDS
    admin.close()


async def test_aiokafka_deletes_records(broker: Broker, topic: str):
    fill(broker, topic)

    admin = AIOKafkaAdminClient(bootstrap_servers=broker.bootstrap)
    await admin.start()
    try:
        records_to_delete = {AioPartition(topic, 0): RecordsToDelete(before_offset=7)}
        assert (await admin.delete_records(records_to_delete)) == {AioPartition(topic, 0): 7}
    finally:
        await admin.close()
