"""Lookup of a broker config's row by name, including values of a single listener.

    max.connections                                 of the broker
    listener.name.internal.max.connections          of its listener INTERNAL
    listener.name.internal.plain.sasl.jaas.config   of one of its SASL mechanisms

Source: Kafka's DynamicBrokerConfig.brokerConfigSynonyms.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from wirebroker.config.java.jaas import LOGIN_MODULES
from wirebroker.config.rows.row import ConfigType, Mutability, OfListener
from wirebroker.config.table import BROKER_ROWS, ROWS

if TYPE_CHECKING:
    from wirebroker.config.rows.row import ConfigRow

# The index is the protocol's number in registrations.
PROTOCOLS: Final = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
CONFIG_PROVIDERS: Final = "config.providers"
# Configs that are read per listener: all, with SASL, with TLS.
READ_PER_LISTENER: Final = tuple(
    name for name, row in BROKER_ROWS.items() if row.of_listener is OfListener.CLUSTER_WIDE
)
READ_PER_SASL_LISTENER: Final = (
    "connections.max.reauth.ms",
    "sasl.enabled.mechanisms",
    "sasl.jaas.config",
    "sasl.login.callback.handler.class",
    "sasl.login.connect.timeout.ms",
    "sasl.login.read.timeout.ms",
    "sasl.login.retry.backoff.max.ms",
    "sasl.login.retry.backoff.ms",
    "sasl.oauthbearer.client.credentials.client.id",
    "sasl.oauthbearer.client.credentials.client.secret",
    "sasl.oauthbearer.jwt.retriever.class",
    "sasl.oauthbearer.scope",
    "sasl.oauthbearer.token.endpoint.url",
    "sasl.kerberos.principal.to.local.rules",
    "sasl.kerberos.service.name",
    "sasl.oauthbearer.allow.unverified.audience",
    "sasl.oauthbearer.allow.unverified.issuer",
    "sasl.oauthbearer.clock.skew.seconds",
    "sasl.oauthbearer.expected.audience",
    "sasl.oauthbearer.expected.issuer",
    "sasl.oauthbearer.jwks.endpoint.refresh.ms",
    "sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms",
    "sasl.oauthbearer.jwks.endpoint.retry.backoff.ms",
    "sasl.oauthbearer.jwks.endpoint.url",
    "sasl.oauthbearer.scope.claim.name",
    "sasl.oauthbearer.sub.claim.name",
    "sasl.server.callback.handler.class",
)
_READ_PER_TLS_LISTENER: Final = tuple(name for name in BROKER_ROWS if name.startswith("ssl."))
# Kafka's ListenerMechanismConfigs.
_OF_A_MECHANISM: Final = (
    "connections.max.reauth.ms",
    "sasl.jaas.config",
    "sasl.login.callback.handler.class",
    "sasl.login.class",
    "sasl.server.callback.handler.class",
)
_OF_A_LISTENER: Final = re.compile(
    r"listener\.name\.[^.]*\.(?:([^.]+)\.(?=(?:"
    + "|".join(map(re.escape, _OF_A_MECHANISM))
    + r")$))?(.+)"
)


def listener_config(listener: str, name: str) -> str:
    """Return the name of a listener's own value."""
    return f"listener.name.{listener.lower()}.{name}"


def base_name(name: str) -> str:
    """Return the name without the prefix for a listener and SASL mechanism."""
    match = _OF_A_LISTENER.fullmatch(name)
    return match.group(2) if match else name


def mechanism_of(name: str) -> str | None:
    """Return the SASL mechanism, in capitals, of a listener's own value, or None."""
    match = _OF_A_LISTENER.fullmatch(name)
    return match.group(1).upper() if match and match.group(1) else None


def is_of_a_listener(name: str) -> bool:
    """Return whether the name is a listener's own value."""
    return _OF_A_LISTENER.fullmatch(name) is not None


def row_of(name: str) -> ConfigRow | None:
    """Return a broker config's row, or None."""
    return ROWS.get(base_name(name))


def is_read(name: str) -> bool:
    """Return whether some code reads the config."""
    if name == CONFIG_PROVIDERS or name.startswith(f"{CONFIG_PROVIDERS}."):
        return True
    base = base_name(name)
    if mechanism_of(name) not in (None, *LOGIN_MODULES):
        return False
    if is_of_a_listener(name):
        return base in (
            *READ_PER_LISTENER,
            *READ_PER_SASL_LISTENER,
            *_READ_PER_TLS_LISTENER,
        )
    return base in BROKER_ROWS


def is_read_only(name: str) -> bool:
    """Return whether Kafka refuses to change the config at run time."""
    row = ROWS.get(name)
    return row is not None and row.mutability is Mutability.READ_ONLY


def is_list(name: str) -> bool:
    """Return whether AlterConfigs may append to and subtract from a config."""
    row = ROWS.get(name)
    return row is not None and row.type is ConfigType.LIST
