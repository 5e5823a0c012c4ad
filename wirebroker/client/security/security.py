r"""A client's security settings, by Kafka's names.

    security.protocol=SASL_SSL
    sasl.mechanism=SCRAM-SHA-512
    sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required \
        username="alice" password="alice-secret";
    ssl.truststore.type=PEM
    ssl.truststore.location=ca.pem

Other settings are ignored, but Java classes for TLS or a login are refused. Source: Kafka's
CommonClientConfigs, SaslConfigs, SslConfigs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from wirebroker.config.java.jaas import LOGIN_MODULES, login_options, section_options
from wirebroker.config.java.java_options import NO_JAVA_OPTIONS, JavaOptions
from wirebroker.config.lookup import PROTOCOLS
from wirebroker.config.rows.row import ConfigError
from wirebroker.config.security.client_tls import client_tls
from wirebroker.config.security.oauth_login import HANDLER, RETRIEVER
from wirebroker.config.security.outgoing import LOGIN_MECHANISMS, OutgoingSecurity, login_of

if TYPE_CHECKING:
    from collections.abc import Mapping

_JAAS: Final = "sasl.jaas.config"
_SECTION: Final = "KafkaClient"
# Options of mechanisms without name and password.
_EXAMPLES: Final = {"OAUTHBEARER": "", "GSSAPI": " useTicketCache=true"}


def client_security(
    settings: Mapping[str, str], java: JavaOptions = NO_JAVA_OPTIONS
) -> OutgoingSecurity:
    """Return the TLS and login for connections, from settings by name.

    `java` may name a JAAS file, whose section KafkaClient replaces a missing sasl.jaas.config.

    Raises:
        ConfigError: A setting is invalid.
    """
    for name, value in settings.items():
        is_class = name.startswith(("sasl.", "ssl.")) and name.endswith(".class")
        if value and is_class and name not in {HANDLER, RETRIEVER}:
            raise ConfigError(f"{name} cannot be used: Java classes are not supported")
    protocol = settings.get("security.protocol", "PLAINTEXT").upper()
    if protocol not in PROTOCOLS:
        raise ConfigError(f"security.protocol must be one of {', '.join(PROTOCOLS)}")
    tls = login = None
    if protocol.endswith("SSL"):
        tls = client_tls(settings)
    if protocol.startswith("SASL_"):
        mechanism = settings.get("sasl.mechanism", "GSSAPI")
        if mechanism not in LOGIN_MECHANISMS:
            served = ", ".join(LOGIN_MECHANISMS)
            raise ConfigError(f"sasl.mechanism={mechanism} is not supported; use one of {served}")
        source, options = _login_options(settings, java, mechanism)
        login = login_of(options, mechanism, source, setting=settings.get)
    return OutgoingSecurity(tls=tls, login=login)


def _login_options(
    settings: Mapping[str, str], java: JavaOptions, mechanism: str
) -> tuple[str, Mapping[str, str]]:
    """Return the source of the login module's options, and the options."""
    line = settings.get(_JAAS, "")
    if line.strip():
        try:
            return _JAAS, login_options(line, mechanism)
        except ValueError as error:
            raise ConfigError(f"{_JAAS} cannot be used: {error}") from None
    section = java.section(_SECTION)
    options = None if section is None else section_options(section.modules, mechanism)
    if section is None or options is None:
        example = _EXAMPLES.get(mechanism, ' username="NAME" password="PASSWORD"')
        write = f"for {mechanism} write {LOGIN_MODULES[mechanism]} required{example};"
        section_hint = (
            f", and so is section {_SECTION} of {java.login_file}" if java.login_file else ""
        )
        raise ConfigError(f"{_JAAS} is missing{section_hint}: {write}")
    return section.source, options
