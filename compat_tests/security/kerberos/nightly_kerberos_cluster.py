"""Brokers and controllers that authenticate each other with a realm's real tickets.

Every node logs in as kafka/127.0.0.1 with a keytab, to brokers and to the controller; clients use
an open listener.
"""

from __future__ import annotations

import time
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from compat_tests.cluster.nodes import Cluster, JavaBroker, MemberBroker
from compat_tests.cluster.own_controller import own_cluster
from compat_tests.security.kerberos.kerberos_broker import SERVICE, keytab_of, line
from compat_tests.security.kerberos.nightly_kerberos_times import wait_for_the_end
from tests.support.security import kerberos
from tests.support.tools.ports import HOST, free_ports
from tests.support.tools.waiting import eventually

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.long

WAIT_S = 60
LIFE_S = 5
PROTOCOLS = "PLAINTEXT:PLAINTEXT,INSIDE:SASL_PLAINTEXT,CONTROLLER:SASL_PLAINTEXT"


@pytest.fixture
def realm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[kerberos.Realm]:
    """Run a realm and configure the test's processes for it."""
    if missing_reason := kerberos.missing():
        pytest.skip(missing_reason)
    with kerberos.Realm(tmp_path / "realm") as running:
        for name, value in running.environment().items():
            monkeypatch.setenv(name, value)
        # Java requests the ticket of an address's host name.
        names = tmp_path / "hosts"
        names.write_text(f"{HOST} {HOST}\n")
        options = f"-Djava.security.krb5.conf={running.config} -Djdk.net.hosts.file={names}"
        monkeypatch.setenv("JAVA_TOOL_OPTIONS", options)
        yield running


def settings(realm: kerberos.Realm) -> dict[str, str]:
    jaas_config = line(keytab_of(realm, SERVICE), SERVICE)
    return {
        "listener.security.protocol.map": PROTOCOLS,
        "inter.broker.listener.name": "INSIDE",
        "sasl.enabled.mechanisms": "GSSAPI",
        "sasl.mechanism.inter.broker.protocol": "GSSAPI",
        "sasl.mechanism.controller.protocol": "GSSAPI",
        "sasl.kerberos.service.name": "kafka",
        "listener.name.inside.gssapi.sasl.jaas.config": jaas_config,
        "listener.name.controller.gssapi.sasl.jaas.config": jaas_config,
        "listener.name.controller.sasl.enabled.mechanisms": "GSSAPI",
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:kafka;User:ANONYMOUS",
        "offsets.topic.replication.factor": "2",
        "min.insync.replicas": "2",
        "replica.lag.time.max.ms": "4000",
    }


def start(cluster: Cluster, *brokers: JavaBroker | MemberBroker) -> None:
    ports = free_ports(2 * len(brokers))
    for index, broker in enumerate(brokers):
        broker.port, inside = ports[2 * index : 2 * index + 2]
        listeners = f"PLAINTEXT://{HOST}:{broker.port},INSIDE://{HOST}:{inside}"
        broker.settings |= {"listeners": listeners, "advertised.listeners": listeners}
        cluster.brokers[broker.node_id] = broker
        broker.start()


def client(cluster: Cluster, **more_settings: str) -> dict[str, Any]:
    settings_by_name = {name.replace("_", "."): value for name, value in more_settings.items()}
    return {"bootstrap.servers": cluster.bootstrap, **settings_by_name}


def make_topics(cluster: Cluster, *assignments: list[int]) -> list[str]:
    admin = AdminClient(client(cluster))
    count = len(cluster.brokers)
    eventually(lambda: len(admin.list_topics(timeout=10).brokers) == count, timeout_s=WAIT_S)
    topics = [
        NewTopic("of-" + "-".join(map(str, replicas)), 1, replica_assignment=[replicas])
        for replicas in assignments
    ]
    for future in admin.create_topics(topics, operation_timeout=30).values():
        future.result(WAIT_S)
    return [topic.topic for topic in topics]


def write_to(cluster: Cluster, topics: list[str]) -> None:
    errors: list[object] = []
    producer = Producer(client(cluster, acks="all"))
    for topic in topics:
        for number in range(100):
            producer.produce(topic, b"%d" % number, on_delivery=lambda e, _: errors.append(e))
    assert producer.flush(WAIT_S) == 0
    assert errors == [None] * 100 * len(topics)


def read_from(cluster: Cluster, topic: str, count: int) -> list[bytes | None]:
    consumer = Consumer(client(cluster, group_id="g"))
    consumer.assign([TopicPartition(topic, 0, 0)])
    messages = consumer.consume(count, timeout=WAIT_S)
    consumer.close()
    return [message.value() for message in messages]


@pytest.mark.java
@pytest.mark.parametrize("controller", ["apache", "wirebroker"])
def test_brokers_replicate_each_other_with_tickets(
    realm: kerberos.Realm, tmp_path: Path, controller: str
) -> None:
    realm.add(SERVICE)
    if controller == "apache":
        cluster = Cluster(tmp_path / "cluster", settings=settings(realm))
        cluster.start_controllers()
    else:
        cluster = own_cluster(tmp_path / "cluster", settings(realm))
    try:
        start(cluster, JavaBroker(cluster, 1), MemberBroker(cluster, 2))
        topics = make_topics(cluster, [1, 2], [2, 1])
        write_to(cluster, topics)
        for topic in topics:
            assert read_from(cluster, topic, 100) == [b"%d" % number for number in range(100)]
    finally:
        cluster.stop()


def test_brokers_renew_expired_tickets(realm: kerberos.Realm, tmp_path: Path) -> None:
    realm.add(SERVICE, "-maxlife", f"{LIFE_S} seconds")
    cluster = own_cluster(tmp_path / "cluster", settings(realm))
    try:
        start(cluster, MemberBroker(cluster, 1), MemberBroker(cluster, 2))
        topics = make_topics(cluster, [1, 2], [2, 1])
        write_to(cluster, topics)
        began_s = time.monotonic()
        admin = AdminClient(client(cluster))
        wait_for_the_end(began_s, LIFE_S + 2)
        for node_id in (1, 2):  # the others log in to it again, with a current ticket
            cluster.brokers[node_id].stop()
            eventually(partial(is_alone, admin, topics, 3 - node_id), timeout_s=WAIT_S)
            cluster.brokers[node_id].start()
            eventually(partial(are_in_sync, admin, topics), timeout_s=WAIT_S)
        write_to(cluster, topics)
    finally:
        cluster.stop()


def in_sync(admin: AdminClient, topic: str) -> list[int]:
    return sorted(admin.list_topics(topic, timeout=10).topics[topic].partitions[0].isrs)


def are_in_sync(admin: AdminClient, topics: list[str]) -> bool:
    return all(in_sync(admin, topic) == [1, 2] for topic in topics)


def is_alone(admin: AdminClient, topics: list[str], node_id: int) -> bool:
    return all(in_sync(admin, topic) == [node_id] for topic in topics)
