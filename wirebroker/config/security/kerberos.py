"""What GSSAPI is told: who we are to Kerberos, where our key is, whom principals stand for.

    sasl.kerberos.service.name=kafka
    listener.name.sasl_ssl.gssapi.sasl.jaas.config=com.sun.security.auth.module.Krb5LoginModule \
        required useKeyTab=true storeKey=true keyTab="/etc/kafka.keytab" principal="kafka/h@REALM";

A listener needs a keytab; who logs in elsewhere may have a cache of tickets instead (`kinit`).
Realms and their servers stand in krb5.conf, which Kerberos reads itself.

A leaf.  Source: Kafka's KerberosLogin, SaslChannelBuilder; the JDK's Krb5LoginModule.
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
# Options that change nothing here: keys are always kept, and nobody is there to be asked.
_OF_NO_USE: Final = frozenset(
    {"storeKey", "doNotPrompt", "debug", "refreshKrb5Config", "renewTGT", "clearPass"}
    | {"useFirstPass", "tryFirstPass", "storePass", "isInitiator"}
)
_READ: Final = frozenset(
    {"useKeyTab", "keyTab", "principal", "useTicketCache", "ticketCache", "serviceName"}
)


@dataclass(slots=True, frozen=True, kw_only=True)
class KerberosKeys:
    """Who we are, and what proves it.

    Attributes:
        principal: Ours; "" for whosever the tickets are.
        keytab: A file of keys; None: tickets are used.
        ticket_cache: Where tickets are; None: where Kerberos has them by itself.
        service_name: Of the brokers that are logged in to; None if nothing says it.
    """

    principal: str = ""
    keytab: str | None = None
    ticket_cache: str | None = None
    service_name: str | None = None


@dataclass(slots=True, frozen=True, kw_only=True)
class KerberosSettings:
    """How clients of a listener authenticate by Kerberos.

    Attributes:
        keys: The listener's.
        rules: From principals to users.
    """

    keys: KerberosKeys
    rules: tuple[KerberosRule, ...]


def kerberos_settings(
    config: Config, listener: str, options: Mapping[str, str], name: str
) -> KerberosSettings:
    """Return what a listener with GSSAPI is told.

    Args:
        config: All that is set.
        listener: Which.
        options: Of its JAAS line.
        name: Of the setting that has the line, for errors.

    Raises:
        ConfigError: It cannot be used.
    """
    service = config.listener_value(listener, SERVICE_NAME)
    keys = kerberos_keys(options, str(service) if service else None, name)
    if keys.keytab is None:
        raise ConfigError(f'{name} cannot be used: a listener needs useKeyTab=true keyTab="…"')
    if "/" not in keys.principal.partition("@")[0]:
        raise ConfigError(
            f"{name} cannot be used: a listener's principal is service/host@REALM, "
            f"not {keys.principal}"
        )
    texts = config.listener_value(listener, _RULES)
    assert isinstance(texts, tuple)
    try:
        return KerberosSettings(keys=keys, rules=kerberos_rules(texts))
    except ValueError as error:
        raise ConfigError(f"{_RULES} cannot be used: {error}") from None


def kerberos_keys(options: Mapping[str, str], service: str | None, name: str) -> KerberosKeys:
    """Return who a JAAS line says that we are.

    Args:
        options: The line's.
        service: What sasl.kerberos.service.name says.
        name: Of the setting that has the line, for errors.

    Raises:
        ConfigError: It cannot be used.
    """
    for option in options:
        if option not in _READ | _OF_NO_USE:
            raise ConfigError(f"{name} cannot be used: there is no option {option} of Kerberos")
    said = options.get("serviceName")
    if said and service and said != service:
        raise ConfigError(f"{name} says serviceName={said}, and {SERVICE_NAME} is {service}")
    is_by_key = _is_true(options, "useKeyTab")
    if is_by_key and not (options.get("keyTab") and options.get("principal")):
        raise ConfigError(f"{name} cannot be used: useKeyTab needs keyTab and principal")
    if not is_by_key and not _is_true(options, "useTicketCache"):
        raise ConfigError(f"{name} cannot be used: write useKeyTab=true or useTicketCache=true")
    return KerberosKeys(
        principal=options.get("principal", ""),
        keytab=_path(options["keyTab"]) if is_by_key else None,
        ticket_cache=None if is_by_key else _path(options.get("ticketCache", "")) or None,
        service_name=said or service,
    )


def _is_true(options: Mapping[str, str], option: str) -> bool:
    return options.get(option, "").lower() == "true"


def _path(text: str) -> str:
    """Return a file's path, as Kerberos has it: Java's lines may write FILE: before it."""
    return text.removeprefix("FILE:").removeprefix("file:")
