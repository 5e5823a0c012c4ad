"""Stock clients log in to both brokers by GSSAPI, in the test's own realm.

kerberos_clients.py lists supported and unsupported clients.
"""

from __future__ import annotations

import asyncio
import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from compat_tests.conftest import new_topic_name
from compat_tests.security.kerberos.kerberos_broker import (
    MODULE,
    PROTOCOLS,
    SERVICE,
    TICKET,
    first_answer,
    keytab_of,
    line,
    run,
)
from compat_tests.security.kerberos.kerberos_clients import (
    CLIENTS,
    KAFKA_PYTHON,
    MARKS,
    Visit,
    java_in_realm,
    settings_text,
)
from compat_tests.security.listeners import stored
from compat_tests.security.streams import count_words
from compat_tests.support import topics
from tests.support.security import kerberos
from tests.support.security.tls_files import OURS, authority, write
from tests.support.tools.ports import HOST
from wirebroker.codecs.errors import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Iterator

    from compat_tests.security.kerberos.kerberos_broker import Secured

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def realm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[kerberos.Realm]:
    if missing_reason := kerberos.missing():
        pytest.skip(missing_reason)
    with kerberos.Realm(tmp_path_factory.mktemp("realm")) as running:
        for name in ("alice", "bob/host.example.org", "carol/host.example.org", "outdated"):
            running.add(name)
        for name in (SERVICE, f"other/{HOST}"):
            running.add(name)
        running.new_key("outdated")
        yield running


def kafka_python(
    broker: Secured, realm: kerberos.Realm, principal: str, service: str = "kafka"
) -> tuple[int, str]:
    address = f"{HOST}:{broker.ports['TICKETS']}"
    return run(realm, principal, "-c", KAFKA_PYTHON, address, new_topic_name(), service, "")


def java_config(realm: kerberos.Realm, principal: str, folder: Path, ca: str = "") -> str:
    """Write settings for a principal with a keytab; return the file's path."""
    key = line(keytab_of(realm, principal), principal)
    return write(folder, "client.properties", settings_text(key, ca))


def ca_of(listener: str, folder: Path, name: str = OURS) -> str:
    """Write a CA certificate; return its path, empty for listeners without TLS."""
    if PROTOCOLS[listener] != "SASL_SSL":
        return ""
    return write(folder, f"{name}.pem", authority(name).certificate)


@pytest.mark.parametrize("listener", PROTOCOLS)
@pytest.mark.parametrize(
    "client", [pytest.param(name, marks=MARKS.get(name, ())) for name in CLIENTS]
)
def test_only_clients_with_ticket_can_write(
    kerberized: Secured, realm: kerberos.Realm, tmp_path: Path, client: str, listener: str
) -> None:
    topic = topics.create_new(kerberized.bootstrap)
    right, wrong = visits(kerberized, realm, tmp_path, listener, topic)
    status, printed = CLIENTS[client](right)
    assert (status, stored(kerberized, topic)) == (0, 1), printed
    for visit in wrong:
        status, printed = CLIENTS[client](visit)
        assert (status != 0, stored(kerberized, topic)) == (True, 1), printed


@pytest.mark.java
@pytest.mark.parametrize("listener", PROTOCOLS)
def test_kafka_streams_works_only_with_ticket(
    kerberized: Secured, realm: kerberos.Realm, tmp_path: Path, listener: str
) -> None:
    right, wrong = visits(kerberized, realm, tmp_path, listener)
    with java_in_realm(right):
        for visit in wrong:
            # Without a ticket it does not start.
            until = "LoginException" if visit.principal == "outdated" else "AuthenticationException"
            counted = count_words(
                kerberized, visit.address, visit.as_properties(), tmp_path, until=until
            )
            assert counted == 0
        assert count_words(kerberized, right.address, right.as_properties(), tmp_path)


def visits(
    broker: Secured, realm: kerberos.Realm, folder: Path, listener: str, topic: str = ""
) -> tuple[Visit, list[Visit]]:
    """Return a valid visit, and ones with a wrong key, ticket or CA."""
    address = f"{HOST}:{broker.ports[listener]}"
    right = Visit(realm, "alice", address, topic, ca_of(listener, folder), folder)
    wrong = [
        dataclasses.replace(right, principal="outdated"),
        dataclasses.replace(right, service="other"),
    ]
    if right.ca:
        wrong.append(dataclasses.replace(right, ca=ca_of(listener, folder, "others")))
    return right, wrong


@pytest.mark.parametrize("principal", ["alice", "bob/host.example.org"])
def test_kafka_python_writes_as_user_of_its_principal(
    kerberized: Secured, realm: kerberos.Realm, principal: str
) -> None:
    status, printed = kafka_python(kerberized, realm, principal)
    assert (status, "offset 0" in printed) == (0, True), printed


def test_principal_mapped_by_rule_has_rights_of_mapped_user(
    kerberized: Secured, realm: kerberos.Realm
) -> None:
    status, printed = kafka_python(kerberized, realm, "carol/host.example.org")
    assert (status, "TopicAuthorizationFailed" in printed) == (1, True), printed


def test_ticket_for_another_service_is_rejected(kerberized: Secured, realm: kerberos.Realm) -> None:
    status, printed = kafka_python(kerberized, realm, "alice", "other")
    assert (status, "offset" in printed) == (1, False), printed
    answer = asyncio.run(first_answer(kerberized, ticket(realm, "other")))
    assert answer is not None
    assert answer.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
    assert answer.error_message == (
        "Authentication failed during authentication due to invalid credentials with SASL "
        "mechanism GSSAPI"
    )


def test_replayed_or_invalid_message_is_rejected(
    kerberized: Secured, realm: kerberos.Realm
) -> None:
    message = ticket(realm, "kafka")
    first = asyncio.run(first_answer(kerberized, message))
    assert first is not None
    assert first.error_code == 0
    for wrong in (message, message[:-8] + bytes(8), b"nothing"):
        answer = asyncio.run(first_answer(kerberized, wrong))
        assert answer is not None
        assert answer.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED


def ticket(realm: kerberos.Realm, service: str) -> bytes:
    status, printed = run(realm, "alice", "-c", TICKET, f"{service}@{HOST}")
    assert status == 0, printed
    return bytes.fromhex(printed)


@pytest.mark.parametrize("listener", PROTOCOLS)
def test_our_verbs_log_in(
    kerberized: Secured, realm: kerberos.Realm, tmp_path: Path, listener: str
) -> None:
    address = f"{HOST}:{kerberized.ports[listener]}"
    command = ("-m", "wirebroker", "topic", "list", "-b", address, "--client-config")
    ca = ca_of(listener, tmp_path)
    file = java_config(realm, "alice", tmp_path, ca)
    status, printed = run(realm, "alice", *command, file)
    assert status == 0, printed
    status, printed = run(realm, "alice", *command, java_config(realm, "outdated", tmp_path, ca))
    assert (status, "Kerberos" in printed) == (1, True), printed
    cache = realm.kinit("alice", keytab_of(realm, "alice"))
    by_cache = f'{MODULE} required useTicketCache=true ticketCache="{cache}";'
    Path(file).write_text(settings_text(by_cache, ca))
    status, printed = run(realm, "alice", *command, file)
    assert status == 0, printed
