"""TLS settings of a client: `ssl.…` in its file or in a JAAS line.

Source: Kafka's SslConfigs, JaasOptionsUtils.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from wirebroker.config.rows.row import ConfigError
from wirebroker.config.security.cipher_suites import suites_for_openssl
from wirebroker.config.security.tls import (
    STORE_TYPES,
    VERSIONS,
    StoreSettings,
    TlsSettings,
    check_stores,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

_TYPES: Final = {"ssl.keystore.type": "JKS", "ssl.truststore.type": "JKS"}


def client_tls(settings: Mapping[str, str]) -> TlsSettings:
    """Return the TLS settings of a client.

    Raises:
        ConfigError: A setting is invalid.
    """

    def store(name: str, certificates: str) -> StoreSettings:
        type_ = settings.get(f"{name}.type", _TYPES[f"{name}.type"]).upper()
        if type_ not in STORE_TYPES:
            raise ConfigError(f"{name}.type must be one of {', '.join(STORE_TYPES)}")
        return StoreSettings(
            type=type_,
            location=settings.get(f"{name}.location", ""),
            password=settings.get(f"{name}.password", ""),
            certificates=settings.get(f"{name}.{certificates}", ""),
            key=settings.get("ssl.keystore.key", ""),
            key_password=settings.get("ssl.key.password", ""),
            name=name,
        )

    check_stores({**_TYPES, **settings}.get)
    versions = _items(settings.get("ssl.enabled.protocols", "")) or VERSIONS
    unknown = [version for version in versions if version not in VERSIONS]
    if unknown:
        raise ConfigError(
            f"ssl.enabled.protocols: {unknown[0]} is not one of {', '.join(VERSIONS)}"
        )
    try:
        suites, versions = suites_for_openssl(
            _items(settings.get("ssl.cipher.suites", "")), versions
        )
    except ValueError as error:
        raise ConfigError(f"ssl.cipher.suites cannot be used: {error}") from None
    identification = settings.get("ssl.endpoint.identification.algorithm", "https")
    return TlsSettings(
        keystore=store("ssl.keystore", "certificate.chain"),
        truststore=store("ssl.truststore", "certificates"),
        versions=versions,
        cipher_suites=suites,
        checks_host=identification.lower() == "https",
    )


def _items(text: str) -> tuple[str, ...]:
    return tuple(item.strip() for item in text.split(",") if item.strip())
