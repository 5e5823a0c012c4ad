"""Each client with each mechanism over TLS: only valid passwords and tokens permit writes.

Password logins expire every 1.5 s here (KIP-368). SASL_PLAINTEXT: test_sasl.py, test_oauth.py;
Rust: nightly_rust.py; Node, Go and Kafka Streams: nightly_other_clients.py.
"""

from __future__ import annotations

import asyncio
import gc
import ssl
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

import aiokafka
import aiokafka.abc
import aiokafka.errors
import confluent_kafka
import kafka
import kafka.net.sasl.oauth
import pytest

from compat_tests.clients import java, kcat
from compat_tests.security.listeners import stored
from compat_tests.security.logins import OVER_TLS, logins
from compat_tests.support import topics
from tests.support.brokers import java_start

if TYPE_CHECKING:
    from collections.abc import Callable

    from compat_tests.security.listeners import Guarded
    from compat_tests.security.logins import Login

pytestmark = pytest.mark.long

REFUSED_MS = 5000


def _of_python(login: Login, provider: type) -> dict[str, Any]:
    settings = {
        "bootstrap_servers": login.address,
        "security_protocol": login.protocol,
        "sasl_mechanism": login.mechanism,
    }
    if login.mechanism == "OAUTHBEARER":
        return settings | {"sasl_oauth_token_provider": provider(login.token)}
    return settings | {
        "sasl_plain_username": login.user,
        "sasl_plain_password": login.password,
    }


class _Token(kafka.net.sasl.oauth.AbstractTokenProvider):
    """A prepared token."""

    def __init__(self, token: str) -> None:
        self._token = token

    def token(self) -> str:
        return self._token


class _AwaitedToken(aiokafka.abc.AbstractTokenProvider):
    """The same for aiokafka."""

    def __init__(self, token: str) -> None:
        self._token = token

    async def token(self) -> str:
        return self._token


def _librdkafka(login: Login, topic: str) -> None:
    settings = login.of_librdkafka() | {"bootstrap.servers": login.address, "log_level": 0}
    producer = confluent_kafka.Producer(settings)
    producer.list_topics(timeout=REFUSED_MS / 1000)
    producer.produce(topic, b"one")
    assert producer.flush(30) == 0


def _kafka_python(login: Login, topic: str) -> None:
    producer = kafka.KafkaProducer(
        **_of_python(login, _Token), ssl_cafile=login.ca, bootstrap_timeout_ms=REFUSED_MS
    )
    producer.send(topic, b"one").get(timeout=30)
    producer.close()


def _aiokafka(login: Login, topic: str) -> None:
    async def write_one() -> None:
        context = ssl.create_default_context(cafile=login.ca)
        producer = aiokafka.AIOKafkaProducer(
            **_of_python(login, _AwaitedToken), ssl_context=context
        )
        try:
            await producer.start()
            await producer.send_and_wait(topic, b"one")
        finally:
            await producer.stop()

    asyncio.run(asyncio.wait_for(write_one(), 30))


def _kcat(login: Login, topic: str) -> None:
    assignments = [f"{name}={value}" for name, value in login.of_librdkafka().items()]
    flags = [flag for assignment in assignments for flag in ("-X", assignment)]
    kcat.run(login.address, "-L", "-t", topic, "-m", str(REFUSED_MS // 1000), *flags)
    kcat.run(login.address, "-P", "-t", topic, *flags, text=b"one\n")


def _java(login: Login, topic: str) -> None:
    file = Path(login.ca).with_name("client.properties")
    file.write_text(
        f"bootstrap.servers={login.address}\nmax.block.ms=10000\n{login.as_properties()}"
    )
    done = subprocess.run(
        [
            *java_start.command("-Xmx256m", java.PRODUCER_PERFORMANCE),
            *("--topic", topic, "--num-records", "1", "--record-size", "3"),
            *("--throughput", "-1", "--command-config", str(file)),
        ],
        capture_output=True,
        text=True,
        timeout=java.TIMEOUT_S,
        check=False,
    )
    assert "Exception" not in done.stdout + done.stderr, done.stdout + done.stderr
    assert done.returncode == 0


CLIENTS: dict[str, Callable[[Login, str], None]] = {
    "librdkafka": _librdkafka,
    "kafka-python": _kafka_python,
    "aiokafka": _aiokafka,
    "kcat": _kcat,
    "java": _java,
}
# Debian's kcat has librdkafka 2.0.2, whose SCRAM logins both brokers refuse: before 2.6.1 it sent
# its nonce twice, which Kafka 4 no longer accepts (CVE-2024-56128).
ALL = [
    pytest.param(client, way, marks=pytest.mark.java if client == "java" else ())
    for client in CLIENTS
    for way in OVER_TLS
    if client != "kcat" or "SCRAM" not in way
]
_REFUSALS = (
    confluent_kafka.KafkaException,
    kafka.errors.KafkaError,
    aiokafka.errors.KafkaError,
    AssertionError,  # clients in separate processes
    # aiokafka after a refused token: it requests metadata anyway, and Apache Kafka's response lists
    # no brokers before it closes the connection.
    TimeoutError,
)


# Refused clients leave sockets to the garbage collector.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.filterwarnings("ignore::ResourceWarning")
@pytest.mark.parametrize(("client", "way"), ALL)
def test_only_clients_with_valid_login_can_write(
    guarded: tuple[Guarded, Path], client: str, way: str
) -> None:
    broker, folder = guarded
    topic = topics.create_new(broker.bootstrap)
    right, wrong = logins(broker, folder, way)
    CLIENTS[client](right, topic)
    assert stored(broker, topic) == 1
    with pytest.raises(_REFUSALS):
        CLIENTS[client](wrong, topic)
    gc.collect()  # now, not in another test
    assert stored(broker, topic) == 1
