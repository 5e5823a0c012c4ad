"""Stock clients at secured listeners: accepted and refused logins, and sessions that expire."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import gc
import json
import ssl
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any

import aiokafka
import aiokafka.abc
import aiokafka.errors
import confluent_kafka
import pytest
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)

from compat_tests.clients import java
from compat_tests.conftest import new_topic_name
from compat_tests.security.listeners import (
    LOGIN_ENDS_MS,
    WirebrokerOfListeners,
)
from compat_tests.security.secured import PASSWORD
from compat_tests.support.raw_requests import Requests
from tests.support.brokers import java_start
from tests.support.security.tls_files import authority, client_certificate, write
from tests.support.tools.ports import HOST
from tests.support.tools.waiting import eventually
from wirebroker.base.clock import SystemClock
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from compat_tests.security.listeners import KafkaOfListeners

    Guarded = KafkaOfListeners | WirebrokerOfListeners

# A refused client retries until it is stopped; an accepted one may take a while.
_REFUSED_S = 3.0
_LET_IN_S = 30.0


def address(broker: Guarded, listener: str) -> str:
    return f"{HOST}:{broker.ports[listener]}"


# --- certificates of clients and brokers ---

OWN: dict[str, Callable[[], str | None]] = {
    "its own": client_certificate,
    "none": lambda: None,
    "another authority's": lambda: client_certificate("eve", by="others"),
    "an expired one": lambda: client_certificate("late", days=-1),
}


def _with_librdkafka(bootstrap: str, ca: str, certificate: str | None, tries_s: float) -> None:
    settings: dict[str, Any] = {
        "bootstrap.servers": bootstrap,
        "security.protocol": "SSL",
        "ssl.ca.location": ca,
        "log_level": 0,
    }
    if certificate is not None:
        settings |= {"ssl.certificate.location": certificate, "ssl.key.location": certificate}
    producer = confluent_kafka.Producer(settings)
    producer.list_topics(timeout=tries_s)


class _RefusedError(Exception):
    """The broker refused a client in a separate process."""


_KAFKA_PYTHON = """
import os, sys, kafka
try:
    kafka.KafkaProducer(
        bootstrap_servers=sys.argv[1],
        security_protocol="SSL",
        ssl_cafile=sys.argv[2],
        ssl_certfile=sys.argv[3] or None,
        bootstrap_timeout_ms=int(sys.argv[4]),
    )
except kafka.errors.KafkaError:
    os._exit(1)
os._exit(0)
"""


def _with_kafka_python(bootstrap: str, ca: str, certificate: str | None, tries_s: float) -> None:
    # A separate process: a refused client never closes its sockets.
    command = [sys.executable, "-W", "ignore", "-c", _KAFKA_PYTHON]
    command += [bootstrap, ca, certificate or "", f"{tries_s * 1000:.0f}"]
    if subprocess.run(command, capture_output=True, timeout=60, check=False).returncode:
        raise _RefusedError


def _with_aiokafka(bootstrap: str, ca: str, certificate: str | None, _tries_s: float) -> None:
    context = ssl.create_default_context(cafile=ca)
    if certificate is not None:
        context.load_cert_chain(certificate)

    async def connect() -> None:
        producer = aiokafka.AIOKafkaProducer(
            bootstrap_servers=bootstrap, security_protocol="SSL", ssl_context=context
        )
        try:
            await producer.start()
        finally:
            await producer.stop()

    asyncio.run(asyncio.wait_for(connect(), 30))


def _with_java(bootstrap: str, ca: str, certificate: str | None, _tries_s: float) -> None:
    lines = ["security.protocol=SSL", "ssl.truststore.type=PEM", f"ssl.truststore.location={ca}"]
    if certificate is not None:
        lines += ["ssl.keystore.type=PEM", f"ssl.keystore.location={certificate}"]
    file = f"{certificate or ca}.properties"
    with open(file, "w", encoding="utf-8") as properties:  # noqa: PTH123 - beside what it names
        properties.write("\n".join(lines))
    status, printed = java.attempt(bootstrap, java.TOPICS, "--list", "--command-config", file)
    if status:
        raise _RefusedError(printed)


CLIENTS = {
    "librdkafka": _with_librdkafka,
    "kafka-python": _with_kafka_python,
    "aiokafka": _with_aiokafka,
    "java": _with_java,
}
_MARKS = {"java": [pytest.mark.java, pytest.mark.nightly], "kafka-python": [pytest.mark.nightly]}
ALL_CLIENTS = [pytest.param(client, marks=_MARKS.get(client, [])) for client in CLIENTS]
_REFUSALS = (
    confluent_kafka.KafkaException,
    _RefusedError,
    aiokafka.errors.KafkaError,
    ssl.SSLError,
)


def _is_let_in(
    client: str, bootstrap: str, ca: str, certificate: str | None, *, tries_s: float = _REFUSED_S
) -> bool:
    is_let_in = True
    try:
        CLIENTS[client](bootstrap, ca, certificate, tries_s)
    except _REFUSALS:
        is_let_in = False
    gc.collect()  # objects that a refused client's error has kept alive
    return is_let_in


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.filterwarnings("ignore::ResourceWarning")
@pytest.mark.parametrize("client", ALL_CLIENTS)
@pytest.mark.parametrize("own", OWN)
def test_only_clients_with_valid_certificate_connect(
    guarded: tuple[Guarded, Path], tmp_path: Path, client: str, own: str
) -> None:
    broker, folder = guarded
    pem = OWN[own]()
    certificate_file = None if pem is None else write(tmp_path, "client.pem", pem)
    ca = str(folder / "authority.pem")
    is_own = own == "its own"
    tries_s = _LET_IN_S if is_own else _REFUSED_S
    assert (
        _is_let_in(client, address(broker, "OWN"), ca, certificate_file, tries_s=tries_s) is is_own
    )


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.filterwarnings("ignore::ResourceWarning")
@pytest.mark.parametrize("client", ALL_CLIENTS)
@pytest.mark.parametrize("what", ["expired", "another authority's"])
def test_client_rejects_broker_with_invalid_certificate(
    guarded: tuple[Guarded, Path], tmp_path: Path, client: str, what: str
) -> None:
    broker, folder = guarded
    certificate = write(tmp_path, "client.pem", client_certificate())
    if what == "expired":
        bootstrap, ca = address(broker, "EXPIRED"), str(folder / "authority.pem")
    else:
        bootstrap = address(broker, "OWN")
        ca = write(tmp_path, "others.pem", authority("others").certificate)
    assert not _is_let_in(client, bootstrap, ca, certificate)


def test_acls_apply_to_certificate_principal(guarded: tuple[Guarded, Path], tmp_path: Path) -> None:
    broker, folder = guarded
    certificate = write(tmp_path, "client.pem", client_certificate("mallory"))
    topic = new_topic_name()
    settings = {
        "bootstrap.servers": address(broker, "OWN"),
        "security.protocol": "SSL",
        "ssl.ca.location": str(folder / "authority.pem"),
        "ssl.certificate.location": certificate,
        "ssl.key.location": certificate,
    }
    with _denied(broker, topic, "User:CN=mallory", AclOperation.WRITE):
        assert _delivered(settings, topic) == "TOPIC_AUTHORIZATION_FAILED"
    assert _delivered(settings, topic) is None


def _delivered(settings: dict[str, Any], topic: str) -> str | None:
    errors: list[confluent_kafka.KafkaError | None] = []
    producer = confluent_kafka.Producer(settings)
    producer.produce(topic, b"x", on_delivery=lambda error, _: errors.append(error))
    assert producer.flush(30) == 0
    (error,) = errors
    return None if error is None else error.name()


@contextlib.contextmanager
def _denied(broker: Guarded, topic: str, principal: str, operation: AclOperation) -> Iterator[None]:
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    acl_fields = (ResourceType.TOPIC, topic, ResourcePatternType.LITERAL, principal, "*", operation)
    # An ACL on a resource denies all other users, so permit everyone.
    everybody = AclBinding(
        ResourceType.TOPIC,
        topic,
        ResourcePatternType.LITERAL,
        "User:*",
        "*",
        AclOperation.ALL,
        AclPermissionType.ALLOW,
    )
    rules = [AclBinding(*acl_fields, AclPermissionType.DENY), everybody]
    for future in admin.create_acls(rules).values():
        future.result(30)
    try:
        yield
    finally:
        for deletion in admin.delete_acls(
            [AclBindingFilter(*acl_fields, AclPermissionType.DENY)]
        ).values():
            deletion.result(30)


# --- during operation ---


def login(broker: Guarded, folder: Path) -> dict[str, Any]:
    return {
        "bootstrap.servers": address(broker, "LOGIN"),
        "security.protocol": "SASL_SSL",
        "ssl.ca.location": str(folder / "authority.pem"),
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.username": "alice",
        "sasl.password": PASSWORD,
    }


def test_acl_change_stops_and_resumes_running_consumer(guarded: tuple[Guarded, Path]) -> None:
    broker, folder = guarded
    topic = new_topic_name()
    plain = {"bootstrap.servers": broker.bootstrap}
    assert _delivered(plain, topic) is None
    consumer = confluent_kafka.Consumer(
        {**login(broker, folder), "group.id": topic, "auto.offset.reset": "earliest"}
    )
    consumer.subscribe([topic])
    message = consumer.poll(30)
    assert message is not None
    assert message.error() is None
    with _denied(broker, topic, "User:alice", AclOperation.READ):
        refused: list[str] = []

        def is_refused() -> bool:
            polled = consumer.poll(0.2)
            error = None if polled is None else polled.error()
            if error is not None:
                refused.append(error.name())
            return bool(refused)

        eventually(is_refused)
        assert refused == ["TOPIC_AUTHORIZATION_FAILED"]
        assert _delivered(plain, topic) is None
    values: list[Any] = []

    def has_gone_on() -> bool:
        polled = consumer.poll(0.2)
        if polled is not None and polled.error() is None:
            values.append(polled.value())
        return bool(values)

    eventually(has_gone_on)
    assert values == [b"x"]
    consumer.close()


def test_producer_continues_across_reauthentications(guarded: tuple[Guarded, Path]) -> None:
    broker, folder = guarded
    topic = new_topic_name()
    delivery_errors: list[confluent_kafka.KafkaError | None] = []
    producer = confluent_kafka.Producer({**login(broker, folder), "enable.idempotence": True})
    end = time.monotonic() + 3 * LOGIN_ENDS_MS / 1000
    sent = 0
    while time.monotonic() < end:
        producer.produce(
            topic, b"%d" % sent, on_delivery=lambda error, _: delivery_errors.append(error)
        )
        sent += 1
        producer.poll(0.05)
    assert producer.flush(30) == 0
    assert delivery_errors == [None] * sent
    assert _count(broker, topic) == sent


def _count(broker: Guarded, topic: str) -> int:
    consumer = confluent_kafka.Consumer({"bootstrap.servers": broker.bootstrap, "group.id": topic})
    _, end = consumer.get_watermark_offsets(confluent_kafka.TopicPartition(topic, 0), timeout=30)
    consumer.close()
    return int(end)


@pytest.mark.java
@pytest.mark.long
def test_java_producer_reauthenticates_on_same_connection(
    guarded: tuple[Guarded, Path], tmp_path: Path
) -> None:
    broker, folder = guarded
    module = "org.apache.kafka.common.security.scram.ScramLoginModule"
    file = tmp_path / "client.properties"
    file.write_text(
        "security.protocol=SASL_SSL\nsasl.mechanism=SCRAM-SHA-512\nssl.truststore.type=PEM\n"
        f"ssl.truststore.location={folder / 'authority.pem'}\nretries=0\nenable.idempotence=false\n"
        f'sasl.jaas.config={module} required username="alice" password="{PASSWORD}";\n'
        f"bootstrap.servers={address(broker, 'LOGIN')}\n"
    )
    topic = new_topic_name()
    done = subprocess.run(
        [
            *java_start.command("-Xmx256m", java.PRODUCER_PERFORMANCE),
            *("--topic", topic, "--num-records", "1000", "--record-size", "10"),
            *("--throughput", "200", "--command-config", str(file)),
        ],
        capture_output=True,
        text=True,
        timeout=java.TIMEOUT_S,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Exception" not in done.stdout + done.stderr
    assert _count(broker, topic) == 1000


# --- tokens ---


class TokenProvider(aiokafka.abc.AbstractTokenProvider):
    """Creates unsigned tokens that expired some seconds ago or expire soon."""

    def __init__(self, lives_s: int) -> None:
        self._lives_s = lives_s

    async def token(self) -> str:
        now = SystemClock().now_ms() // 1000
        claims = {"sub": "alice", "iat": now - 600, "exp": now + self._lives_s}
        parts = (json.dumps(part).encode() for part in ({"alg": "none"}, claims))
        return ".".join(base64.urlsafe_b64encode(part).decode().rstrip("=") for part in parts) + "."


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.filterwarnings("ignore::ResourceWarning")
@pytest.mark.parametrize(("lives_s", "is_let_in"), [(300, True), (-300, False)])
def test_only_unexpired_token_is_accepted(
    guarded: tuple[Guarded, Path], lives_s: int, is_let_in: bool
) -> None:
    broker, _ = guarded

    async def connect() -> None:
        producer = aiokafka.AIOKafkaProducer(
            bootstrap_servers=address(broker, "TOKENS"),
            security_protocol="SASL_PLAINTEXT",
            sasl_mechanism="OAUTHBEARER",
            sasl_oauth_token_provider=TokenProvider(lives_s),
        )
        try:
            await producer.start()
            # Apache Kafka refuses with a SASL message, which aiokafka may take for the end.
            async with asyncio.timeout(10):
                await producer.partitions_for("tokens")
        finally:
            await producer.stop()

    if is_let_in:
        asyncio.run(connect())
    else:
        with pytest.raises((aiokafka.errors.KafkaError, TimeoutError)):
            asyncio.run(connect())


# --- changing keys ---


def _set(broker: Guarded, name: str, value: str) -> int:
    entry = {"name": name, "config_operation": 0, "value": value}
    resource = {"resource_type": 4, "resource_name": "1", "configs": [entry]}
    with contextlib.closing(Requests((HOST, broker.port))) as requests:
        answer = requests.try_ask(ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, {"resources": [resource]})
    code: int = answer.responses[0].error_code
    return code


def test_invalid_keys_are_rejected(guarded: tuple[Guarded, Path], tmp_path: Path) -> None:
    broker, _ = guarded
    invalid_file = write(tmp_path, "nothing.pem", "nothing")
    eve = write(tmp_path, "eve.pem", client_certificate("eve"))
    for store, location in (
        ("keystore", invalid_file),
        ("keystore", str(tmp_path / "nowhere.pem")),
        ("truststore", invalid_file),
        ("keystore", eve),
    ):
        name = f"listener.name.own.ssl.{store}.location"
        assert _set(broker, name, location) == ErrorCode.INVALID_REQUEST, location


def test_wirebroker_rejects_dynamic_jwks_endpoint(guarded: tuple[Guarded, Path]) -> None:
    """An agreed difference (docs/compatibility.md)."""
    broker, _ = guarded
    name = "listener.name.tokens.sasl.oauthbearer.jwks.endpoint.url"
    is_ours = isinstance(broker, WirebrokerOfListeners)
    assert _set(broker, name, "file:///nowhere") == (ErrorCode.INVALID_REQUEST if is_ours else 0)
