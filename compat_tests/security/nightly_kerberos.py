"""Stock clients log in by GSSAPI to both brokers, in a realm of the test's own.

librdkafka is kcat's here: confluent-kafka's wheel is built without GSSAPI.
"""

from __future__ import annotations

import asyncio
import dataclasses
import os
import subprocess
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from compat_tests import topics
from compat_tests.clients import java
from compat_tests.conftest import new_topic_name
from compat_tests.security.kerberos_broker import (
    MODULE,
    PROTOCOLS,
    SERVICE,
    TICKET,
    first_answer,
    keytab_of,
    line,
    run,
)
from compat_tests.security.listeners import stored
from tests.support import kerberos, tools
from tests.support.ports import HOST
from tests.support.tls_files import OURS, authority, write
from wirebroker.codecs.errors import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from compat_tests.security.kerberos_broker import Secured

pytestmark = pytest.mark.long

_SASL_PACKAGES = ("libsasl2-modules-gssapi-mit",)  # of kcat's librdkafka, which has none


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
address, topic, service, ca = sys.argv[1:]
producer = kafka.KafkaProducer(
    bootstrap_servers=address, security_protocol="SASL_SSL" if ca else "SASL_PLAINTEXT",
    sasl_mechanism="GSSAPI", sasl_kerberos_service_name=service, ssl_cafile=ca or None,
    bootstrap_timeout_ms=5000)
print("offset", producer.send(topic, b"one").get(timeout=30).offset)
"""
_AIOKAFKA = """
import asyncio, ssl, sys, aiokafka
async def write(address, topic, service, ca):
    producer = aiokafka.AIOKafkaProducer(
        bootstrap_servers=address, security_protocol="SASL_SSL" if ca else "SASL_PLAINTEXT",
        sasl_mechanism="GSSAPI", sasl_kerberos_service_name=service,
        ssl_context=ssl.create_default_context(cafile=ca) if ca else None)
    try:
        await producer.start()
        print("offset", (await producer.send_and_wait(topic, b"one")).offset)
    finally:
        await producer.stop()
asyncio.run(asyncio.wait_for(write(*sys.argv[1:]), 30))
"""


def kafka_python(
    broker: Secured, realm: kerberos.Realm, principal: str, service: str = "kafka"
) -> tuple[int, str]:
    """Have kafka-python write; return its status and what it printed."""
    address = f"{HOST}:{broker.ports['TICKETS']}"
    return run(realm, principal, "-c", _KAFKA_PYTHON, address, new_topic_name(), service, "")


def settings_text(jaas: str, ca: str, service: str = "kafka") -> str:
    """Return settings of Java's client and of our own verbs; over TLS if `ca` is not empty."""
    lines = [f"security.protocol=SASL_{'SSL' if ca else 'PLAINTEXT'}", "sasl.mechanism=GSSAPI"]
    lines += [f"sasl.kerberos.service.name={service}", f"sasl.jaas.config={jaas}"]
    if ca:
        lines += ["ssl.truststore.type=PEM", f"ssl.truststore.location={ca}"]
    return "\n".join([*lines, ""])


def java_config(realm: kerberos.Realm, principal: str, folder: Path, ca: str = "") -> str:
    """Write settings for who has a keytab; return the file's path."""
    key = line(keytab_of(realm, principal), principal)
    return write(folder, "client.properties", settings_text(key, ca))


def ca_of(listener: str, folder: Path, name: str = OURS) -> str:
    """Write an authority's certificate; return its path, nothing if the listener has no TLS."""
    if PROTOCOLS[listener] != "SASL_SSL":
        return ""
    return write(folder, f"{name}.pem", authority(name).certificate)


@dataclass(frozen=True)
class Visit:
    """Who comes to a broker.

    Attributes:
        principal: Of whom there is a keytab.
        ca: A PEM file, if the connection is by TLS; else empty.
        folder: For the client's settings.
        service: For which it asks a ticket.
    """

    realm: kerberos.Realm
    principal: str
    address: str
    topic: str
    ca: str
    folder: Path
    service: str = "kafka"


def _by_python(program: str, visit: Visit) -> tuple[int, str]:
    asked = (visit.address, visit.topic, visit.service, visit.ca)
    return run(visit.realm, visit.principal, "-c", program, *asked)


def _by_kcat(visit: Visit) -> tuple[int, str]:
    cache = visit.folder / "nobody"
    if visit.principal != "outdated":  # as that one kinit gets no ticket
        cache = visit.realm.kinit(visit.principal, keytab_of(visit.realm, visit.principal))
    plugins = next(tools.debian_packages("sasl-gssapi", _SASL_PACKAGES).glob("usr/lib/*/sasl2"))
    told = {
        "security.protocol": f"SASL_{'SSL' if visit.ca else 'PLAINTEXT'}",
        "sasl.mechanism": "GSSAPI",
        "sasl.kerberos.kinit.cmd": "true",
        "sasl.kerberos.service.name": visit.service,
        "message.timeout.ms": "5000",
        **({"ssl.ca.location": visit.ca} if visit.ca else {}),
    }
    flags = [flag for name, value in told.items() for flag in ("-X", f"{name}={value}")]
    done = subprocess.run(
        [*tools.kcat_command(), "-b", visit.address, "-P", "-t", visit.topic, *flags],
        env={
            **os.environ,
            **visit.realm.environment(),
            "KRB5CCNAME": str(cache),
            "SASL_PATH": str(plugins),
        },
        input="one\n",
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=90,
        check=False,
    )
    return done.returncode, done.stdout


def _by_java(visit: Visit) -> tuple[int, str]:
    # Java's client asks for the ticket of the name that an address has.
    names = visit.folder / "hosts"
    names.write_text(f"{HOST} {HOST}\n")
    options = f"-Djava.security.krb5.conf={visit.realm.config} -Djdk.net.hosts.file={names}"
    key = line(keytab_of(visit.realm, visit.principal), visit.principal)
    settings = f"max.block.ms=10000\n{settings_text(key, visit.ca, visit.service)}"
    file = write(visit.folder, "client.properties", settings)
    asked = [*("--topic", visit.topic, "--num-records", "1", "--record-size", "3")]
    asked += ["--throughput", "-1", "--command-config", file]
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("JAVA_TOOL_OPTIONS", options)
        status, printed = java.attempt(visit.address, java.PRODUCER_PERFORMANCE, *asked)
    # It ends with 0 when its record could not be written, too.
    return status or int("Exception" in printed), printed


CLIENTS: dict[str, Callable[[Visit], tuple[int, str]]] = {
    "kafka-python": partial(_by_python, _KAFKA_PYTHON),
    "aiokafka": partial(_by_python, _AIOKAFKA),
    "kcat": _by_kcat,
    "java": _by_java,
}


@pytest.mark.parametrize("listener", PROTOCOLS)
@pytest.mark.parametrize(
    "client",
    [pytest.param(each, marks=pytest.mark.java if each == "java" else ()) for each in CLIENTS],
)
def test_who_has_a_ticket_writes_and_nobody_else(
    kerberized: Secured, realm: kerberos.Realm, tmp_path: Path, client: str, listener: str
) -> None:
    topic = new_topic_name()
    topics.create(kerberized.bootstrap, topic, partitions=1)
    address = f"{HOST}:{kerberized.ports[listener]}"
    right = Visit(realm, "alice", address, topic, ca_of(listener, tmp_path), tmp_path)
    status, printed = CLIENTS[client](right)
    assert (status, stored(kerberized, topic)) == (0, 1), printed
    wrong = [
        dataclasses.replace(right, principal="outdated"),
        dataclasses.replace(right, service="other"),
    ]
    if right.ca:
        wrong.append(dataclasses.replace(right, ca=ca_of(listener, tmp_path, "others")))
    for each in wrong:
        status, printed = CLIENTS[client](each)
        assert (status != 0, stored(kerberized, topic)) == (True, 1), printed


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


@pytest.mark.parametrize("listener", PROTOCOLS)
def test_our_verbs_log_in(
    kerberized: Secured, realm: kerberos.Realm, tmp_path: Path, listener: str
) -> None:
    address = f"{HOST}:{kerberized.ports[listener]}"
    asked = ("-m", "wirebroker", "topic", "list", "-b", address, "--client-config")
    ca = ca_of(listener, tmp_path)
    file = java_config(realm, "alice", tmp_path, ca)
    status, printed = run(realm, "alice", *asked, file)
    assert status == 0, printed
    status, printed = run(realm, "alice", *asked, java_config(realm, "outdated", tmp_path, ca))
    assert (status, "Kerberos" in printed) == (1, True), printed
    cache = realm.kinit("alice", keytab_of(realm, "alice"))
    by_cache = f'{MODULE} required useTicketCache=true ticketCache="{cache}";'
    Path(file).write_text(settings_text(by_cache, ca))
    status, printed = run(realm, "alice", *asked, file)
    assert status == 0, printed
