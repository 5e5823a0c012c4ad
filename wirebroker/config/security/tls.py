"""TLS settings of one side: key, certificates, truststore, versions, ciphers.

    ssl.keystore.type=PEM
    ssl.keystore.location=/etc/kafka/broker.pem                 key and certificates, or
    ssl.keystore.key=-----BEGIN PRIVATE KEY----- …              both inline
    ssl.keystore.certificate.chain=-----BEGIN CERTIFICATE----- …
    listener.name.outside.ssl.keystore.location=…               of one listener

With SASL_SSL, only a listener's own ssl.client.auth requests client certificates (KIP-684).

Source: Kafka's SslConfigs, BrokerSecurityConfigs, DefaultSslEngineFactory.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Final

from wirebroker.config.lookup import listener_config
from wirebroker.config.rows.row import ConfigError
from wirebroker.config.security.cipher_suites import suites_for_openssl
from wirebroker.config.security.principal_rules import DEFAULT_RULES, PrincipalRule, principal_rules

if TYPE_CHECKING:
    from collections.abc import Callable

    from wirebroker.config.values import Config

STORE_TYPES: Final = ("PEM", "PKCS12", "JKS")
VERSIONS: Final = ("TLSv1.2", "TLSv1.3")
_NO_AUTH: Final = "none"


@dataclass(slots=True, frozen=True, kw_only=True)
class StoreSettings:
    """Location of keys or certificates.

    Attributes:
        type: One of STORE_TYPES; as in Java, a JKS store may contain PKCS12.
        location: A file, or empty.
        password: For the file, and for the key unless it has its own.
        certificates: PEM instead of a file: a keystore's chain, or the trusted certificates.
        key: PEM instead of a file.
        name: Prefix of the store's settings.
    """

    type: str = "PEM"
    location: str = ""
    password: str = field(default="", repr=False)
    certificates: str = ""
    key: str = field(default="", repr=False)
    key_password: str = field(default="", repr=False)
    name: str = "ssl.keystore"

    @property
    def is_there(self) -> bool:
        """Whether the store is configured."""
        return bool(self.location or self.certificates)


@dataclass(slots=True, frozen=True, kw_only=True)
class TlsSettings:
    """One side of TLS.

    Attributes:
        truststore: Without one, the system's certificates are trusted.
        client_auth: "none", "requested" or "required".
        cipher_suites: OpenSSL's names of TLS 1.2 suites; None if OpenSSL chooses.
        checks_host: Whether a server's certificate must contain its host name.
        may_change_subject: Whether a certificate may be replaced by one with another subject.
        may_change_names: Whether the new one may lack host names of the old one.
    """

    keystore: StoreSettings = StoreSettings()
    truststore: StoreSettings = StoreSettings(name="ssl.truststore")
    client_auth: str = _NO_AUTH
    versions: tuple[str, ...] = VERSIONS
    cipher_suites: tuple[str, ...] | None = None
    checks_host: bool = True
    rules: tuple[PrincipalRule, ...] = DEFAULT_RULES
    may_change_subject: bool = False
    may_change_names: bool = False


def tls_settings(config: Config, listener: str, protocol: str) -> TlsSettings:
    """Return the TLS settings of a listener.

    Raises:
        ConfigError: They are invalid.
    """
    settings = _settings(config, listener)
    if not settings.keystore.is_there:
        name = listener_config(listener, "ssl.keystore.location")
        raise ConfigError(
            f"{name} is missing: {listener} needs a key and a certificate (`wirebroker certs DIR` "
            "creates some for tests)"
        )
    if settings.keystore.type not in STORE_TYPES or settings.truststore.type not in STORE_TYPES:
        raise ConfigError(
            f"ssl.keystore.type and ssl.truststore.type must be one of {', '.join(STORE_TYPES)}"
        )
    if protocol != "SASL_SSL" or config.is_set(listener_config(listener, "ssl.client.auth")):
        return settings
    return replace(settings, client_auth=_NO_AUTH)


def outgoing_tls_settings(config: Config, listener: str) -> TlsSettings:
    """Return the TLS settings for other nodes' listeners.

    Raises:
        ConfigError: They are invalid.
    """
    return _settings(config, listener)


def check_stores(value_of: Callable[[str], object]) -> None:
    """Reject keystore or truststore configs that exclude or lack each other.

    Raises:
        ConfigError: As in Kafka's DefaultSslEngineFactory.
    """
    key, chain = "ssl.keystore.key", "ssl.keystore.certificate.chain"
    if value_of(key) is not None and value_of(chain) is None:
        raise ConfigError(f"{key} is set and {chain} is not: set both, or use a file instead")
    if value_of(chain) is not None and value_of(key) is None:
        raise ConfigError(f"{chain} is set and {key} is not: set both, or use a file instead")
    for store, text in (("ssl.keystore", key), ("ssl.truststore", "ssl.truststore.certificates")):
        _check_store(value_of, store, text)
    location, password = "ssl.keystore.location", "ssl.keystore.password"
    is_pem = str(value_of("ssl.keystore.type")).upper() == "PEM"
    if value_of(location) and not is_pem and value_of(password) is None:
        raise ConfigError(f"{location} is set and {password} is not: set the keystore's password")


def _check_store(value_of: Callable[[str], object], store: str, text: str) -> None:
    location, password = f"{store}.location", f"{store}.password"
    is_pem = str(value_of(f"{store}.type")).upper() == "PEM"
    if value_of(text) is not None:
        if not is_pem:
            raise ConfigError(f"{text} is PEM: set {store}.type=PEM, or use a file instead")
        if value_of(location):
            raise ConfigError(f"{text} and {location} are both set: remove one of them")
    if value_of(password) is None:
        return
    if is_pem:
        raise ConfigError(
            f"{password} is set and {store}.type is PEM: PEM files have no store password, remove "
            "it" + (" (a key's is ssl.key.password)" if store == "ssl.keystore" else "")
        )
    if not value_of(location):
        raise ConfigError(f"{password} is set and {location} is not: set both or neither")


def _settings(config: Config, listener: str) -> TlsSettings:
    def text(name: str) -> str:
        value = config.listener_value(listener, name)
        return value if isinstance(value, str) else ""

    def items(name: str) -> tuple[str, ...]:
        value = config.listener_value(listener, name)
        return value if isinstance(value, tuple) else ()

    try:
        rules = principal_rules(text("ssl.principal.mapping.rules"))
    except ValueError as error:
        raise ConfigError(f"ssl.principal.mapping.rules cannot be used: {error}") from None
    check_stores(partial(config.listener_value, listener))
    # In Kafka, Java chooses for an empty list.
    versions = items("ssl.enabled.protocols") or VERSIONS
    try:
        suites, versions = suites_for_openssl(items("ssl.cipher.suites"), versions)
    except ValueError as error:
        raise ConfigError(f"ssl.cipher.suites cannot be used: {error}") from None
    return TlsSettings(
        keystore=StoreSettings(
            type=text("ssl.keystore.type").upper(),
            location=text("ssl.keystore.location"),
            password=text("ssl.keystore.password"),
            certificates=text("ssl.keystore.certificate.chain"),
            key=text("ssl.keystore.key"),
            key_password=text("ssl.key.password"),
        ),
        truststore=StoreSettings(
            type=text("ssl.truststore.type").upper(),
            location=text("ssl.truststore.location"),
            password=text("ssl.truststore.password"),
            certificates=text("ssl.truststore.certificates"),
            name="ssl.truststore",
        ),
        client_auth=text("ssl.client.auth"),
        versions=versions,
        cipher_suites=suites,
        checks_host=text("ssl.endpoint.identification.algorithm").lower() == "https",
        rules=rules,
        may_change_subject=config.listener_value(listener, "ssl.allow.dn.changes") is True,
        may_change_names=config.listener_value(listener, "ssl.allow.san.changes") is True,
    )
