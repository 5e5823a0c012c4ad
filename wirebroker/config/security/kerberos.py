r"""Settings of GSSAPI: own principal, keytab or tickets, rules for clients' principals.

    sasl.kerberos.service.name=kafka
    listener.name.sasl_ssl.gssapi.sasl.jaas.config=com.sun.security.auth.module.Krb5LoginModule \
        required useKeyTab=true storeKey=true keyTab="/etc/kafka.keytab" principal="kafka/h@REALM";

A listener needs a keytab; outgoing logins can use a ticket cache instead (`kinit`).

Source: Kafka's KerberosLogin, SaslChannelBuilder; the JDK's Krb5LoginModule.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from wirebroker.config.rows.row import ConfigError
from wirebroker.config.security.kerberos_names import KerberosRule, kerberos_rules

if TYPE_CHECKING:
    from collections.abc import Mapping

    from wirebroker.config.values import Config

SERVICE_NAME: Final = "sasl.kerberos.service.name"
_RULES: Final = "sasl.kerberos.principal.to.local.rules"
# Without effect: keys are always kept, and there are no prompts.
_OF_NO_USE: Final = frozenset(
    {"storeKey", "doNotPrompt", "debug", "refreshKrb5Config", "renewTGT", "clearPass"}
    | {"useFirstPass", "tryFirstPass", "storePass", "isInitiator"}
)
_READ: Final = frozenset(
    {"useKeyTab", "keyTab", "principal", "useTicketCache", "ticketCache", "serviceName"}
)


@dataclass(slots=True, frozen=True, kw_only=True)
class KerberosKeys:
    """Own principal and its keys or tickets.

    Attributes:
        principal: "" for the owner of the tickets.
        keytab: None if tickets are used.
        ticket_cache: None for Kerberos' default.
        service_name: That of the remote brokers.
    """

    principal: str = ""
    keytab: str | None = None
    ticket_cache: str | None = None
    service_name: str | None = None


@dataclass(slots=True, frozen=True, kw_only=True)
class KerberosSettings:
    """How clients of a listener authenticate by Kerberos."""

    keys: KerberosKeys
    rules: tuple[KerberosRule, ...]


def kerberos_settings(
    config: Config, listener: str, options: Mapping[str, str], name: str
) -> KerberosSettings:
    """Return a listener's GSSAPI settings from its JAAS line, which setting `name` contains.

    Raises:
        ConfigError: They are invalid.
    """
    service = config.listener_value(listener, SERVICE_NAME)
    keys = kerberos_keys(options, str(service) if service else None, name)
    if keys.keytab is None:
        raise ConfigError(
            f'{name} cannot be used: a listener needs a keytab (useKeyTab=true keyTab="…")'
        )
    if "/" not in keys.principal.partition("@")[0]:
        raise ConfigError(
            f"{name} cannot be used: a listener's principal must be service/host@REALM, not "
            f"{keys.principal}"
        )
    texts = config.listener_value(listener, _RULES)
    assert isinstance(texts, tuple)
    try:
        return KerberosSettings(keys=keys, rules=kerberos_rules(texts))
    except ValueError as error:
        raise ConfigError(f"{_RULES} cannot be used: {error}") from None


def kerberos_keys(options: Mapping[str, str], service: str | None, name: str) -> KerberosKeys:
    """Return the principal and keys of a JAAS line; `service` is sasl.kerberos.service.name.

    Raises:
        ConfigError: They are invalid.
    """
    for option in options:
        if option not in _READ | _OF_NO_USE:
            raise ConfigError(f"{name} cannot be used: unknown option {option}")
    service_name = options.get("serviceName")
    if service_name and service and service_name != service:
        raise ConfigError(
            f"{name} has serviceName={service_name}, but {SERVICE_NAME} is {service}: "
            "make them equal"
        )
    is_by_key = _is_true(options, "useKeyTab")
    if is_by_key and not (options.get("keyTab") and options.get("principal")):
        raise ConfigError(f"{name} cannot be used: useKeyTab needs keyTab and principal")
    if not is_by_key and not _is_true(options, "useTicketCache"):
        raise ConfigError(f"{name} cannot be used: write useKeyTab=true or useTicketCache=true")
    return KerberosKeys(
        principal=options.get("principal", ""),
        keytab=_path(options["keyTab"]) if is_by_key else None,
        ticket_cache=None if is_by_key else _path(options.get("ticketCache", "")) or None,
        service_name=service_name or service,
    )


def _is_true(options: Mapping[str, str], option: str) -> bool:
    return options.get(option, "").lower() == "true"


def _path(text: str) -> str:
    return text.removeprefix("FILE:").removeprefix("file:")
