"""Refusal to start if settings require protection that the broker does not provide.

Otherwise the broker would be open while its owner believes that it is protected. It starts only
with `--unprotected`.

Unknown names in `ssl.` and `sasl.` count, as do policies that restrict what clients may create or
alter. For other names, the table's rows decide (`asks`). Empty values and Kafka's defaults do not
count.

Source: the defaults that Apache Kafka 4.4.0 shows by DescribeConfigs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from wirebroker.base.text import few_of
from wirebroker.config.lookup import base_name, is_read, mechanism_of
from wirebroker.config.rows.row import StartError
from wirebroker.config.table import ROWS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from wirebroker.config.rows.settings import Settings

SWITCH: Final = "wirebroker.unprotected"

_RUN_OPEN: Final = f"allow anyone who can connect to do everything (--unprotected, {SWITCH}=true)"
# No flag removes the protection of a cluster.
_JOIN_OPEN: Final = f"allow anyone who can connect to do everything ({SWITCH}=true)"
_THEM: Final = ("it", "them")
_MOST_SHOWN: Final = 5
_PREFIXES: Final = ("ssl.", "sasl.")
# Names of older Kafka versions, with the value that does not count.
_DEFAULTS_OF_OTHERS: Final[Mapping[str, str]] = {
    "delegation.token.master.key": "",
    "password.encoder.old.secret": "",
    "password.encoder.secret": "",
}
# Times of Java's renewals of logins, which protect nothing.
_OF_RENEWALS: Final = ("sasl.kerberos.ticket.renew.", "sasl.login.refresh.")
_ONE_OF_RENEWALS: Final = frozenset(
    {"sasl.kerberos.kinit.cmd", "sasl.kerberos.min.time.before.relogin"}
)

# With the value that does not count.
_OF_AUTHORIZERS: Final[Mapping[str, str]] = {
    "allow.everyone.if.no.acl.found": "true",
    "super.users": "",
}


def asking_names(settings: Mapping[str, str]) -> tuple[str, ...]:
    """Return the names that require protection, sorted."""
    asking = {name for name, value in settings.items() if _requests_protection(name, value)}
    if not settings.get("authorizer.class.name"):
        # They count only if no authorizer reads them.
        asking |= {
            name
            for name, harmless in _OF_AUTHORIZERS.items()
            if settings.get(name, "").strip().casefold() not in {"", harmless}
        }
    return tuple(sorted(asking))


def is_about_protection(name: str) -> bool:
    """Return whether a name, without its listener, can require protection."""
    if name in _ONE_OF_RENEWALS or name.startswith(_OF_RENEWALS):
        return False
    row = ROWS.get(name)
    return (
        name in _DEFAULTS_OF_OTHERS or name.startswith(_PREFIXES) or (row is not None and row.asks)
    )


def check_protection(config: Settings) -> None:
    """Refuse to start if protection is required and not available.

    Raises:
        StartError: The configuration does not allow it.
    """
    if config.protection_requested and not config.bool(SWITCH):
        raise StartError(
            f"{_asking(config.protection_requested)} protection that is not available",
            f"remove {_THEM[len(config.protection_requested) > 1]}, or {_RUN_OPEN}",
        )


def check_directory(kinds: Sequence[str], path: str, config: Settings) -> None:
    """Refuse a directory whose metadata contains protection that would not be in force.

    `kinds` names the protection for messages ("ACLs").

    Raises:
        StartError: The configuration does not allow it.
    """
    if kinds and not config.bool(SWITCH):
        raise StartError(
            f"{path} contains {', '.join(kinds)}, which would not be enforced",
            f"{_instead(kinds, 'start Apache Kafka on it')}, or {_RUN_OPEN}",
        )


def check_cluster(kinds: Sequence[str], config: Settings) -> None:
    """Refuse to join a cluster whose protection this broker would not enforce.

    Raises:
        StartError: As for check_directory.
    """
    if kinds and not config.bool(SWITCH):
        raise StartError(
            f"the cluster has {', '.join(kinds)}, which this broker would not enforce",
            f"{_instead(kinds, 'join a cluster without them')}, or {_JOIN_OPEN}",
        )


def _instead(kinds: Sequence[str], otherwise: str) -> str:
    return "set authorizer.class.name" if kinds == ("ACLs",) else otherwise


def unprotected_warning(config: Settings) -> str | None:
    """Return the warning about ignored settings, or None."""
    if not config.protection_requested:
        return None
    return (
        f"running unprotected because of {SWITCH}: "
        f"{_asking(config.protection_requested)} protection that is not available"
    )


def _requests_protection(whole_name: str, value: str) -> bool:
    name = base_name(whole_name)
    normalized = value.replace(" ", "").casefold()
    if not normalized or not is_about_protection(name) or _is_in_force(whole_name):
        return False
    row = ROWS.get(name)
    harmless = _DEFAULTS_OF_OTHERS.get(name, "") if row is None else row.default or ""
    return normalized != harmless.casefold()


def _is_in_force(name: str) -> bool:
    if base_name(name) == "sasl.jaas.config" and mechanism_of(name) is None:
        return False  # as in Kafka, no code reads it
    return is_read(name)


def _asking(names: tuple[str, ...]) -> str:
    return f"{few_of(names, _MOST_SHOWN)} {'requires' if len(names) == 1 else 'require'}"
