"""kafka_exporter works with the broker, and its metrics equal the broker's own."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from confluent_kafka import Consumer, Producer

from compat_tests.monitoring.kafka_exporter import exporting, program, read
from compat_tests.support.topics import create
from tests.support.brokers.brokers import Wirebroker
from tests.support.http.scrape_pages import Samples, read_page
from tests.support.tools.ports import free_port
from tests.support.tools.tools import ToolError

if TYPE_CHECKING:
    from pathlib import Path

# The exporter's own prefixes; others are of the process and the Go runtime.
_OURS = ("kafka_broker", "kafka_consumergroup_", "kafka_topic_")


def use(bootstrap: str) -> Consumer:
    create(bootstrap, "orders", partitions=3)
    producer = Producer({"bootstrap.servers": bootstrap})
    for number in range(30):
        producer.produce("orders", b"v", partition=number % 3)
    assert producer.flush(30) == 0
    settings = {"bootstrap.servers": bootstrap, "group.id": "billing"}
    consumer = Consumer({**settings, "auto.offset.reset": "earliest"})
    consumer.subscribe(["orders"])
    read_count = 0
    while read_count < 12:
        read_count += consumer.poll(10) is not None
    consumer.commit(asynchronous=False)
    return consumer


def of_kafka(samples: Samples) -> Samples:
    return {series: number for series, number in samples.items() if series[0].startswith(_OURS)}


@pytest.mark.nightly
def test_metrics_equal_those_of_kafka_exporter(tmp_path: Path):
    try:
        program()
    except ToolError as error:
        pytest.skip(f"there is no kafka_exporter here: {error}")
    http_address = f"127.0.0.1:{free_port()}"
    broker = Wirebroker(tmp_path, {"wirebroker.http.listeners": http_address})
    broker.start()
    try:
        consumer = use(broker.bootstrap)
        with exporting(broker.bootstrap) as page:
            exporter_samples = of_kafka(read_page(read(page)))
        wirebroker_samples = of_kafka(read_page(read(f"http://{http_address}/metrics")))
        consumer.close()
    finally:
        broker.stop()
    assert wirebroker_samples == exporter_samples
    names = {name for name, _ in wirebroker_samples}
    assert {"kafka_consumergroup_lag_sum", "kafka_topic_partition_current_offset"} <= names
