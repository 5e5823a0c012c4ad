r"""A client's settings, in Kafka's words: how it reaches a cluster, and says who it is.

    security.protocol=SASL_SSL
    sasl.mechanism=SCRAM-SHA-512
    sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required \
        username="alice" password="alice-secret";
    ssl.truststore.type=PEM
    ssl.truststore.location=ca.pem

That is what the files of `--command-config` of Kafka's tools have. Of everything else in them
nothing is read; but what would have a login, or TLS, be done by a class of Java's is refused.

Source: Kafka's CommonClientConfigs, SaslConfigs, SslConfigs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from wirebroker.config.cipher_suites import suites_for_openssl
from wirebroker.config.kerberos import SERVICE_NAME
from wirebroker.config.outgoing import (
    LOGIN_MECHANISMS,
    PROTOCOLS,
    OutgoingSecurity,
    login_of,
)
from wirebroker.config.row import ConfigError
from wirebroker.config.tls import STORE_TYPES, VERSIONS, StoreSettings, TlsSettings

if TYPE_CHECKING:
    from collections.abc import Mapping

_DEFAULT_TYPE: Final = "JKS"


def client_security(settings: Mapping[str, str]) -> OutgoingSecurity:
    """Return how the cluster is reached.

    Raises:
        ConfigError: A setting can't be used.
    """
    for name, value in settings.items():
        if value and name.startswith(("sasl.", "ssl.")) and name.endswith(".class"):
            raise ConfigError(f"{name} cannot be used: there are no classes of Java's here")
    protocol = settings.get("security.protocol", "PLAINTEXT").upper()
    if protocol not in PROTOCOLS:
        raise ConfigError(f"security.protocol can be {', '.join(PROTOCOLS)}")
    tls = login = None
    if protocol.endswith("SSL"):
        tls = _tls(settings)
    if protocol.startswith("SASL_"):
        mechanism = settings.get("sasl.mechanism", "GSSAPI")
        if mechanism not in LOGIN_MECHANISMS:
            served = ", ".join(LOGIN_MECHANISMS)
            raise ConfigError(f"sasl.mechanism={mechanism} is not served; there are {served}")
        line = settings.get("sasl.jaas.config", "")
        service = settings.get(SERVICE_NAME)
        login = login_of(line, mechanism, "sasl.jaas.config", service=service)
    return OutgoingSecurity(tls=tls, login=login)


def _tls(settings: Mapping[str, str]) -> TlsSettings:
    def store(name: str, certificates: str) -> StoreSettings:
        type_ = settings.get(f"{name}.type", _DEFAULT_TYPE).upper()
        if type_ not in STORE_TYPES:
            raise ConfigError(f"{name}.type can be {', '.join(STORE_TYPES)}")
        return StoreSettings(
            type=type_,
            location=settings.get(f"{name}.location", ""),
            password=settings.get(f"{name}.password", ""),
            certificates=settings.get(f"{name}.{certificates}", ""),
            key=settings.get("ssl.keystore.key", ""),
            key_password=settings.get("ssl.key.password", ""),
            name=name,
        )

    versions = _items(settings.get("ssl.enabled.protocols", "")) or VERSIONS
    unknown = [each for each in versions if each not in VERSIONS]
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
    return tuple(each.strip() for each in text.split(",") if each.strip())
