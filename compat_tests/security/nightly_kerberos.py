"""Stock clients log in by GSSAPI to both brokers, in a realm of the test's own."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from compat_tests.clients import java
from compat_tests.conftest import new_topic_name
from compat_tests.security.kerberos_broker import (
    MODULE,
    SERVICE,
    TICKET,
    first_answer,
    keytab_of,
    line,
    run,
)
from tests.support import kerberos
from tests.support.ports import HOST
from wirebroker.codecs.errors import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Iterator

    from compat_tests.security.kerberos_broker import Secured

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def realm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[kerberos.Realm]:
    if why := kerberos.missing():
        pytest.skip(why)
    with kerberos.Realm(tmp_path_factory.mktemp("realm")) as running:
        for name in ("alice", "bob/host.example.org", "carol/host.example.org", "outdated"):
            running.add(name)
        for name in (SERVICE, f"other/{HOST}"):
            running.add(name)
        running.new_key("outdated")
        yield running


# In processes of their own: what they import may only be built for this test.
_KAFKA_PYTHON = """
import sys, kafka
address, topic, service = sys.argv[1:]
producer = kafka.KafkaProducer(
    bootstrap_servers=address, security_protocol="SASL_PLAINTEXT", sasl_mechanism="GSSAPI",
    sasl_kerberos_service_name=service, bootstrap_timeout_ms=5000)
print("offset", producer.send(topic, b"one").get(timeout=30).offset)
"""


def kafka_python(
    broker: Secured, realm: kerberos.Realm, principal: str, service: str = "kafka"
) -> tuple[int, str]:
    """Have kafka-python write; return its status and what it printed."""
    address = f"{HOST}:{broker.secured_port}"
    return run(realm, principal, "-c", _KAFKA_PYTHON, address, new_topic_name(), service)


def java_config(realm: kerberos.Realm, principal: str, folder: Path) -> str:
    """Write the settings of Java's client and of our own verbs; return the file's path."""
    file = folder / "client.properties"
    file.write_text(
        "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=GSSAPI\n"
        "sasl.kerberos.service.name=kafka\n"
        f"sasl.jaas.config={line(keytab_of(realm, principal), principal)}\n"
    )
    return str(file)


@pytest.mark.parametrize("principal", ["alice", "bob/host.example.org"])
def test_kafka_python_writes_as_its_principals_user(
    kerberized: Secured, realm: kerberos.Realm, principal: str
) -> None:
    status, printed = kafka_python(kerberized, realm, principal)
    assert (status, "offset 0" in printed) == (0, True), printed


def test_whom_a_rule_makes_somebody_else_may_do_no_more_than_that_one(
    kerberized: Secured, realm: kerberos.Realm
) -> None:
    status, printed = kafka_python(kerberized, realm, "carol/host.example.org")
    assert (status, "TopicAuthorizationFailed" in printed) == (1, True), printed


def test_a_ticket_for_somebody_else_is_refused(kerberized: Secured, realm: kerberos.Realm) -> None:
    status, printed = kafka_python(kerberized, realm, "alice", "other")
    assert (status, "offset" in printed) == (1, False), printed
    answer = asyncio.run(first_answer(kerberized, ticket(realm, "other")))
    assert answer is not None
    assert answer.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
    assert answer.error_message == (
        "Authentication failed during authentication due to invalid credentials with SASL "
        "mechanism GSSAPI"
    )


def test_a_message_is_taken_once(kerberized: Secured, realm: kerberos.Realm) -> None:
    message = ticket(realm, "kafka")
    first = asyncio.run(first_answer(kerberized, message))
    assert first is not None
    assert first.error_code == 0
    for wrong in (message, message[:-8] + bytes(8), b"nothing"):
        answer = asyncio.run(first_answer(kerberized, wrong))
        assert answer is not None
        assert answer.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED


def ticket(realm: kerberos.Realm, service: str) -> bytes:
    """Return the first message of alice's."""
    status, printed = run(realm, "alice", "-c", TICKET, f"{service}@{HOST}")
    assert status == 0, printed
    return bytes.fromhex(printed)


@pytest.mark.java
def test_javas_client_logs_in(
    kerberized: Secured, realm: kerberos.Realm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Java's client asks for the ticket of the name that an address has.
    names = tmp_path / "hosts"
    names.write_text(f"{HOST} {HOST}\n")
    options = f"-Djava.security.krb5.conf={realm.config} -Djdk.net.hosts.file={names}"
    monkeypatch.setenv("JAVA_TOOL_OPTIONS", options)
    for principal, status in (("alice", 0), ("outdated", 1)):
        file = java_config(realm, principal, tmp_path)
        found, printed = java.attempt(
            f"{HOST}:{kerberized.secured_port}", java.TOPICS, "--list", "--command-config", file
        )
        assert found == status, printed


def test_our_verbs_log_in(kerberized: Secured, realm: kerberos.Realm, tmp_path: Path) -> None:
    asked = ("-m", "wirebroker", "topic", "list", "-b", f"{HOST}:{kerberized.secured_port}")
    file = java_config(realm, "alice", tmp_path)
    status, printed = run(realm, "alice", *asked, "--client-config", file)
    assert status == 0, printed
    status, printed = run(
        realm, "alice", *asked, "--client-config", java_config(realm, "outdated", tmp_path)
    )
    assert (status, "Kerberos" in printed) == (1, True), printed
    cache = realm.kinit("alice", keytab_of(realm, "alice"))
    Path(file).write_text(
        "security.protocol=SASL_PLAINTEXT\nsasl.kerberos.service.name=kafka\n"
        f'sasl.jaas.config={MODULE} required useTicketCache=true ticketCache="{cache}";\n'
    )
    status, printed = run(realm, "alice", *asked, "--client-config", file)
    assert status == 0, printed
