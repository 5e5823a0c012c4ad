"""Credentials of outgoing connections.

    security.inter.broker.protocol=SASL_SSL
    sasl.mechanism.inter.broker.protocol=SCRAM-SHA-512
    listener.name.sasl_ssl.scram-sha-512.sasl.jaas.config=… username="broker" password="…";

As in Kafka, they come from the settings of the remote listener: inter.broker.listener.name for
brokers, the first of controller.listener.names for controllers.

Source: Kafka's ChannelBuilders, BrokerSecurityConfigs, JaasContext.
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

LOGIN_MECHANISMS: Final = (*PASSWORD_MECHANISMS, "OAUTHBEARER", "GSSAPI")


@dataclass(slots=True, frozen=True, kw_only=True)
class Login:
    """Credentials of an outgoing connection.

    Attributes:
        by_token: Whether user and password are a delegation token's id and HMAC.
    """

    mechanism: str
    user: str
    password: str = field(default="", repr=False)
    kerberos: KerberosKeys | None = None
    oauth: OAuthLogin | None = None
    by_token: bool = False


@dataclass(slots=True, frozen=True, kw_only=True)
class OutgoingSecurity:
    """Protection of an outgoing connection."""

    tls: TlsSettings | None = None
    login: Login | None = None


def outgoing_security(
    config: Config, *, listener: str, protocol: str, mechanism: str
) -> OutgoingSecurity:
    """Return the security of connections to other nodes' listeners of a name.

    Raises:
        ConfigError: A setting is missing or not supported.
    """
    tls = None
    if protocol.endswith("SSL"):
        from wirebroker.config.security.tls import outgoing_tls_settings  # noqa: PLC0415

        tls = outgoing_tls_settings(config, listener)
    login = _login(config, listener, mechanism) if protocol.startswith("SASL_") else None
    return OutgoingSecurity(tls=tls, login=login)


def _login(config: Config, listener: str, mechanism: str) -> Login:
    if mechanism not in LOGIN_MECHANISMS:
        served = ", ".join(LOGIN_MECHANISMS)
        raise ConfigError(
            f"{listener}: {mechanism!r} is not supported for outgoing connections; use {served}"
        )
    from wirebroker.config.security.listener_login import listener_login  # noqa: PLC0415

    source, options = listener_login(config, listener, mechanism)
    if options is None:
        raise ConfigError(f"{source}: it contains this node's credentials")
    return login_of(
        options,
        mechanism,
        source,
        setting=lambda setting_name: config.listener_value(
            listener, setting_name, mechanism=mechanism
        ),
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
    """Return the credentials in a login module's options; see oauth_login.

    Raises:
        ConfigError: An option is missing or invalid; the text contains no values.
    """
    if mechanism == "GSSAPI":
        from wirebroker.config.security.kerberos import SERVICE_NAME, kerberos_keys  # noqa: PLC0415

        service = setting(SERVICE_NAME)
        keys = kerberos_keys(options, str(service) if service else None, name)
        if not keys.service_name:
            raise ConfigError(f"{SERVICE_NAME} is missing: set it to the brokers' service name")
        return Login(mechanism=mechanism, user=keys.principal, kerberos=keys)
    if mechanism == "OAUTHBEARER":
        from wirebroker.config.security.oauth_login import oauth_login  # noqa: PLC0415

        own = oauth_login(options, setting, name, allowed=allowed)
        return Login(mechanism=mechanism, user=own.client_id or "us", oauth=own)
    if "username" not in options or "password" not in options:
        raise ConfigError(f"{name} cannot be used: username or password is missing")
    return Login(
        mechanism=mechanism,
        user=options["username"],
        password=options["password"],
        by_token=mechanism != "PLAIN" and options.get("tokenauth", "").lower() == "true",
    )
