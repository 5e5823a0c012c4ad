"""Clients that log in to a broker with Kerberos tickets.

librdkafka is tested by kcat and rust-rdkafka: confluent-kafka's wheel is built without GSSAPI.
kafkajs has no GSSAPI: its maintainers leave native code to third-party plugins
(tulios/kafkajs#865).
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import pytest

from compat_tests.clients import java
from compat_tests.security.kerberos.kerberos_broker import environment_of, keytab_of, line, run
from compat_tests.support import tools_go, tools_node, tools_rust
from tests.support.security import kerberos
from tests.support.security.tls_files import write
from tests.support.tools import tools
from tests.support.tools.ports import HOST

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

_SASL_PACKAGES = ("libsasl2-modules-gssapi-mit",)  # for librdkafka's Cyrus library
_PATIENCE_S = 30


# Separate processes: they may import packages that are only built for this test.
KAFKA_PYTHON = """
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


@dataclass(frozen=True)
class Visit:
    """A client's identity and settings.

    Attributes:
        principal: A principal with a keytab.
        ca: A PEM file for a TLS connection; else empty.
        folder: For the client's settings.
        service: Service of the requested ticket.
    """

    realm: kerberos.Realm
    principal: str
    address: str
    topic: str
    ca: str
    folder: Path
    service: str = "kafka"

    def as_properties(self) -> str:
        key = line(keytab_of(self.realm, self.principal), self.principal)
        return settings_text(key, self.ca, self.service)


def settings_text(jaas: str, ca: str, service: str = "kafka") -> str:
    """Return settings of Java's client and of our own verbs; over TLS if `ca` is not empty."""
    lines = [f"security.protocol=SASL_{'SSL' if ca else 'PLAINTEXT'}", "sasl.mechanism=GSSAPI"]
    lines += [f"sasl.kerberos.service.name={service}", f"sasl.jaas.config={jaas}"]
    if ca:
        lines += ["ssl.truststore.type=PEM", f"ssl.truststore.location={ca}"]
    return "\n".join([*lines, ""])


@contextlib.contextmanager
def java_in_realm(visit: Visit) -> Iterator[None]:
    names = visit.folder / "hosts"
    names.write_text(f"{HOST} {HOST}\n")
    options = f"-Djava.security.krb5.conf={visit.realm.config} -Djdk.net.hosts.file={names}"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("JAVA_TOOL_OPTIONS", options)
        yield


def _by_python(program: str, visit: Visit) -> tuple[int, str]:
    arguments = (visit.address, visit.topic, visit.service, visit.ca)
    return run(visit.realm, visit.principal, "-c", program, *arguments)


def _by_kcat(visit: Visit) -> tuple[int, str]:
    settings = {**_of_librdkafka(visit), "message.timeout.ms": "5000"}
    flags = [flag for name, value in settings.items() for flag in ("-X", f"{name}={value}")]
    command = [*tools.kcat_command(), "-b", visit.address, "-P", "-t", visit.topic, *flags]
    return _ended(command, _with_a_ticket(visit), "one\n")


def _by_rust(visit: Visit) -> tuple[int, str]:
    settings = {**_of_librdkafka(visit), "bootstrap.servers": visit.address, "log_level": "0"}
    assignments = [f"{name}={value}" for name, value in settings.items()]
    command = [*tools_rust.kerberos_command(), visit.topic, str(_PATIENCE_S), *assignments]
    return _read(command, {**_with_a_ticket(visit), **tools_rust.kerberos_environment()})


def _of_librdkafka(visit: Visit) -> dict[str, str]:
    settings = {
        "security.protocol": f"SASL_{'SSL' if visit.ca else 'PLAINTEXT'}",
        "sasl.mechanism": "GSSAPI",
        "sasl.kerberos.kinit.cmd": "true",
        "sasl.kerberos.service.name": visit.service,
    }
    return {**settings, "ssl.ca.location": visit.ca} if visit.ca else settings


def _with_a_ticket(visit: Visit) -> dict[str, str]:
    cache = visit.folder / "nobody"
    if visit.principal != "outdated":  # kinit gets no ticket for that one
        cache = visit.realm.kinit(visit.principal, keytab_of(visit.realm, visit.principal))
    plugins = next(tools.debian_packages("sasl-gssapi", _SASL_PACKAGES).glob("usr/lib/*/sasl2"))
    return {
        **os.environ,
        **visit.realm.environment(),
        "KRB5CCNAME": str(cache),
        "SASL_PATH": str(plugins),
    }


def _by_java(visit: Visit) -> tuple[int, str]:
    settings = f"max.block.ms=10000\n{visit.as_properties()}"
    file = write(visit.folder, "client.properties", settings)
    options = [*("--topic", visit.topic, "--num-records", "1", "--record-size", "3")]
    options += ["--throughput", "-1", "--command-config", file]
    with java_in_realm(visit):
        status, printed = java.attempt(visit.address, java.PRODUCER_PERFORMANCE, *options)
    # It exits with 0 even if it failed to write its record.
    return status or int("Exception" in printed), printed


def _by_go(client: str, visit: Visit) -> tuple[int, str]:
    return _read([*tools_go.secured_command(client), _told(visit)], os.environ)


def _by_node(visit: Visit) -> tuple[int, str]:
    environment = environment_of(visit.realm, visit.principal)
    environment |= tools_node.kerberos_environment()
    return _read([*tools_node.secured_command("platformatic"), _told(visit)], environment)


def _told(visit: Visit) -> str:
    fields = {
        "address": visit.address,
        "topic": visit.topic,
        "ca": visit.ca,
        "mechanism": "GSSAPI",
        "user": visit.principal,
        "service": visit.service,
        "realm": kerberos.NAME,
        "keytab": str(keytab_of(visit.realm, visit.principal)),
        "config": str(visit.realm.config),
    }
    return json.dumps(fields)


def _read(command: list[str], environment: Mapping[str, str]) -> tuple[int, str]:
    """Run a client that writes, reads and prints the result; status 1 if it has read nothing."""
    status, printed = _ended(command, environment)
    assert status == 0, printed
    return int(printed != "read 0\n"), printed


def _ended(command: list[str], environment: Mapping[str, str], text: str = "") -> tuple[int, str]:
    done = subprocess.run(
        command,
        env=environment,
        input=text,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=90,
        check=False,
    )
    return done.returncode, done.stdout


# Each client writes the first record. Those of Go, Node and Rust read it too.
CLIENTS: dict[str, Callable[[Visit], tuple[int, str]]] = {
    "kafka-python": partial(_by_python, KAFKA_PYTHON),
    "aiokafka": partial(_by_python, _AIOKAFKA),
    "kcat": _by_kcat,
    "rust-rdkafka": _by_rust,
    "java": _by_java,
    "franz": partial(_by_go, "franz"),
    "sarama": partial(_by_go, "sarama"),
    "platformatic": _by_node,
}
MARKS = {
    "java": [pytest.mark.java],
    "rust-rdkafka": [
        pytest.mark.skipif(not tools_rust.has_tls(), reason="no Rust, or no headers of OpenSSL's")
    ],
    "platformatic": [
        pytest.mark.skipif(not tools_node.has_compiler(), reason="nothing compiles its package")
    ],
}
