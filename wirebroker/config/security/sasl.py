"""What a listener with SASL is told: mechanisms, users of PLAIN, how long a login holds.

    sasl.enabled.mechanisms=SCRAM-SHA-512,PLAIN
    listener.name.inside.sasl.enabled.mechanisms=PLAIN                of one listener
    listener.name.inside.plain.sasl.jaas.config=… user_alice="…";     of one of its mechanisms

Users of SCRAM stand in the cluster's metadata, so its JAAS line may be left out.

A leaf.  Source: Kafka's BrokerSecurityConfigs, JaasContext, SaslChannelBuilder.
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
# What a mechanism's line says that has to have one.
_OF_THE_LINE: Final = {
    "PLAIN": "the users of PLAIN",
    _OAUTH: "the login module of OAUTHBEARER",
    _KERBEROS: "the broker's principal and the file of its keys",
}


@dataclass(slots=True, frozen=True, kw_only=True)
class SaslSettings:
    """How clients of one listener authenticate.

    Attributes:
        mechanisms: Those that are offered, in the order in which they are written.
        passwords: Of the users of PLAIN.
        oauth: What tokens have to be; None if there are none.
        kerberos: What GSSAPI goes by; None if it is not offered.
        reauthentication_ms: By mechanism, after how long clients authenticate again; 0 is never.
        most_bytes: Of a request before that.
        failure_delay_ms: How long a client that failed waits for its answer.
    """

    mechanisms: tuple[str, ...]
    passwords: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    oauth: OAuthSettings | None = None
    kerberos: KerberosSettings | None = None
    reauthentication_ms: Mapping[str, int] = field(default_factory=dict[str, int])
    most_bytes: int = 524_288
    failure_delay_ms: int = 100


def sasl_settings(config: Config, listener: str) -> SaslSettings:
    """Return what a listener with SASL is told.

    Raises:
        ConfigError: It cannot be used; no secret is in the text.
    """
    mechanisms = config.listener_value(listener, "sasl.enabled.mechanisms")
    assert isinstance(mechanisms, tuple)
    if not mechanisms:
        name = _set_name(config, listener, "sasl.enabled.mechanisms")
        raise ConfigError(f"{name} is empty: {listener} would let nobody in")
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
            from wirebroker.config.security.oauth import oauth_settings  # noqa: PLC0415 - few listeners'

            oauth = oauth_settings(config, listener, options)
        elif mechanism == _KERBEROS:
            from wirebroker.config.security.kerberos import kerberos_settings  # noqa: PLC0415 - likewise

            kerberos = kerberos_settings(config, listener, options, source)
    return SaslSettings(
        mechanisms=tuple(dict.fromkeys(mechanisms)),
        passwords=passwords,
        oauth=oauth,
        kerberos=kerberos,
        reauthentication_ms={
            each: _reauthentication(config, listener, each) for each in mechanisms
        },
        most_bytes=config.int("sasl.server.max.receive.size"),
        failure_delay_ms=config.int("connection.failed.authentication.delay.ms"),
    )


def _options(config: Config, listener: str, mechanism: str) -> tuple[str, dict[str, str]]:
    source, options = listener_login(config, listener, mechanism)
    if options is None and mechanism in _OF_THE_LINE:
        raise ConfigError(f"{source}: it names {_OF_THE_LINE[mechanism]}")
    return source, options or {}


def _reauthentication(config: Config, listener: str, mechanism: str) -> int:
    value = config.listener_value(listener, "connections.max.reauth.ms", mechanism=mechanism)
    assert isinstance(value, int)
    return max(0, value)


def _set_name(config: Config, listener: str, name: str) -> str:
    own = listener_config(listener, name)
    return own if config.is_set(own) else name


def check_between_brokers(config: Config, listener: str, mechanisms: tuple[str, ...]) -> None:
    """Check the mechanism of other brokers, if they use a listener with SASL.

    Raises:
        ConfigError: The listener does not offer it.
    """
    wanted = config.str("sasl.mechanism.inter.broker.protocol")
    if config.is_set("sasl.mechanism.inter.broker.protocol") and wanted not in mechanisms:
        raise ConfigError(
            f"sasl.mechanism.inter.broker.protocol={wanted} cannot be used: {listener}, the "
            f"brokers' listener, offers {', '.join(mechanisms)}"
        )
