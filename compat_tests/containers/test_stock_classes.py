"""testcontainers' own Kafka classes start the image unmodified; clients reach it as they say."""

from __future__ import annotations

import pytest
from confluent_kafka import Consumer, Producer

from compat_tests.containers.harness import started

pytestmark = [pytest.mark.engine, pytest.mark.timeout(600)]

CLASSES = [
    ("python", "7.6.0", "zookeeper"),
    ("python", "7.6.0", "kraft"),
    ("java", "8.0.0", "apache"),
    ("java", "8.0.0", "confluent"),
    ("go", "8.0.0", ""),
    ("node", "8.0.0", ""),
    ("node", "7.6.0", "zookeeper"),
    ("node", "7.6.0", "kraft"),
    ("node", "7.2.0", "kraft"),
]


@pytest.mark.parametrize(("language", "tag", "variant"), CLASSES)
def test_a_stock_class_starts_the_image_and_clients_find_it(images, language, tag, variant):
    with started(language, images[tag], variant) as bootstrap:
        config = {"bootstrap.servers": bootstrap}
        producer = Producer(config)
        producer.produce("orders", b"a book")
        assert producer.flush(30) == 0
        consumer = Consumer(config | {"group.id": "shop", "auto.offset.reset": "earliest"})
        consumer.subscribe(["orders"])
        message = consumer.poll(30)
        consumer.close()
        assert message is not None
        assert message.value() == b"a book"
