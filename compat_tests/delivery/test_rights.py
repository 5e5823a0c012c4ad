"""The rights of the service's login: the minimal ones work, and each missing one is named."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka import KafkaException, Producer
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    NewTopic,
    ResourcePatternType,
    ResourceType,
)

from compat_tests.security.secured import PASSWORD, add_alice, secured_broker
from tests.support.brokers.brokers import AUTHORIZED
from tests.support.delivery.delivery_process import DeliveryProcess, committed_records
from tests.support.tools.ports import HOST
from tests.support.tools.waiting import eventually
from wirebroker.base.clock import SystemClock
from wirebroker.delivery.model.rules import DeliveryRules
from wirebroker.delivery.service.errors import ServiceError
from wirebroker.delivery.service.rights import check_rights, refused_right
from wirebroker.delivery.service.settings import ServiceSettings
from wirebroker.delivery.service.topics import ClusterTopics
from wirebroker.delivery.service.transactions import Transactions

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

GROUP = "wirebroker-delivery"
PENDING = f"__{GROUP}"
LETTERS = ("deliver.dead-letters", "retry.dead-letters")
TOPICS = ("deliver", "retry", *LETTERS, PENDING, "orders")
# Operation, kind of resource, name; docs/delivery.md lists them.
NEEDED = (
    ("read", "group", GROUP),
    *(("read", "topic", topic) for topic in ("deliver", "retry", PENDING)),
    *(("write", "topic", topic) for topic in (PENDING, "orders", *LETTERS)),
    ("write", "transactional-id", f"{GROUP}-"),
)
_KINDS = {
    "group": ResourceType.GROUP,
    "topic": ResourceType.TOPIC,
    "transactional-id": ResourceType.TRANSACTIONAL_ID,
}


def binding(operation: str, kind: str, name: str) -> AclBinding:
    is_prefix = kind == "transactional-id"
    pattern = ResourcePatternType.PREFIXED if is_prefix else ResourcePatternType.LITERAL
    allowed = AclOperation[operation.upper()], AclPermissionType.ALLOW
    return AclBinding(_KINDS[kind], name, pattern, "User:alice", "*", *allowed)


class Cluster:
    """A broker with an authorizer; alice has the needed rights and no others."""

    def __init__(self, broker: Any) -> None:
        self.open = broker.bootstrap
        self.secured = f"{HOST}:{broker.secured_port}"
        self.admin = AdminClient({"bootstrap.servers": self.open, "log_level": 0})
        for made in self.admin.create_topics([NewTopic(name, 1, 1) for name in TOPICS]).values():
            made.result(60)
        add_alice(broker)
        for right in NEEDED:
            self.grant(right)

    @property
    def kafka(self) -> dict[str, str]:
        return {
            "bootstrap.servers": self.secured,
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "SCRAM-SHA-512",
            "sasl.username": "alice",
            "sasl.password": PASSWORD,
        }

    def grant(self, right: tuple[str, str, str]) -> None:
        for made in self.admin.create_acls([binding(*right)]).values():
            made.result(60)

    def revoke(self, right: tuple[str, str, str]) -> None:
        acl = binding(*right)
        found = AclBindingFilter(
            *(acl.restype, acl.name, acl.resource_pattern_type, acl.principal),
            *(acl.host, acl.operation, acl.permission_type),
        )
        for removed in self.admin.delete_acls([found]).values():
            removed.result(60)

    def settings(self, folder: Path) -> ServiceSettings:
        rules = DeliveryRules(GROUP, ("deliver",), ("retry",), PENDING, ("orders",), 10**9, 100)
        return ServiceSettings(rules, self.kafka, folder, 1, 1, 100, 15_000, 6_000, 0)


@pytest.fixture(scope="module")
def cluster(broker_kind: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    settings = AUTHORIZED | {"allow.everyone.if.no.acl.found": "false"}
    with secured_broker(broker_kind, tmp_path_factory.mktemp("secured"), settings) as broker:
        yield Cluster(broker)


def missing(cluster: Cluster, folder: Path) -> str:
    """Return the message of a start, or "" if it is not refused."""
    settings = cluster.settings(folder)
    try:
        check_rights(ClusterTopics(cluster.kafka, SystemClock()).admin, settings.rules, "alice")
        Transactions(settings, "one", SystemClock()).close()
    except ServiceError as error:
        return str(error)
    except KafkaException as error:
        right = refused_right(error.args[0], GROUP)
        return "" if right is None else right.command("alice")
    return ""


@pytest.mark.parametrize("right", NEEDED, ids=" ".join)
def test_each_missing_right_is_named(
    cluster: Cluster, tmp_path: Path, right: tuple[str, str, str]
) -> None:
    operation, kind, name = right
    expected = f"--allow User:alice --operation {operation} --{kind} {name}"
    cluster.revoke(right)
    try:
        eventually(lambda: expected in missing(cluster, tmp_path))
    finally:
        cluster.grant(right)
    eventually(lambda: missing(cluster, tmp_path) == "")


@pytest.fixture
def login(monkeypatch: pytest.MonkeyPatch) -> tuple[str, ...]:
    monkeypatch.setenv("WIREBROKER_SASL_PASSWORD", PASSWORD)
    return ("--sasl-user", "alice")


def test_the_minimal_rights_are_enough(
    cluster: Cluster, tmp_path: Path, login: tuple[str, ...]
) -> None:
    settings = {"wirebroker.delivery.targets": "orders", "wirebroker.delivery.partitions": 1}
    process = DeliveryProcess(cluster.secured, tmp_path / "instance", settings, login)
    with process:
        process.wait_until_ready()
        producer = Producer({"bootstrap.servers": cluster.open, "log_level": 0})
        headers: Any = {"deliver-to": "orders", "deliver-after": "100ms"}
        producer.produce("deliver", b"v", headers=headers)
        assert producer.flush(60) == 0
        eventually(
            lambda: len(committed_records(cluster.open, "orders")) == 1, timeout_s=90, poll_s=0.5
        )


def test_a_start_without_targets_is_refused(
    cluster: Cluster, tmp_path: Path, login: tuple[str, ...]
) -> None:
    settings = {"wirebroker.delivery.partitions": 1}
    process = DeliveryProcess(cluster.secured, tmp_path / "instance", settings, login)
    process.start()
    assert process.wait() == 1
    assert "wirebroker.delivery.targets is not set" in process.text()
