"""SASL settings of a listener: mechanisms, users of PLAIN, reauthentication.

    sasl.enabled.mechanisms=SCRAM-SHA-512,PLAIN
    listener.name.inside.sasl.enabled.mechanisms=PLAIN                of one listener
    listener.name.inside.plain.sasl.jaas.config=… user_alice="…";     of one of its mechanisms

SCRAM's users are in the cluster's metadata.

Source: Kafka's BrokerSecurityConfigs, JaasContext, SaslChannelBuilder.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from wirebroker.config.lookup import listener_config
from wirebroker.config.rows.row import ConfigError
from wirebroker.config.security.listener_login import listener_login

if TYPE_CHECKING:
    from collections.abc import Mapping

    from wirebroker.config.security.kerberos import KerberosSettings
    from wirebroker.config.security.oauth import OAuthSettings
    from wirebroker.config.values import Config

_USER: Final = "user_"
_OAUTH: Final = "OAUTHBEARER"
_KERBEROS: Final = "GSSAPI"
_OF_THE_LINE: Final = {
    "PLAIN": "the users of PLAIN",
    _OAUTH: "the login module of OAUTHBEARER",
    _KERBEROS: "the broker's principal and its keytab",
}


@dataclass(slots=True, frozen=True, kw_only=True)
class SaslSettings:
    """How clients of one listener authenticate.

    Attributes:
        mechanisms: In their configured order.
        reauthentication_ms: Time after which clients reauthenticate, by mechanism; 0 is never.
        most_bytes: Largest request before authentication.
    """

    mechanisms: tuple[str, ...]
    passwords: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    oauth: OAuthSettings | None = None
    kerberos: KerberosSettings | None = None
    reauthentication_ms: Mapping[str, int] = field(default_factory=dict[str, int])
    most_bytes: int = 524_288
    failure_delay_ms: int = 100


def sasl_settings(config: Config, listener: str) -> SaslSettings:
    """Return the SASL settings of a listener.

    Raises:
        ConfigError: They are invalid; the text contains no secret.
    """
    mechanisms = config.listener_value(listener, "sasl.enabled.mechanisms")
    assert isinstance(mechanisms, tuple)
    if not mechanisms:
        name = _set_name(config, listener, "sasl.enabled.mechanisms")
        raise ConfigError(f"{name} is empty: no client could authenticate at {listener}")
    passwords: dict[str, str] = {}
    oauth: OAuthSettings | None = None
    kerberos: KerberosSettings | None = None
    for mechanism in mechanisms:
        source, options = _options(config, listener, mechanism)
        if mechanism == "PLAIN":
            passwords = {
                option.removeprefix(_USER): password
                for option, password in options.items()
                if option.startswith(_USER)
            }
        elif mechanism == _OAUTH:
            from wirebroker.config.security.oauth import oauth_settings  # noqa: PLC0415

            oauth = oauth_settings(config, listener, options)
        elif mechanism == _KERBEROS:
            from wirebroker.config.security.kerberos import kerberos_settings  # noqa: PLC0415

            kerberos = kerberos_settings(config, listener, options, source)
    return SaslSettings(
        mechanisms=tuple(dict.fromkeys(mechanisms)),
        passwords=passwords,
        oauth=oauth,
        kerberos=kerberos,
        reauthentication_ms={
            mechanism: _reauthentication(config, listener, mechanism) for mechanism in mechanisms
        },
        most_bytes=config.int("sasl.server.max.receive.size"),
        failure_delay_ms=config.int("connection.failed.authentication.delay.ms"),
    )


def _options(config: Config, listener: str, mechanism: str) -> tuple[str, dict[str, str]]:
    source, options = listener_login(config, listener, mechanism)
    if options is None and mechanism in _OF_THE_LINE:
        raise ConfigError(f"{source}: it contains {_OF_THE_LINE[mechanism]}")
    return source, options or {}


def _reauthentication(config: Config, listener: str, mechanism: str) -> int:
    value = config.listener_value(listener, "connections.max.reauth.ms", mechanism=mechanism)
    assert isinstance(value, int)
    return max(0, value)


def _set_name(config: Config, listener: str, name: str) -> str:
    own = listener_config(listener, name)
    return own if config.is_set(own) else name


def check_between_brokers(config: Config, listener: str, mechanisms: tuple[str, ...]) -> None:
    """Check that a listener offers the mechanism for other brokers.

    Raises:
        ConfigError: It does not.
    """
    mechanism = config.str("sasl.mechanism.inter.broker.protocol")
    if config.is_set("sasl.mechanism.inter.broker.protocol") and mechanism not in mechanisms:
        raise ConfigError(
            f"sasl.mechanism.inter.broker.protocol={mechanism} cannot be used: {listener}, the "
            f"listener between brokers, offers {', '.join(mechanisms)}"
        )
