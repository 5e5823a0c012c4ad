"""Stock clients log in by GSSAPI to both brokers, in a realm of the test's own."""

from __future__ import annotations

import asyncio
import contextlib
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from compat_tests.clients import java
from compat_tests.conftest import new_topic_name
from compat_tests.security.secured import SecuredKafka, SecuredWirebroker
from tests.support import java_start, kerberos
from tests.support.ports import HOST
from tests.support.raw_client import RawClient
from tests.support.sasl_clients import send_token, shake_hands
from wirebroker.codecs.errors import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Iterator

    Secured = SecuredKafka | SecuredWirebroker

pytestmark = pytest.mark.long
MODULE = "com.sun.security.auth.module.Krb5LoginModule"
SERVICE = f"kafka/{HOST}"


def line(keytab: Path, principal: str) -> str:
    return (
        f'{MODULE} required useKeyTab=true storeKey=true keyTab="{keytab}" '
        f'principal="{principal}@{kerberos.NAME}";'
    )


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


@pytest.fixture(
    scope="module", params=["wirebroker", pytest.param("apache", marks=pytest.mark.java)]
)
def secured(
    request: pytest.FixtureRequest,
    realm: kerberos.Realm,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Secured]:
    with kerberos_broker(request.param, realm, tmp_path_factory.mktemp("secured")) as running:
        yield running


@contextlib.contextmanager
def kerberos_broker(kind: str, realm: kerberos.Realm, folder: Path) -> Iterator[Secured]:
    """Run a broker whose clients log in with the realm's tickets."""
    settings = {
        "sasl.enabled.mechanisms": "GSSAPI",
        "sasl.kerberos.service.name": "kafka",
        "sasl.kerberos.principal.to.local.rules": "RULE:[2:$1-of-$2](bob-.*)s/-of-.*//U,DEFAULT",
        "listener.name.sasl_plaintext.gssapi.sasl.jaas.config": line(
            realm.folder / f"{SERVICE.replace('/', '_')}.keytab", SERVICE
        ),
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:ANONYMOUS;User:alice;User:BOB",
    }
    with pytest.MonkeyPatch.context() as patch:
        for name, value in realm.environment().items():
            patch.setenv(name, value)
        if kind == "apache":
            options = (*java_start.options(), f"-Djava.security.krb5.conf={realm.config}")
            running: Secured = SecuredKafka(folder, settings, java_options=options)
        else:
            running = SecuredWirebroker(folder, settings)
        running.start()
        try:
            yield running
        finally:
            running.stop()


# In processes of their own: what they import may only be built for this test.
_KAFKA_PYTHON = """
import sys, kafka
address, topic, service = sys.argv[1:]
producer = kafka.KafkaProducer(
    bootstrap_servers=address, security_protocol="SASL_PLAINTEXT", sasl_mechanism="GSSAPI",
    sasl_kerberos_service_name=service, bootstrap_timeout_ms=5000)
print("offset", producer.send(topic, b"one").get(timeout=30).offset)
"""
TICKET = """
import sys, gssapi
name = gssapi.Name(sys.argv[1], gssapi.NameType.hostbased_service)
print(gssapi.SecurityContext(name=name, usage="initiate").step(None).hex())
"""


def keytab_of(realm: kerberos.Realm, principal: str) -> Path:
    return realm.folder / f"{principal.replace('/', '_')}.keytab"


def run(
    realm: kerberos.Realm, principal: str, *arguments: str, config: Path | None = None
) -> tuple[int, str]:
    """Run Python with a principal's key; return its status and what it printed."""
    environment = {
        **os.environ,
        **realm.environment(config),
        "KRB5_CLIENT_KTNAME": str(keytab_of(realm, principal)),
        "KRB5CCNAME": "MEMORY:",
    }
    command = [sys.executable, *arguments]
    done = subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=90, check=False
    )
    return done.returncode, done.stdout + done.stderr


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
    secured: Secured, realm: kerberos.Realm, principal: str
) -> None:
    status, printed = kafka_python(secured, realm, principal)
    assert (status, "offset 0" in printed) == (0, True), printed


def test_whom_a_rule_makes_somebody_else_may_do_no_more_than_that_one(
    secured: Secured, realm: kerberos.Realm
) -> None:
    status, printed = kafka_python(secured, realm, "carol/host.example.org")
    assert (status, "TopicAuthorizationFailed" in printed) == (1, True), printed


def test_a_ticket_for_somebody_else_is_refused(secured: Secured, realm: kerberos.Realm) -> None:
    status, printed = kafka_python(secured, realm, "alice", "other")
    assert (status, "offset" in printed) == (1, False), printed
    answer = asyncio.run(first_answer(secured, ticket(realm, "other")))
    assert answer is not None
    assert answer.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
    assert answer.error_message == (
        "Authentication failed during authentication due to invalid credentials with SASL "
        "mechanism GSSAPI"
    )


def test_a_message_is_taken_once(secured: Secured, realm: kerberos.Realm) -> None:
    message = ticket(realm, "kafka")
    first = asyncio.run(first_answer(secured, message))
    assert first is not None
    assert first.error_code == 0
    for wrong in (message, message[:-8] + bytes(8), b"nothing"):
        answer = asyncio.run(first_answer(secured, wrong))
        assert answer is not None
        assert answer.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED


def ticket(realm: kerberos.Realm, service: str) -> bytes:
    """Return the first message of alice's."""
    status, printed = run(realm, "alice", "-c", TICKET, f"{service}@{HOST}")
    assert status == 0, printed
    return bytes.fromhex(printed)


async def first_answer(broker: Secured, message: bytes) -> Any:
    """Return what a first message is answered; None if its connection is closed."""
    client = await RawClient.connect((HOST, broker.secured_port))
    try:
        await shake_hands(client, "GSSAPI")
        return await send_token(client, message)
    except (ConnectionError, EOFError):
        return None
    finally:
        await client.close()


@pytest.mark.java
def test_javas_client_logs_in(
    secured: Secured, realm: kerberos.Realm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Java's client asks for the ticket of the name that an address has.
    names = tmp_path / "hosts"
    names.write_text(f"{HOST} {HOST}\n")
    options = f"-Djava.security.krb5.conf={realm.config} -Djdk.net.hosts.file={names}"
    monkeypatch.setenv("JAVA_TOOL_OPTIONS", options)
    for principal, status in (("alice", 0), ("outdated", 1)):
        file = java_config(realm, principal, tmp_path)
        found, printed = java.attempt(
            f"{HOST}:{secured.secured_port}", java.TOPICS, "--list", "--command-config", file
        )
        assert found == status, printed


def test_our_verbs_log_in(secured: Secured, realm: kerberos.Realm, tmp_path: Path) -> None:
    asked = ("-m", "wirebroker", "topic", "list", "-b", f"{HOST}:{secured.secured_port}")
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
