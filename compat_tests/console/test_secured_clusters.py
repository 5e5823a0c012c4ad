"""The console on a broker with SASL_SSL and ACLs: all rights, few rights, a wrong password."""

from __future__ import annotations

import urllib.error
import urllib.request
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    NewTopic,
    ResourcePatternType,
    ResourceType,
)

from compat_tests.console.console_site import running_console
from compat_tests.security.listeners import guarded_broker
from compat_tests.security.secured import PASSWORD
from tests.support.tools.ports import HOST
from tests.support.tools.waiting import eventually

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule"


def section(name: str, port: int, authority: Path, password: str) -> str:
    return f"""
[{name}]
bootstrap.servers={HOST}:{port}
security.protocol=SASL_SSL
sasl.mechanism=SCRAM-SHA-512
sasl.jaas.config={_SCRAM} required username="alice" password="{password}";
ssl.truststore.location={authority}
ssl.truststore.type=PEM
"""


@pytest.fixture(scope="module")
def secured_site(
    broker_kind: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[str, str]]:
    """Run the console of a secured broker; return its address and the open listener's."""
    folder = tmp_path_factory.mktemp("clusters")
    with guarded_broker(broker_kind, tmp_path_factory) as (broker, secrets):
        admin = AdminClient({"bootstrap.servers": broker.bootstrap})
        for created in admin.create_topics([NewTopic("orders", 1, 1)]).values():
            created.result(30)
        producer = Producer({"bootstrap.servers": broker.bootstrap})
        producer.produce("orders", "a secret order")
        producer.flush(30)
        port = broker.ports["LOGIN"]
        file = folder / "clusters"
        file.write_text(
            section("secured", port, secrets / "authority.pem", PASSWORD)
            + section("refused", port, secrets / "authority.pem", "wrong")
        )
        with running_console(folder, "--config", str(file)) as address:
            yield address, broker.bootstrap


def page(address: str) -> str:
    with urllib.request.urlopen(address) as response:
        text: str = response.read().decode()
        return text


def shows(address: str, text: str) -> bool:
    try:
        return text in page(address)
    except urllib.error.HTTPError:  # the topic is not read yet
        return False


def test_a_cluster_is_read_over_sasl_ssl(secured_site):
    address, _ = secured_site
    eventually(lambda: shows(f"{address}/c/secured/topics", ">orders</a>"))
    messages = page(f"{address}/c/secured/topic/messages?name=orders")
    assert "a secret order" in messages
    assert "SCRAM-SHA-512" in page(f"{address}/c/secured/users")


def test_a_wrong_password_is_named_and_never_shown(secured_site):
    address, _ = secured_site
    eventually(lambda: shows(f"{address}/c/refused/", "Cannot log in"))
    failed = page(f"{address}/c/refused/")
    assert "Check sasl.mechanism and sasl.jaas.config of cluster refused." in failed
    assert "wrong" not in failed


def test_missing_rights_are_named_in_the_pages(secured_site):
    address, bootstrap = secured_site
    eventually(lambda: shows(f"{address}/c/secured/topics", ">orders</a>"))
    admin = AdminClient({"bootstrap.servers": bootstrap})
    denied = [
        (ResourceType.TOPIC, "orders", AclOperation.READ),
        (ResourceType.BROKER, "kafka-cluster", AclOperation.DESCRIBE),
    ]
    rules = [
        AclBinding(
            kind,
            name,
            ResourcePatternType.LITERAL,
            "User:alice",
            "*",
            operation,
            AclPermissionType.DENY,
        )
        for kind, name, operation in denied
    ]
    for created in admin.create_acls(rules).values():
        created.result(30)
    messages = f"{address}/c/secured/topic/messages?name=orders"
    eventually(lambda: shows(messages, "TOPIC_AUTHORIZATION_FAILED"))
    eventually(lambda: shows(f"{address}/c/secured/acls", "CLUSTER_AUTHORIZATION_FAILED"))
    eventually(lambda: not shows(f"{address}/c/secured/", "Healthy"))
    about = f"{address}/c/secured/about"
    eventually(lambda: shows(about, "Alter, for changes of ACLs"))
    assert "alice (SCRAM-SHA-512)" in page(about)
