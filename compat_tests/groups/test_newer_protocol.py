"""A consumer of the newer group protocol (KIP-848), which wirebroker does not support yet.

librdkafka finds the coordinator and waits without an error, so the broker logs one. Apache Kafka
supports the protocol.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import Consumer, TopicPartition

from compat_tests.clients.all import LIBRARIES
from compat_tests.clients.message import WAIT_S, Message
from compat_tests.support import topics

if TYPE_CHECKING:
    from compat_tests.conftest import StartBroker

CLIENT = LIBRARIES[0]


@pytest.mark.parametrize("is_first", [True, False], ids=["first group", "later group"])
@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_consumer_reads_or_broker_log_names_the_reason(
    start_broker: StartBroker, broker_kind: str, topic: str, protocol: str, is_first: bool
) -> None:
    broker = start_broker()
    topics.create(broker.bootstrap, topic)
    CLIENT.produce(broker.bootstrap, topic, [Message(b"value")])
    if not is_first:  # __consumer_offsets exists
        earlier = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": f"{topic}-earlier"})
        earlier.committed([TopicPartition(topic, 0)], timeout=WAIT_S)
        earlier.close()
    consumer = Consumer(
        {
            "bootstrap.servers": broker.bootstrap,
            "group.id": f"{topic}-group",
            "group.protocol": protocol,
            "auto.offset.reset": "earliest",
        }
    )
    consumer.subscribe([topic])
    is_served = protocol == "classic" or broker_kind == "apache"
    line = f"group {topic}-group: its client"
    is_read = is_told = False
    deadline = time.monotonic() + WAIT_S
    while not (is_read if is_served else is_told):
        assert time.monotonic() < deadline, broker.log.read_text()
        message = consumer.poll(0.1)
        is_read = is_read or (message is not None and message.value() == b"value")
        is_told = line in broker.log.read_text()
    consumer.close()
    assert is_read == is_served
    assert broker.log.read_text().count(line) == (0 if is_served else 1)
