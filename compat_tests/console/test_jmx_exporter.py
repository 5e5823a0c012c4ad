"""The clients of Apache Kafka, read from the real JMX exporter with the usual rules."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import Producer

from compat_tests.support.kafka_with_exporter import (
    CONFLUENT_RULES,
    NO_RULES,
    STRIMZI_RULES,
    KafkaWithExporter,
)
from tests.support.tools.waiting import eventually
from wirebroker.base.client_metric_names import ALL
from wirebroker.base.clock import SystemClock
from wirebroker.client.configs.quotas import alter_quotas
from wirebroker.console.client_metrics.broker_clients import BrokerClients, broker_clients
from wirebroker.console.client_metrics.quota_usage import uses_of
from wirebroker.console.client_metrics.scrapes import read_timed_samples
from wirebroker.console.model.settings import cluster_of_flag, open_client
from wirebroker.coordinator.quotas.quota_entity import entity_of

if TYPE_CHECKING:
    from pathlib import Path

    from wirebroker.console.client_metrics.text_page import ClientSamples

pytestmark = pytest.mark.nightly

LIMIT = 100_000.0
# Kafka quotes it in its metrics.
CLIENT_ID = "orders:writer,1"


async def set_quota(bootstrap: str, **entity: str | None) -> None:
    async with open_client(cluster_of_flag(f"c={bootstrap}"), SystemClock()) as client:
        parts = {kind.replace("_", "-"): name for kind, name in entity.items()}
        await alter_quotas(client, parts, {"producer_byte_rate": LIMIT})


def samples_of(url: str) -> ClientSamples:
    return asyncio.run(read_timed_samples(url, None, SystemClock())).page


def clients_at(url: str) -> BrokerClients:
    return broker_clients(samples_of(url), 1)


@pytest.mark.parametrize(
    "rules", [NO_RULES, STRIMZI_RULES, CONFLUENT_RULES], ids=["no-rules", "strimzi", "confluent"]
)
@pytest.mark.parametrize(
    "entity",
    [{"user": "ANONYMOUS"}, {"client_id": None}, {"user": None, "client_id": CLIENT_ID}],
    ids=["user", "default-client-id", "both"],
)
def test_connections_and_the_use_of_a_quota_are_read(tmp_path: Path, rules: str, entity):
    broker = KafkaWithExporter(tmp_path, rules=rules)
    with broker:
        asyncio.run(set_quota(broker.bootstrap, **entity))
        settings = {"bootstrap.servers": broker.bootstrap, "client.id": CLIENT_ID}
        producer = Producer(settings)

        def is_read() -> bool:
            producer.produce("orders", b"x" * 20_000)
            producer.flush(10)
            clients = clients_at(broker.metrics_url)
            software = {row.software for row in clients.connections if row.connections > 0}
            key = entity_of([(kind.replace("_", "-"), name) for kind, name in entity.items()])
            uses = uses_of({key: ("producer_byte_rate",)}, {1: clients})
            use = uses.get((key, "producer_byte_rate"))
            return "confluent-kafka-python" in str(software) and use is not None and use.rate > 1000

        eventually(is_read, timeout_s=60)
        # A page that was requested by name contains no other metrics.
        samples = samples_of(broker.metrics_url).samples
        assert {sample.name for sample in samples} <= ALL
