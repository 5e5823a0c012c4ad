"""A consumer of either group protocol as the first one of a cluster, with the brokers' defaults.

Others run with short sessions, see test_group_life.py and test_changing_groups.py.
"""

from __future__ import annotations

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
def test_consumer_reads(
    start_broker: StartBroker, topic: str, protocol: str, is_first: bool
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
    messages = consumer.consume(1, WAIT_S)
    assert [message.value() for message in messages] == [b"value"]
    consumer.close()
