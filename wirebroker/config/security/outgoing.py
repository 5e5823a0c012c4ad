"""How we show others who we are: brokers, controllers, and (for the command line) any Kafka.

    security.inter.broker.protocol=SASL_SSL
    sasl.mechanism.inter.broker.protocol=SCRAM-SHA-512
    listener.name.sasl_ssl.scram-sha-512.sasl.jaas.config=… username="broker" password="…";

Of a broker the listener that others are reached by tells protocol, keys and login, as Kafka has it:
that of inter.broker.listener.name between brokers, the first of controller.listener.names to
controllers.

What describes keys and logins is imported where there are some: most nodes have none.

A leaf.  Source: Kafka's ChannelBuilders, BrokerSecurityConfigs, JaasContext.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from wirebroker.config.java.jaas import PASSWORD_MECHANISMS
from wirebroker.config.java.java_options import ALLOWED_URLS
from wirebroker.config.rows.row import ConfigError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from wirebroker.config.rows.row import ConfigValue
    from wirebroker.config.security.kerberos import KerberosKeys
    from wirebroker.config.security.oauth_login import OAuthLogin
    from wirebroker.config.security.tls import TlsSettings
    from wirebroker.config.values import Config

# By which we log in elsewhere.
LOGIN_MECHANISMS: Final = (*PASSWORD_MECHANISMS, "OAUTHBEARER", "GSSAPI")


@dataclass(slots=True, frozen=True, kw_only=True)
class Login:
    """Who we say we are.

    Attributes:
        mechanism: Of SASL.
        user: Our name.
        password: Ours.
        kerberos: What we have in place of a password, by GSSAPI.
        oauth: Likewise, by OAUTHBEARER.
        by_token: Whether they are a delegation token's id and HMAC.
    """

    mechanism: str
    user: str
    password: str = field(default="", repr=False)
    kerberos: KerberosKeys | None = None
    oauth: OAuthLogin | None = None
    by_token: bool = False


@dataclass(slots=True, frozen=True, kw_only=True)
class OutgoingSecurity:
    """How connections that we open are protected; without anything, not at all.

    Attributes:
        tls: None for plain text.
        login: None if nobody asks who we are.
    """

    tls: TlsSettings | None = None
    login: Login | None = None


def outgoing_security(
    config: Config, *, listener: str, protocol: str, mechanism: str
) -> OutgoingSecurity:
    """Return how others' listeners of a name are spoken to.

    Args:
        config: This node's.
        listener: The name, in capitals.
        protocol: One of lookup.PROTOCOLS.
        mechanism: Of SASL, if the protocol has it.

    Raises:
        ConfigError: Something is missing, or not served.
    """
    tls = None
    if protocol.endswith("SSL"):
        from wirebroker.config.security.tls import outgoing_tls_settings  # noqa: PLC0415 - see above

        tls = outgoing_tls_settings(config, listener)
    login = _login(config, listener, mechanism) if protocol.startswith("SASL_") else None
    return OutgoingSecurity(tls=tls, login=login)


def _login(config: Config, listener: str, mechanism: str) -> Login:
    if mechanism not in LOGIN_MECHANISMS:
        served = ", ".join(LOGIN_MECHANISMS)
        raise ConfigError(f"{listener}: others are logged in to by {served}, not by {mechanism}")
    from wirebroker.config.security.listener_login import listener_login  # noqa: PLC0415 - see above

    source, options = listener_login(config, listener, mechanism)
    if options is None:
        raise ConfigError(f"{source}: it says who we are")
    return login_of(
        options,
        mechanism,
        source,
        setting=lambda each: config.listener_value(listener, each, mechanism=mechanism),
        allowed=config.list(ALLOWED_URLS),
    )


def login_of(
    options: Mapping[str, str],
    mechanism: str,
    name: str,
    *,
    setting: Callable[[str], ConfigValue],
    allowed: tuple[str, ...] | None = None,
) -> Login:
    """Return who the options of a login module say that we are.

    Args:
        options: Of the mechanism's login module; no value is in what is raised.
        mechanism: Of SASL, one of LOGIN_MECHANISMS.
        name: Where they are configured, for the error.
        setting: Returns another setting, None if it is unset.
        allowed: Web servers that may be asked for tokens; None for any.

    Raises:
        ConfigError: An option is missing or cannot be used.
    """
    if mechanism == "GSSAPI":
        from wirebroker.config.security.kerberos import SERVICE_NAME, kerberos_keys  # noqa: PLC0415

        service = setting(SERVICE_NAME)
        keys = kerberos_keys(options, str(service) if service else None, name)
        if not keys.service_name:
            raise ConfigError(f"{SERVICE_NAME} is missing: it says what brokers are called")
        return Login(mechanism=mechanism, user=keys.principal, kerberos=keys)
    if mechanism == "OAUTHBEARER":
        from wirebroker.config.security.oauth_login import oauth_login  # noqa: PLC0415 - see above

        own = oauth_login(options, setting, name, allowed=allowed)
        return Login(mechanism=mechanism, user=own.client_id or "us", oauth=own)
    if "username" not in options or "password" not in options:
        raise ConfigError(f"{name} cannot be used: username and password are missing")
    return Login(
        mechanism=mechanism,
        user=options["username"],
        password=options["password"],
        by_token=mechanism != "PLAIN" and options.get("tokenauth", "").lower() == "true",
    )
