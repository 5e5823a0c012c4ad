"""Stock clients use SSL and SASL_SSL with both brokers, with the same key files."""

from __future__ import annotations

import asyncio
import ssl
from typing import TYPE_CHECKING

import aiokafka
import confluent_kafka
import kafka
import pytest

from compat_tests.conftest import new_topic_name
from compat_tests.security.secured import PASSWORD, SecuredKafka, SecuredWirebroker, sasl_settings
from tests.support.brokers import java_start
from tests.support.security.tls_files import tls_configs
from tests.support.tools.ports import HOST

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    Secured = SecuredKafka | SecuredWirebroker

PROTOCOLS = ("SSL", "SASL_SSL")


@pytest.fixture(
    scope="module",
    params=[
        *(("wirebroker", protocol) for protocol in PROTOCOLS),
        *(
            pytest.param(("apache", protocol), marks=[pytest.mark.java, pytest.mark.nightly])
            for protocol in PROTOCOLS
        ),
    ],
)
def secured(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Secured, str, Path]]:
    kind, protocol = request.param
    folder = tmp_path_factory.mktemp("tls")
    settings = sasl_settings("secured") | tls_configs(folder)
    settings["listener.security.protocol.map"] = (
        f"PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,SECURED:{protocol}"
    )
    running: Secured
    if kind == "apache":
        running = _TlsKafka(folder / "broker", settings, java_options=java_start.options())
    else:
        running = _TlsWirebroker(folder / "broker", settings)
    with running:
        yield running, protocol, folder


class _TlsKafka(SecuredKafka):
    def _choose_ports(self) -> None:
        super()._choose_ports()
        text = self._properties.read_text().replace("SASL_PLAINTEXT://", "SECURED://")
        self._properties.write_text(
            f"{text}listener.security.protocol.map="
            f"{self.settings['listener.security.protocol.map']}\n"
        )


class _TlsWirebroker(SecuredWirebroker):
    def _prepare(self) -> None:
        super()._prepare()
        listeners = self.settings["listeners"]
        self.settings["listeners"] = listeners.replace("SASL_PLAINTEXT://", "SECURED://")


def test_clients_write_and_read(secured: tuple[Secured, str, Path]) -> None:
    broker, protocol, folder = secured
    address = f"{HOST}:{broker.secured_port}"
    authority = str(folder / "authority.pem")
    topic = new_topic_name()
    settings = {
        "bootstrap.servers": address,
        "security.protocol": protocol,
        "ssl.ca.location": authority,
        "sasl.mechanism": "PLAIN",
        "sasl.username": "alice",
        "sasl.password": PASSWORD,
    }
    producer = confluent_kafka.Producer(settings)
    producer.produce(topic, b"x" * 100_000)
    assert producer.flush(60) == 0
    login = {
        "sasl_mechanism": "PLAIN",
        "sasl_plain_username": "alice",
        "sasl_plain_password": PASSWORD,
    }
    python = {"bootstrap_servers": address, "security_protocol": protocol}
    python |= login if protocol == "SASL_SSL" else {}
    other = kafka.KafkaProducer(**python, ssl_cafile=authority)
    other.send(topic, b"kafka-python").get(60)
    other.close()

    async def read() -> list[bytes | None]:
        context = ssl.create_default_context(cafile=authority)
        consumer = aiokafka.AIOKafkaConsumer(
            topic, **python, ssl_context=context, auto_offset_reset="earliest"
        )
        await consumer.start()
        try:
            return [(await consumer.getone()).value for _ in range(2)]
        finally:
            await consumer.stop()

    values = asyncio.run(asyncio.wait_for(read(), 60))
    assert sorted(map(len, filter(None, values))) == [12, 100_000]


def test_client_without_authority_rejects_broker_certificate(
    secured: tuple[Secured, str, Path],
) -> None:
    broker, protocol, _ = secured
    settings = {
        "bootstrap.servers": f"{HOST}:{broker.secured_port}",
        "security.protocol": protocol,
        "sasl.mechanism": "PLAIN",
        "sasl.username": "alice",
        "sasl.password": PASSWORD,
        "log_level": 0,
    }
    with pytest.raises(confluent_kafka.KafkaException):
        confluent_kafka.Producer(settings).list_topics(timeout=2)
