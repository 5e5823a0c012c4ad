"""Brokers of both kinds with an open listener and one that requires authentication."""

from __future__ import annotations

from typing import TYPE_CHECKING

from confluent_kafka import KafkaException
from confluent_kafka.admin import (
    AdminClient,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialAlteration,
    UserScramCredentialDeletion,
    UserScramCredentialUpsertion,
)

from tests.support.brokers import java_start
from tests.support.brokers.brokers import ApacheKafka, Wirebroker
from tests.support.tools.ports import HOST, free_port
from tests.support.tools.waiting import eventually

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from tests.support.brokers.brokers import Broker

MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
PASSWORD = "alice-secret"
_SCRAM = (ScramMechanism.SCRAM_SHA_256, ScramMechanism.SCRAM_SHA_512)
_ITERATIONS = 4096
_PACKAGE = "org.apache.kafka.common.security."


def sasl_settings(listener: str = "sasl_plaintext") -> dict[str, str]:
    prefix = f"listener.name.{listener}"
    plain = f'{_PACKAGE}plain.PlainLoginModule required user_alice="{PASSWORD}";'
    scram = f"{_PACKAGE}scram.ScramLoginModule required;"
    return {
        "sasl.enabled.mechanisms": ",".join(MECHANISMS),
        f"{prefix}.plain.sasl.jaas.config": plain,
        f"{prefix}.scram-sha-256.sasl.jaas.config": scram,
        f"{prefix}.scram-sha-512.sasl.jaas.config": scram,
    }


class SecuredKafka(ApacheKafka):
    """Apache Kafka; the secured listener's port is `secured_port`."""

    secured_port = 0

    def _choose_ports(self) -> None:
        super()._choose_ports()
        self.secured_port = free_port()
        properties = self._properties.read_text()
        listeners = next(
            line.partition("=")[2]
            for line in properties.splitlines()
            if line.startswith("listeners=")
        )
        secured = f"SASL_PLAINTEXT://{HOST}:{self.secured_port}"
        # The last line with a name applies.
        self._properties.write_text(
            f"{properties}listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,"
            "SASL_PLAINTEXT:SASL_PLAINTEXT\n"
            f"listeners={listeners},{secured}\n"
            f"advertised.listeners=PLAINTEXT://{HOST}:{self.port},{secured}\n"
        )


class SecuredWirebroker(Wirebroker):
    secured_port = 0

    def _prepare(self) -> None:
        super()._prepare()
        if not self.secured_port:
            self.secured_port = free_port()
            self.settings["listeners"] = (
                f"PLAINTEXT://{HOST}:{self.port},SASL_PLAINTEXT://{HOST}:{self.secured_port}"
            )


def add_alice(broker: Broker) -> None:
    """Create SCRAM credentials for alice; return when the broker knows them."""
    change_users(broker, ["alice"], is_deletion=False)
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    expected = dict.fromkeys(_SCRAM, _ITERATIONS)
    # The broker may apply the change after the controller's response.
    eventually(lambda: _credentials(admin) == expected)


def change_users(broker: Broker, names: Sequence[str], *, is_deletion: bool) -> None:
    """Create SCRAM credentials for users, or delete them, and wait for the responses."""
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    for mechanism in _SCRAM:
        info = ScramCredentialInfo(mechanism, _ITERATIONS)
        changes: list[UserScramCredentialAlteration] = [
            UserScramCredentialDeletion(name, mechanism)
            if is_deletion
            else UserScramCredentialUpsertion(name, info, PASSWORD.encode())
            for name in names
        ]
        for future in admin.alter_user_scram_credentials(changes).values():
            future.result(timeout=30)


def _credentials(admin: AdminClient) -> dict[ScramMechanism, int]:
    futures = admin.describe_user_scram_credentials(["alice"])
    assert isinstance(futures, dict)
    try:
        described = futures["alice"].result(timeout=30)
    except KafkaException:  # RESOURCE_NOT_FOUND
        return {}
    return {info.mechanism: info.iterations for info in described.scram_credential_infos}


def secured_broker(
    kind: str, directory: Path, settings: Mapping[str, str] | None = None
) -> SecuredKafka | SecuredWirebroker:
    """Return a broker, not started; `settings` extend the listener's."""
    all_settings = {**sasl_settings(), **(settings or {})}
    if kind == "apache":
        return SecuredKafka(directory, all_settings, java_options=java_start.options())
    return SecuredWirebroker(directory, all_settings)
