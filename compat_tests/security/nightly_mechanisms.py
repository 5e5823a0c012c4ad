"""Each client by each mechanism that has passwords, over TLS: right ones write, wrong ones do not.

The logins of this listener end every 1.5 s (KIP-368). By SASL_PLAINTEXT: test_sasl.py; Rust:
nightly_rust.py.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import ssl
import subprocess
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import aiokafka
import aiokafka.errors
import confluent_kafka
import kafka
import pytest

from compat_tests import topics
from compat_tests.clients import java, kcat
from compat_tests.conftest import new_topic_name
from compat_tests.security.listeners import broker_of_listeners
from compat_tests.security.secured import MECHANISMS, PASSWORD, add_alice
from tests.support import java_start
from tests.support.ports import HOST
from tests.support.tls_files import authority, write

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from compat_tests.security.listeners import KafkaOfListeners, WirebrokerOfListeners

    Guarded = KafkaOfListeners | WirebrokerOfListeners

pytestmark = pytest.mark.long

REFUSED_MS = 5000


@pytest.fixture(
    scope="module", params=["wirebroker", pytest.param("apache", marks=pytest.mark.java)]
)
def guarded(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Guarded, Path]]:
    folder = tmp_path_factory.mktemp("guarded")
    with broker_of_listeners(request.param, folder) as broker:
        add_alice(broker)
        write(folder, "authority.pem", authority().certificate)
        yield broker, folder


@dataclass(frozen=True)
class Login:
    """Where to, as whom: alice, by a mechanism and a password."""

    address: str
    folder: Path
    mechanism: str
    password: str

    @property
    def ca(self) -> str:
        return str(self.folder / "authority.pem")

    def of_librdkafka(self) -> dict[str, Any]:
        return {
            "security.protocol": "SASL_SSL",
            "ssl.ca.location": self.ca,
            "sasl.mechanism": self.mechanism,
            "sasl.username": "alice",
            "sasl.password": self.password,
        }

    def of_python(self) -> dict[str, Any]:
        return {
            "bootstrap_servers": self.address,
            "security_protocol": "SASL_SSL",
            "sasl_mechanism": self.mechanism,
            "sasl_plain_username": "alice",
            "sasl_plain_password": self.password,
        }


def _librdkafka(login: Login, topic: str) -> None:
    settings = login.of_librdkafka() | {"bootstrap.servers": login.address, "log_level": 0}
    producer = confluent_kafka.Producer(settings)
    producer.list_topics(timeout=REFUSED_MS / 1000)
    producer.produce(topic, b"one")
    assert producer.flush(30) == 0


def _kafka_python(login: Login, topic: str) -> None:
    producer = kafka.KafkaProducer(
        **login.of_python(), ssl_cafile=login.ca, bootstrap_timeout_ms=REFUSED_MS
    )
    producer.send(topic, b"one").get(timeout=30)
    producer.close()


def _aiokafka(login: Login, topic: str) -> None:
    async def write_one() -> None:
        context = ssl.create_default_context(cafile=login.ca)
        producer = aiokafka.AIOKafkaProducer(**login.of_python(), ssl_context=context)
        try:
            await producer.start()
            await producer.send_and_wait(topic, b"one")
        finally:
            await producer.stop()

    asyncio.run(asyncio.wait_for(write_one(), 30))


def _kcat(login: Login, topic: str) -> None:
    told = [f"{name}={value}" for name, value in login.of_librdkafka().items()]
    flags = [flag for each in told for flag in ("-X", each)]
    kcat.run(login.address, "-L", "-t", topic, "-m", str(REFUSED_MS // 1000), *flags)
    kcat.run(login.address, "-P", "-t", topic, *flags, text=b"one\n")


def _java(login: Login, topic: str) -> None:
    kind = "plain.PlainLoginModule"
    if login.mechanism != "PLAIN":
        kind = "scram.ScramLoginModule"
    file = login.folder / "client.properties"
    file.write_text(
        f"bootstrap.servers={login.address}\nsecurity.protocol=SASL_SSL\n"
        f"sasl.mechanism={login.mechanism}\nssl.truststore.type=PEM\n"
        f"ssl.truststore.location={login.ca}\nmax.block.ms=10000\n"
        f"sasl.jaas.config=org.apache.kafka.common.security.{kind} required "
        f'username="alice" password="{login.password}";\n'
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
# Debian's kcat has librdkafka 2.0.2, whose logins by SCRAM both brokers refuse: before 2.6.1 it
# sent its nonce twice, which Kafka 4 takes no more (CVE-2024-56128).
ALL = [
    pytest.param(client, mechanism, marks=pytest.mark.java if client == "java" else ())
    for client in CLIENTS
    for mechanism in MECHANISMS
    if client != "kcat" or mechanism == "PLAIN"
]
_REFUSALS = (
    confluent_kafka.KafkaException,
    kafka.errors.KafkaError,
    aiokafka.errors.KafkaError,
    AssertionError,  # of a client that is a process
)


def stored(broker: Guarded, topic: str) -> int:
    settings = {"bootstrap.servers": broker.bootstrap, "group.id": "none"}
    consumer = confluent_kafka.Consumer(settings)
    with contextlib.closing(consumer):
        partition = confluent_kafka.TopicPartition(topic, 0)
        return int(consumer.get_watermark_offsets(partition, timeout=30)[1])


# Clients that are refused leave sockets to the garbage collector.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.filterwarnings("ignore::ResourceWarning")
@pytest.mark.parametrize(("client", "mechanism"), ALL)
def test_who_has_the_password_writes_and_nobody_else(
    guarded: tuple[Guarded, Path], client: str, mechanism: str
) -> None:
    broker, folder = guarded
    address, topic = f"{HOST}:{broker.ports['LOGIN']}", new_topic_name()
    topics.create(broker.bootstrap, topic, partitions=1)
    CLIENTS[client](Login(address, folder, mechanism, PASSWORD), topic)
    assert stored(broker, topic) == 1
    with pytest.raises(_REFUSALS):
        CLIENTS[client](Login(address, folder, mechanism, "another"), topic)
    gc.collect()  # here, not in another test
    assert stored(broker, topic) == 1
