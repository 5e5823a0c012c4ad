"""The service's login over SASL_SSL: the minimal rights work, and each missing one is named."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka import KafkaException, Producer
from confluent_kafka.admin import AclBindingFilter, AdminClient, NewTopic

from compat_tests.delivery.minimal_rights import (
    GROUP,
    LETTERS,
    NEEDED,
    PENDING,
    binding,
    prepare,
    write_client_config,
)
from compat_tests.security.listeners import guarded_broker
from compat_tests.security.secured import PASSWORD
from tests.support.delivery.delivery_process import DeliveryProcess, committed_records
from tests.support.tools.ports import HOST
from tests.support.tools.waiting import eventually
from wirebroker.base.clock import SystemClock
from wirebroker.base.dead_letter_headers import read_dead_letter_headers
from wirebroker.delivery.letters.letter import LetterFilter
from wirebroker.delivery.letters.redrive import Redrive, RedriveRequest
from wirebroker.delivery.letters.redrive_group import redrive_group
from wirebroker.delivery.model.rules import DeliveryRules
from wirebroker.delivery.service.errors import ServiceError
from wirebroker.delivery.service.rights import check_rights, refused_right
from wirebroker.delivery.service.settings import ServiceSettings
from wirebroker.delivery.service.topics import ClusterTopics
from wirebroker.delivery.service.transactions import Transactions

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from compat_tests.security.listeners import Guarded

_SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule"


class Cluster:
    """A broker with an authorizer; alice has the needed rights and no others."""

    def __init__(self, broker: Guarded, folder: Path) -> None:
        self.open = broker.bootstrap
        self.secured = f"{HOST}:{broker.ports['LOGIN']}"
        self.authority = folder / "authority.pem"
        self.client_config = folder / "client.properties"
        login = f'{_SCRAM} required username="alice" password="{PASSWORD}";'
        write_client_config(self.client_config, self.authority, login, "SCRAM-SHA-512")
        self.admin = AdminClient({"bootstrap.servers": self.open, "log_level": 0})
        prepare(self.admin)

    @property
    def kafka(self) -> dict[str, str]:
        return {
            "bootstrap.servers": self.secured,
            "security.protocol": "SASL_SSL",
            "ssl.ca.location": str(self.authority),
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
    settings = {"allow.everyone.if.no.acl.found": "false"}
    with guarded_broker(broker_kind, tmp_path_factory, settings) as (broker, folder):
        yield Cluster(broker, folder)


def missing(cluster: Cluster, folder: Path) -> str:
    """Return the message of a start, or "" if it is not refused."""
    settings = cluster.settings(folder)
    try:
        check_rights(ClusterTopics(cluster.kafka, SystemClock()).admin, settings.rules, "alice")
        Transactions(settings, "one", SystemClock(), set(), threading.Event()).close()
    except ServiceError as error:
        return str(error)
    except KafkaException as error:
        right = refused_right(error.args[0], GROUP)
        return "" if right is None else right.command("alice")
    return ""


def service(cluster: Cluster, folder: Path, **settings: object) -> DeliveryProcess:
    """Return an instance that logs in as alice, not started."""
    own = {f"wirebroker.delivery.{name}": value for name, value in settings.items()}
    flags = ("--client-config", str(cluster.client_config))
    return DeliveryProcess(
        cluster.secured, folder / "instance", {"wirebroker.delivery.partitions": 1} | own, flags
    )


def test_the_minimal_rights_are_enough(cluster: Cluster, tmp_path: Path) -> None:
    with service(cluster, tmp_path, targets="orders") as process:
        process.wait_until_ready()
        producer = Producer({"bootstrap.servers": cluster.open, "log_level": 0})
        headers: Any = {"deliver-to": "orders", "deliver-after": "100ms"}
        producer.produce("deliver", b"v", headers=headers)
        assert producer.flush(60) == 0
        eventually(
            lambda: len(committed_records(cluster.open, "orders")) == 1, timeout_s=90, poll_s=0.5
        )


@pytest.mark.parametrize("right", NEEDED, ids=" ".join)
def test_a_start_without_a_right_is_refused_with_the_command_that_grants_it(
    cluster: Cluster, tmp_path: Path, right: tuple[str, str, str]
) -> None:
    cluster.revoke(right)
    process = service(cluster, tmp_path, targets="orders")
    try:
        eventually(lambda: missing(cluster, tmp_path) != "")
        process.start()
        assert process.wait() == 1
        operation, kind, name = right
        command = f"--allow User:alice --operation {operation} --{kind} {name}"
        assert command in process.text()
    finally:
        process.kill()
        cluster.grant(right)
        eventually(lambda: missing(cluster, tmp_path) == "")


@pytest.mark.parametrize("right", [(), ("describe",)], ids=["no right", "describe"])
def test_a_record_for_a_topic_without_the_right_becomes_a_dead_letter_that_names_it(
    cluster: Cluster, tmp_path: Path, right: tuple[str, ...]
) -> None:
    target = f"secret-{len(right)}"
    cluster.admin.create_topics([NewTopic(target, 1, 1)])[target].result(60)
    for operation in right:
        cluster.grant((operation, "topic", target))
    before = len(committed_records(cluster.open, LETTERS[0]))
    with service(cluster, tmp_path, targets="orders,secret-*") as process:
        process.wait_until_ready()
        producer = Producer({"bootstrap.servers": cluster.open, "log_level": 0})
        delivered = len(committed_records(cluster.open, "orders"))
        for topic in (target, "orders"):
            producer.produce("deliver", b"v", headers={"deliver-to": topic})
        assert producer.flush(60) == 0
        expected = [before + 1, delivered + 1]
        eventually(
            lambda: (
                [len(committed_records(cluster.open, topic)) for topic in (LETTERS[0], "orders")]
                == expected
            ),
            timeout_s=90,
            poll_s=0.5,
        )
        assert "starting again" not in process.text()
    letter = committed_records(cluster.open, LETTERS[0])[before]
    message = read_dead_letter_headers(letter.headers())["message"]
    assert "no right to write to" in message
    assert target in message


def test_a_redrive_names_a_target_that_may_not_be_written(cluster: Cluster) -> None:
    cluster.admin.create_topics([NewTopic("described", 1, 1)])["described"].result(60)
    for right in (
        ("describe", "topic", "described"),
        ("read", "topic", LETTERS[0]),
        ("read", "group", redrive_group(LETTERS[0])),
        ("write", "transactional-id", redrive_group(LETTERS[0])),
    ):
        cluster.grant(right)
    producer = Producer({"bootstrap.servers": cluster.open, "log_level": 0})
    producer.produce(LETTERS[0], b"v")
    assert producer.flush(60) == 0
    request = RedriveRequest(LETTERS[0], "described", LetterFilter(), None, None)
    redrive = Redrive(request, cluster.kafka, SystemClock(), lambda _seconds: None)
    with pytest.raises(ServiceError, match="has no right to write to described"):
        redrive.run()


def test_a_right_that_is_revoked_stops_a_running_service_with_the_command_that_grants_it(
    cluster: Cluster, tmp_path: Path
) -> None:
    right = ("read", "topic", "deliver")
    with service(cluster, tmp_path, targets="orders") as process:
        process.wait_until_ready()
        cluster.revoke(right)
        try:
            assert process.wait() == 1
        finally:
            cluster.grant(right)
        command = "--allow User:alice --operation read --topic deliver"
        assert command in process.text()
    eventually(lambda: missing(cluster, tmp_path) == "")


def test_a_start_without_targets_is_refused(cluster: Cluster, tmp_path: Path) -> None:
    process = service(cluster, tmp_path)
    process.start()
    assert process.wait() == 1
    assert "wirebroker.delivery.targets is not set" in process.text()
