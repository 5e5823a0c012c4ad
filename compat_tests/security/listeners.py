"""Brokers of both kinds with an open listener and several secured ones.

OWN       SSL         requires client certificates
EXPIRED   SSL         the broker's certificate has expired
LOGIN     SASL_SSL    alice, by PLAIN and SCRAM; logins expire
TOKENS    SASL_PLAINTEXT   unsigned tokens
TLSTOKENS SASL_SSL    the same
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, ClassVar, Final, TypeAlias

import confluent_kafka

from compat_tests.security.secured import add_alice, sasl_settings
from tests.support.brokers import java_start
from tests.support.brokers.brokers import AUTHORIZED, ApacheKafka, Wirebroker
from tests.support.security.tls_files import certificate, tls_configs, write
from tests.support.tools.ports import HOST, free_port

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    import pytest

PROTOCOLS: Final = {
    "OWN": "SSL",
    "EXPIRED": "SSL",
    "LOGIN": "SASL_SSL",
    "TOKENS": "SASL_PLAINTEXT",
    "TLSTOKENS": "SASL_SSL",
}
LOGIN_ENDS_MS: Final = 1500
_TOKENS: Final = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule"


def protocol_map(protocols: Mapping[str, str]) -> str:
    """Return listener.security.protocol.map for these listeners and the open ones."""
    protocol_by_listener = {"PLAINTEXT": "PLAINTEXT", "CONTROLLER": "PLAINTEXT", **protocols}
    return ",".join(f"{name}:{protocol}" for name, protocol in protocol_by_listener.items())


def _settings(folder: Path) -> dict[str, str]:
    return {
        **AUTHORIZED,
        **tls_configs(folder),
        **sasl_settings("login"),
        "group.min.session.timeout.ms": "1000",  # for Kafka Streams' members
        "listener.security.protocol.map": protocol_map(PROTOCOLS),
        "listener.name.own.ssl.client.auth": "required",
        "listener.name.expired.ssl.keystore.location": write(
            folder, "expired.pem", certificate(days=-1)
        ),
        "listener.name.expired.ssl.keystore.type": "PEM",
        "listener.name.login.connections.max.reauth.ms": str(LOGIN_ENDS_MS),
        **_tokens("tokens"),
        **_tokens("tlstokens"),
    }


def _tokens(listener: str) -> dict[str, str]:
    prefix = f"listener.name.{listener}."
    return {
        f"{prefix}sasl.enabled.mechanisms": "OAUTHBEARER",
        f"{prefix}oauthbearer.sasl.jaas.config": (
            f'{_TOKENS} required unsecuredLoginStringClaim_sub="b";'
        ),
    }


class KafkaOfListeners(ApacheKafka):
    protocols: ClassVar[Mapping[str, str]] = PROTOCOLS
    ports: dict[str, int]

    def _choose_ports(self) -> None:
        super()._choose_ports()
        self.ports = {name: free_port() for name in self.protocols}
        properties = self._properties.read_text()
        own_listeners = next(
            line.partition("=")[2]
            for line in properties.splitlines()
            if line.startswith("listeners=")
        )
        added_listeners = ",".join(f"{name}://{HOST}:{port}" for name, port in self.ports.items())
        # The last line with a name applies.
        self._properties.write_text(
            f"{properties}listeners={own_listeners},{added_listeners}\n"
            f"advertised.listeners=PLAINTEXT://{HOST}:{self.port},{added_listeners}\n"
        )


class WirebrokerOfListeners(Wirebroker):
    protocols: ClassVar[Mapping[str, str]] = PROTOCOLS
    ports: dict[str, int]

    def _prepare(self) -> None:
        super()._prepare()
        if "listeners" not in self.settings:
            self.ports = {name: free_port() for name in self.protocols}
            listeners = [f"PLAINTEXT://{HOST}:{self.port}"]
            listeners += [f"{name}://{HOST}:{port}" for name, port in self.ports.items()]
            self.settings["listeners"] = ",".join(listeners)


Guarded: TypeAlias = KafkaOfListeners | WirebrokerOfListeners


def broker_of_listeners(
    kind: str, folder: Path, settings: Mapping[str, str] | None = None
) -> Guarded:
    """Return a broker, not started; the folder has its keys and certificates."""
    settings = {**_settings(folder), **(settings or {})}
    if kind == "apache":
        options = java_start.options()
        return KafkaOfListeners(folder / "broker", settings, java_options=options)
    return WirebrokerOfListeners(folder / "broker", settings)


@contextlib.contextmanager
def guarded_broker(
    kind: str, factory: pytest.TempPathFactory, settings: Mapping[str, str] | None = None
) -> Iterator[tuple[Guarded, Path]]:
    """Run a broker with the user alice, in a folder with the CA for its clients."""
    folder = factory.mktemp("guarded")
    with broker_of_listeners(kind, folder, settings) as broker:
        add_alice(broker)
        yield broker, folder


def stored(broker: Guarded, topic: str) -> int:
    settings = {"bootstrap.servers": broker.bootstrap, "group.id": "none"}
    consumer = confluent_kafka.Consumer(settings)
    with contextlib.closing(consumer):
        partition = confluent_kafka.TopicPartition(topic, 0)
        return int(consumer.get_watermark_offsets(partition, timeout=30)[1])
