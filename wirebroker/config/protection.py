"""Settings of Kafka's that ask for protection which this broker doesn't give yet.

A broker that were told to authenticate, authorize, encrypt or limit and ran without would be open
while its owner believes it closed. So it doesn't start; `--unprotected` says that it may. What
spells out Kafka's default, or is empty, asks for nothing, nor does what is there: SASL. Listeners
that need TLS are listeners.py's to refuse: those can't be opened at all.

Counted in are names under `listener.name.<listener>.`, names in `ssl.` and `sasl.` that Kafka
doesn't know itself (its container images have some), and the policies that restrict what clients
may create or alter. Not counted in are sizes, times and windows that mean nothing without the
setting they belong to (*.quota.window.*). The table's rows say which of the
other names ask (`asks`); Kafka's default stands there too.

A leaf.  Source: the defaults that Apache Kafka 4.4.0 shows by DescribeConfigs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from wirebroker.base.wording import few_of
from wirebroker.config.lookup import base_name, is_read, mechanism_of
from wirebroker.config.rows.row import StartError
from wirebroker.config.table import ROWS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from wirebroker.config.values import Config

SWITCH: Final = "wirebroker.unprotected"

_RUN_OPEN: Final = f"let whoever can connect do everything (--unprotected, {SWITCH}=true)"
# A cluster's protection: no flag takes a hole of it for granted.
_JOIN_OPEN: Final = f"let whoever can connect do everything ({SWITCH}=true)"
_THEM: Final = ("it", "them")
_MOST_SHOWN: Final = 5
# Any other value than the default of any name that begins so asks.
_PREFIXES: Final = ("ssl.", "sasl.")
# Names of older Kafkas, which the table has no rows for, with the
# value that asks for nothing.
_OTHERS: Final[Mapping[str, str]] = {
    "delegation.token.master.key": "",
    "password.encoder.old.secret": "",
    "password.encoder.secret": "",
}
# How logins are renewed in Java: their times protect nothing, and ours are renewed otherwise.
_OF_RENEWALS: Final = ("sasl.kerberos.ticket.renew.", "sasl.login.refresh.")
_ONE_OF_RENEWALS: Final = frozenset(
    {"sasl.kerberos.kinit.cmd", "sasl.kerberos.min.time.before.relogin"}
)

# What only an authorizer reads, with the value that asks for nothing.
_OF_AUTHORIZERS: Final[Mapping[str, str]] = {
    "allow.everyone.if.no.acl.found": "true",
    "super.users": "",
}


def asking_names(settings: Mapping[str, str]) -> tuple[str, ...]:
    """Return the names among `settings` that ask for protection, in order."""
    asking = {name for name, value in settings.items() if _asks(name, value)}
    if not settings.get("authorizer.class.name"):
        # Without an authorizer nobody goes by them: then they ask for what is not there.
        asking |= {
            name
            for name, harmless in _OF_AUTHORIZERS.items()
            if settings.get(name, "").strip().casefold() not in {"", harmless}
        }
    return tuple(sorted(asking))


def is_about_protection(name: str) -> bool:
    """Tell whether a name, without its listener, is one that may ask for protection."""
    if name in _ONE_OF_RENEWALS or name.startswith(_OF_RENEWALS):
        return False
    row = ROWS.get(name)
    return name in _OTHERS or name.startswith(_PREFIXES) or (row is not None and row.asks)


def check_protection(config: Config) -> None:
    """Refuse to start open where protection was asked for.

    Raises:
        StartError: It was, and nobody said that the broker may run without.
    """
    if config.protection_asked and not config.bool(SWITCH):
        raise StartError(
            f"{_asking(config.protection_asked)} for protection that is not there yet",
            f"take {_THEM[len(config.protection_asked) > 1]} out, or {_RUN_OPEN}",
        )


def check_directory(kinds: Sequence[str], path: str, config: Config) -> None:
    """Refuse to open a directory whose metadata holds protection that would not be in force.

    Args:
        kinds: What it holds, for people ("ACLs").
        path: Where the metadata lies.
        config: Whether it may be opened nevertheless.

    Raises:
        StartError: It may not.
    """
    if kinds and not config.bool(SWITCH):
        raise StartError(
            f"{path} holds {', '.join(kinds)}: that is protection that is not there yet",
            f"{_instead(kinds, 'start Apache Kafka on it')}, or {_RUN_OPEN}",
        )


def check_cluster(kinds: Sequence[str], config: Config) -> None:
    """Refuse to join a cluster whose protection would end at this broker.

    Args:
        kinds: What its metadata holds, for people ("ACLs").
        config: Whether it may be joined nevertheless.

    Raises:
        StartError: It may not.
    """
    if kinds and not config.bool(SWITCH):
        raise StartError(
            f"the cluster holds {', '.join(kinds)}, and this broker would be the way around them",
            f"{_instead(kinds, 'join a cluster without')}, or {_JOIN_OPEN}",
        )


def _instead(kinds: Sequence[str], otherwise: str) -> str:
    return "set authorizer.class.name" if kinds == ("ACLs",) else otherwise


def unprotected_warning(config: Config) -> str | None:
    """Return the line that says which settings are passed over, if any are."""
    if not config.protection_asked:
        return None
    return f"running open, as {SWITCH} says: {_asking(config.protection_asked)} for protection"


def _asks(whole_name: str, value: str) -> bool:
    name = base_name(whole_name)
    said = value.replace(" ", "").casefold()
    if not said or not is_about_protection(name) or _is_in_force(whole_name):
        return False
    row = ROWS.get(name)
    harmless = _OTHERS.get(name, "") if row is None else row.default or ""
    return said != harmless.casefold()


def _is_in_force(name: str) -> bool:
    """Tell whether what a config asks for is there: then listeners.py checks how."""
    if base_name(name) == "sasl.jaas.config" and mechanism_of(name) is None:
        return False  # as in Kafka, no code reads it
    return is_read(name)


def _asking(names: tuple[str, ...]) -> str:
    return f"{few_of(names, _MOST_SHOWN)} {'asks' if len(names) == 1 else 'ask'}"
