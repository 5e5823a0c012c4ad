"""Settings of client libraries."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from wirebroker.config.java.jaas import LOGIN_MODULES
from wirebroker.testing.clients.protection import PASSWORD, USER

if TYPE_CHECKING:
    from wirebroker.testing.clients.protection import Protection

ClientName: TypeAlias = Literal["confluent", "kafka-python", "aiokafka", "spark"]

_ADDRESS: Final[dict[str, str]] = {
    "confluent": "bootstrap.servers",
    "kafka-python": "bootstrap_servers",
    "aiokafka": "bootstrap_servers",
    "spark": "kafka.bootstrap.servers",
}


def client_config(
    client: str, bootstrap_servers: str, protection: Protection | None = None
) -> dict[str, Any]:
    """Return a client's settings; raise ValueError if it is unknown."""
    if client not in _ADDRESS:
        clients = ", ".join(_ADDRESS)
        raise ValueError(f"no client is called {client!r}; there are {clients}")
    config: dict[str, Any] = {_ADDRESS[client]: bootstrap_servers}
    if protection is None:
        return config
    if client == "confluent":
        return config | _of_librdkafka(protection)
    if client == "spark":
        return config | _of_java(protection)
    return config | _of_python(client, protection)


def _of_librdkafka(protection: Protection) -> dict[str, Any]:
    config = {"security.protocol": protection.protocol}
    if protection.authority is not None:
        config["ssl.ca.location"] = str(protection.authority)
    if protection.sasl is not None:
        config |= {
            "sasl.mechanism": protection.sasl,
            "sasl.username": USER,
            "sasl.password": PASSWORD,
        }
    return config


def _of_java(protection: Protection) -> dict[str, Any]:
    config = {"kafka.security.protocol": protection.protocol}
    if protection.authority is not None:
        config |= {
            "kafka.ssl.truststore.type": "PEM",
            "kafka.ssl.truststore.location": str(protection.authority),
        }
    if protection.sasl is not None:
        module = LOGIN_MODULES[protection.sasl]
        line = f'{module} required username="{USER}" password="{PASSWORD}";'
        config |= {"kafka.sasl.mechanism": protection.sasl, "kafka.sasl.jaas.config": line}
    return config


def _of_python(client: str, protection: Protection) -> dict[str, Any]:
    config: dict[str, Any] = {"security_protocol": protection.protocol}
    if protection.authority is not None and client == "aiokafka":
        import ssl  # noqa: PLC0415 - lazy

        config["ssl_context"] = ssl.create_default_context(cafile=str(protection.authority))
    elif protection.authority is not None:
        config["ssl_cafile"] = str(protection.authority)
    if protection.sasl is not None:
        config |= {
            "sasl_mechanism": protection.sasl,
            "sasl_plain_username": USER,
            "sasl_plain_password": PASSWORD,
        }
    return config
