"""A member and a Java broker with a Java controller, where every listener is SASL_SSL."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from compat_tests.clients import confluent
from tests.support.security.tls_files import tls_configs
from tests.support.tools.waiting import eventually

if TYPE_CHECKING:
    from pathlib import Path

    from compat_tests.cluster.conftest import StartCluster

# tests/unit/wirebroker/security/test_secured_cluster.py secures wirebrokers with each change.
pytestmark = [pytest.mark.java, pytest.mark.nightly]

WAIT_S = 60
_LOGIN = "org.apache.kafka.common.security.plain.PlainLoginModule required"
_JAAS = (
    f'{_LOGIN} username="broker" password="broker-secret" user_broker="broker-secret" '
    'user_alice="alice-secret" user_bob="bob-secret";'
)


def settings(folder: Path) -> dict[str, str]:
    return {
        **tls_configs(folder),
        "listener.security.protocol.map": "PLAINTEXT:SASL_SSL,CONTROLLER:SASL_SSL",
        "inter.broker.listener.name": "PLAINTEXT",
        "sasl.enabled.mechanisms": "PLAIN",
        "sasl.mechanism.inter.broker.protocol": "PLAIN",
        "sasl.mechanism.controller.protocol": "PLAIN",
        "listener.name.plaintext.plain.sasl.jaas.config": _JAAS,
        "listener.name.controller.plain.sasl.jaas.config": _JAAS,
        "listener.name.controller.sasl.enabled.mechanisms": "PLAIN",
        "ssl.endpoint.identification.algorithm": "",
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:broker;User:alice",
        "offsets.topic.replication.factor": "2",
        "min.insync.replicas": "2",
    }


def client(bootstrap: str, folder: Path, user: str = "alice") -> dict[str, Any]:
    return {
        "bootstrap.servers": bootstrap,
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "PLAIN",
        "sasl.username": user,
        "sasl.password": f"{user}-secret",
        "ssl.ca.location": str(folder / "authority.pem"),
        "ssl.endpoint.identification.algorithm": "none",
    }


def test_secured_brokers_replicate_and_forward_client_principal(
    start_cluster: StartCluster, tmp_path: Path
) -> None:
    cluster = start_cluster(settings=settings(tmp_path), is_secured=True)
    cluster.java_broker(1)
    wirebroker = cluster.wirebroker(2)
    # Through wirebroker only: its forwarded requests carry the client's name.
    admin = AdminClient(client(wirebroker.bootstrap, tmp_path))
    topics = [
        NewTopic(f"led-by-{broker_id}", 1, replica_assignment=[[broker_id, 3 - broker_id]])
        for broker_id in (1, 2)
    ]
    eventually(lambda: len(admin.list_topics(timeout=10).brokers) == 2, timeout_s=WAIT_S)
    for future in admin.create_topics(topics, operation_timeout=30).values():
        future.result(WAIT_S)
    errors: list[object] = []
    producer = Producer(client(cluster.bootstrap, tmp_path) | {"acks": "all"})
    for topic in topics:
        for number in range(100):
            producer.produce(
                topic.topic, str(number), on_delivery=lambda error, _: errors.append(error)
            )
    assert producer.flush(WAIT_S) == 0
    assert errors == [None] * 200
    consumer = Consumer(client(cluster.bootstrap, tmp_path) | {"group.id": "g"})
    for topic in topics:
        consumer.assign([TopicPartition(topic.topic, 0, 0)])
        messages = consumer.consume(100, timeout=WAIT_S)
        assert [message.value() for message in messages] == [
            b"%d" % number for number in range(100)
        ]
        topic_partition = TopicPartition(topic.topic, 0, 100)
        eventually(partial(confluent.has_committed, consumer, topic_partition), timeout_s=WAIT_S)
    consumer.close()
    # Bob has no permissions, whichever broker forwards the request.
    refused = AdminClient(client(wirebroker.bootstrap, tmp_path, "bob"))
    with pytest.raises(KafkaException, match=r"(?i)authorization"):
        refused.create_topics([NewTopic("bobs", 1, 1)])["bobs"].result(WAIT_S)
