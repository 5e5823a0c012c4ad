r"""sasl.kerberos.principal.to.local.rules: from a Kerberos principal to the name of a user.

    kafka/host.example.org@EXAMPLE.ORG        service, host, realm; alice@EXAMPLE.ORG has no host

    DEFAULT                                   the first part, of the default realm's principals
    RULE:[1:$1@$0](.*@OTHER\.ORG)s/@.*//L     [parts:form](what the form has to fit)s/from/to/g L U

`$0` is the realm, `$1` and `$2` are the parts. The first rule that applies gives the name; if none
does, or what it gives has a `/` or an `@` left, the client is refused.

A leaf.  Source: Kafka's KerberosShortNamer, KerberosRule, KerberosName.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from wirebroker.config.java.patterns import java_pattern
from wirebroker.config.java.replacements import JavaReplacement

# Texts: re compiles them at their first use and keeps them; most brokers have no rules.
_NAME: Final = r"([^/@]*)(?:/([^/@]*))?@([^/@]*)"
_RULE: Final = (
    r"(?P<default>DEFAULT)|RULE:\[(?P<parts>[0-9]+):(?P<form>[^\]]*)\](?:\((?P<fits>[^)]*)\))?"
    r"(?:s/(?P<from>[^/]*)/(?P<to>[^/]*)/(?P<all>g)?)?/?(?P<letters>[LU])?"
)
_PART: Final = re.compile(r"([^$]*)(\$([0-9]*))?")
_MOST_PARTS: Final = 1 << 31


class NoUserError(Exception):
    """A principal that no rule makes a user of; the text says why."""


class KerberosRule(NamedTuple):
    """One rule; without parts it is DEFAULT.

    Attributes:
        parts: How many a principal has that this is about, without its realm; None: DEFAULT.
        form: What is made of them.
        fits: What has to fit that, whole; None: anything does.
        replacement: Replaces what a pattern finds in it; None: nothing does.
        replaces_all: Whether each place is replaced, or the first.
        letters: "L", "U", or "" for no change.
    """

    parts: int | None = None
    form: str = ""
    fits: re.Pattern[str] | None = None
    replacement: JavaReplacement | None = None
    replaces_all: bool = False
    letters: str = ""


def kerberos_rules(texts: tuple[str, ...]) -> tuple[KerberosRule, ...]:
    """Read rules.

    Raises:
        ValueError: The text says why, as the end of a sentence.
    """
    return tuple(_rule(each) for each in texts)


def user_of(principal: str, rules: tuple[KerberosRule, ...], default_realm: str) -> str:
    """Return the name of a principal's user.

    Args:
        principal: `alice@REALM`, `service/host@REALM`; without a realm it is the user's name.
        rules: In order.
        default_realm: Whose principals DEFAULT is about.

    Raises:
        NoUserError: It has none.
    """
    found = re.fullmatch(_NAME, principal)
    if found is None:
        if "@" in principal:
            raise NoUserError(f"{principal[:256]!r} is no name of Kerberos")
        return principal
    service, host, realm = found.groups()
    parts = [realm, service] if host is None else [realm, service, host]
    for rule in rules:
        name = _applied(rule, parts, default_realm)
        if name is not None:
            return name
    raise NoUserError(f"no rule of sasl.kerberos.principal.to.local.rules fits {principal[:256]!r}")


def _rule(text: str) -> KerberosRule:
    found = re.fullmatch(_RULE, text)
    if found is None:
        raise ValueError(f"{text} is no rule: write RULE:[parts:form](pattern)s/from/to/, DEFAULT")
    if found["default"]:
        return KerberosRule()
    if int(found["parts"]) >= _MOST_PARTS:
        raise ValueError(f"{text}: no principal has {found['parts']} parts")
    pattern = None if found["from"] is None else java_pattern(found["from"])
    return KerberosRule(
        int(found["parts"]),
        found["form"],
        None if found["fits"] is None else java_pattern(found["fits"]),
        None if pattern is None else JavaReplacement(found["to"], pattern),
        bool(found["all"]),
        found["letters"] or "",
    )


def _applied(rule: KerberosRule, parts: list[str], default_realm: str) -> str | None:
    """Return the name that a rule gives; None if it is not about the principal."""
    if rule.parts is None:
        name = parts[1] if parts[0] == default_realm else None
    elif rule.parts == len(parts) - 1:
        name = _formed(rule, parts)
    else:
        name = None
    if name is None:
        return None
    if "/" in name or "@" in name:
        raise NoUserError(f"{name[:256]!r}, which a rule gives, is not the name of a user")
    if rule.letters:
        return name.lower() if rule.letters == "L" else name.upper()
    return name


def _formed(rule: KerberosRule, parts: list[str]) -> str | None:
    base = _filled(rule.form, parts)
    if rule.fits is not None and rule.fits.fullmatch(base) is None:
        return None
    if rule.replacement is None:
        return base
    return rule.replacement.replace(base, only_first=not rule.replaces_all)


def _filled(form: str, parts: list[str]) -> str:
    pieces: list[str] = []
    position = 0
    while position < len(form):
        found = _PART.match(form, position)
        assert found is not None, "it fits anything"
        position = found.end()
        pieces.append(found[1])
        if found[3] is not None:
            if not found[3] or int(found[3]) >= len(parts):
                raise NoUserError(f"{form} names a part that a principal does not have")
            pieces.append(parts[int(found[3])])
    return "".join(pieces)
