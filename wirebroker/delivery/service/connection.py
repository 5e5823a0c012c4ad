"""Settings of librdkafka for a cluster, from Kafka's client settings (Java's names)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from wirebroker.client.security.security import client_security
from wirebroker.config.rows.row import ConfigError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from wirebroker.config.security.outgoing import Login
    from wirebroker.config.security.tls import StoreSettings, TlsSettings

_WITH_PASSWORD: Final = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")


def librdkafka_settings(bootstrap: str, settings: Mapping[str, str]) -> dict[str, str]:
    """Return librdkafka's settings.

    Raises:
        ConfigError: A setting is invalid, or librdkafka cannot use it.
    """
    security = client_security(settings)
    found = {
        "bootstrap.servers": bootstrap,
        "security.protocol": settings.get("security.protocol", "PLAINTEXT").upper(),
    }
    if security.tls is not None:
        found |= _tls(security.tls)
    if security.login is not None:
        found |= _login(security.login)
    return found


def _login(login: Login) -> dict[str, str]:
    if login.mechanism not in _WITH_PASSWORD or login.by_token:
        raise ConfigError(
            f"sasl.mechanism={login.mechanism} cannot be used by the delivery service: use one of"
            f" {', '.join(_WITH_PASSWORD)}, or a client certificate"
        )
    return {
        "sasl.mechanism": login.mechanism,
        "sasl.username": login.user,
        "sasl.password": login.password,
    }


def _tls(tls: TlsSettings) -> dict[str, str]:
    found = {"ssl.endpoint.identification.algorithm": "https" if tls.checks_host else "none"}
    if tls.truststore.is_there:
        found |= _pem(tls.truststore, location="ssl.ca.location", text="ssl.ca.pem")
    store = tls.keystore
    if not store.is_there:
        return found
    if store.type == "PKCS12":
        return found | {
            "ssl.keystore.location": store.location,
            "ssl.keystore.password": store.password,
        }
    found |= _pem(store, location="ssl.certificate.location", text="ssl.certificate.pem")
    if store.location:
        found["ssl.key.location"] = store.location
    else:
        found["ssl.key.pem"] = store.key
    if store.key_password:
        found["ssl.key.password"] = store.key_password
    return found


def _pem(store: StoreSettings, *, location: str, text: str) -> dict[str, str]:
    if store.type != "PEM":
        raise ConfigError(
            f"{store.name}.type={store.type} cannot be used by the delivery service: use PEM"
        )
    return {location: store.location} if store.location else {text: store.certificates}
