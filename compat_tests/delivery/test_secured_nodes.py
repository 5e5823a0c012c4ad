"""Three nodes of a kind, whose listeners are all SASL_SSL: the minimal rights are enough."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient

from compat_tests.cluster.nodes import Cluster
from compat_tests.delivery.minimal_rights import prepare, write_client_config
from tests.support.delivery.delivery_process import DeliveryProcess, committed_records
from tests.support.security.tls_files import tls_configs
from tests.support.tools.waiting import eventually

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = [pytest.mark.java, pytest.mark.nightly]

RECORDS = 50
NODES = (1, 2, 3)
_PATIENCE_S = 120.0
_PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule required"
_SERVERS = (
    f'{_PLAIN} username="broker" password="broker-secret" user_broker="broker-secret" '
    'user_alice="alice-secret" user_service="service-secret";'
)


def settings(folder: Path) -> dict[str, str]:
    return {
        **tls_configs(folder),
        "listener.security.protocol.map": "PLAINTEXT:SASL_SSL,CONTROLLER:SASL_SSL",
        "inter.broker.listener.name": "PLAINTEXT",
        "sasl.enabled.mechanisms": "PLAIN",
        "sasl.mechanism.inter.broker.protocol": "PLAIN",
        "sasl.mechanism.controller.protocol": "PLAIN",
        "listener.name.plaintext.plain.sasl.jaas.config": _SERVERS,
        "listener.name.controller.plain.sasl.jaas.config": _SERVERS,
        "listener.name.controller.sasl.enabled.mechanisms": "PLAIN",
        "ssl.endpoint.identification.algorithm": "",
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:broker;User:alice",
        "default.replication.factor": "3",
        "offsets.topic.replication.factor": "3",
        "transaction.state.log.replication.factor": "3",
        "transaction.state.log.min.isr": "2",
        "min.insync.replicas": "2",
    }


@pytest.fixture
def secured(broker_kind: str, tmp_path: Path) -> Iterator[Cluster]:
    """A cluster of three brokers, with a controller of Apache Kafka."""
    cluster = Cluster(tmp_path / "nodes", settings=settings(tmp_path), is_secured=True)
    try:
        cluster.start_controllers()
        start = cluster.java_broker if broker_kind == "apache" else cluster.wirebroker
        for node_id in NODES:
            start(node_id)
        yield cluster
    finally:
        cluster.stop()


def of_alice(cluster: Cluster, folder: Path) -> dict[str, Any]:
    return {
        "bootstrap.servers": cluster.bootstrap,
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "PLAIN",
        "sasl.username": "alice",
        "sasl.password": "alice-secret",
        "ssl.ca.location": str(folder / "authority.pem"),
        "ssl.endpoint.identification.algorithm": "none",
        "log_level": 0,
    }


def test_the_service_works_over_sasl_ssl_with_the_minimal_rights(
    secured: Cluster, tmp_path: Path
) -> None:
    alice = of_alice(secured, tmp_path)
    admin = AdminClient(alice)
    eventually(
        lambda: len(admin.list_topics(timeout=10).brokers) == len(NODES), timeout_s=_PATIENCE_S
    )
    prepare(admin, "service", replicas=len(NODES))
    client_config = tmp_path / "client.properties"
    login = f'{_PLAIN} username="service" password="service-secret";'
    write_client_config(client_config, tmp_path / "authority.pem", login, "PLAIN")
    own = {"wirebroker.delivery.partitions": 1, "wirebroker.delivery.targets": "orders"}
    flags = ("--client-config", str(client_config))
    with DeliveryProcess(secured.bootstrap, tmp_path / "instance", own, flags) as service:
        service.wait_until_ready()
        producer = Producer(alice)
        for number in range(RECORDS):
            headers: Any = {"deliver-to": "orders", "deliver-after": str(20 * number)}
            producer.produce("deliver", b"%d" % number, headers=headers)
        producer.produce("retry", b"again", headers={"retry-topic": "orders"})
        assert producer.flush(60) == 0

        def values() -> list[bytes]:
            return [record.value() for record in committed_records("", "orders", alice)]

        eventually(lambda: len(values()) > RECORDS, timeout_s=_PATIENCE_S, poll_s=0.5)
        assert sorted(values()) == sorted([*(b"%d" % n for n in range(RECORDS)), b"again"])
