r"""sasl.kerberos.principal.to.local.rules: map a Kerberos principal to a user name.

    kafka/host.example.org@EXAMPLE.ORG        service, host, realm; alice@EXAMPLE.ORG has no host

    DEFAULT                                   the first part, for principals of the default realm
    RULE:[1:$1@$0](.*@OTHER\.ORG)s/@.*//L     [parts:form](pattern of the form)s/from/to/g L U

`$0` is the realm, `$1` and `$2` are the parts. The first matching rule applies. The client is
refused if there is none, or if the name contains `/` or `@`.

Source: Kafka's KerberosShortNamer, KerberosRule, KerberosName.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from wirebroker.config.java.patterns import java_pattern
from wirebroker.config.java.replacements import JavaReplacement

# Not compiled: most brokers have no rules.
_NAME: Final = r"([^/@]*)(?:/([^/@]*))?@([^/@]*)"
_RULE: Final = (
    r"(?P<default>DEFAULT)|RULE:\[(?P<parts>[0-9]+):(?P<form>[^\]]*)\](?:\((?P<fits>[^)]*)\))?"
    r"(?:s/(?P<from>[^/]*)/(?P<to>[^/]*)/(?P<all>g)?)?/?(?P<letters>[LU])?"
)
_PART: Final = re.compile(r"([^$]*)(\$([0-9]*))?")
_MOST_PARTS: Final = 1 << 31


class NoUserError(Exception):
    """No rule maps a principal to a user; the text says why."""


class KerberosRule(NamedTuple):
    """One rule; without parts it is DEFAULT.

    Attributes:
        parts: Number of a principal's parts, without the realm.
        form: Format of the text that is made from them.
        fits: Pattern that the whole text must match.
        letters: "L" (lower case), "U" (upper case), or "".
    """

    parts: int | None = None
    form: str = ""
    fits: re.Pattern[str] | None = None
    replacement: JavaReplacement | None = None
    replaces_all: bool = False
    letters: str = ""


def kerberos_rules(texts: tuple[str, ...]) -> tuple[KerberosRule, ...]:
    """Parse rules.

    Raises:
        ValueError: The text is the end of a sentence.
    """
    return tuple(_rule(text) for text in texts)


def user_of(principal: str, rules: tuple[KerberosRule, ...], default_realm: str) -> str:
    """Return the user name of a principal; without a realm it is the principal itself.

    Raises:
        NoUserError: No rule applies.
    """
    match = re.fullmatch(_NAME, principal)
    if match is None:
        if "@" in principal:
            raise NoUserError(f"{principal[:256]!r} is not a Kerberos principal")
        return principal
    service, host, realm = match.groups()
    parts = [realm, service] if host is None else [realm, service, host]
    for rule in rules:
        name = _applied(rule, parts, default_realm)
        if name is not None:
            return name
    raise NoUserError(
        f"no rule of sasl.kerberos.principal.to.local.rules matches {principal[:256]!r}"
    )


def _rule(text: str) -> KerberosRule:
    match = re.fullmatch(_RULE, text)
    if match is None:
        raise ValueError(
            f"{text} is not a rule: write RULE:[parts:form](pattern)s/from/to/ or DEFAULT"
        )
    if match["default"]:
        return KerberosRule()
    if int(match["parts"]) >= _MOST_PARTS:
        raise ValueError(f"{text}: no principal has {match['parts']} parts")
    pattern = None if match["from"] is None else java_pattern(match["from"])
    return KerberosRule(
        int(match["parts"]),
        match["form"],
        None if match["fits"] is None else java_pattern(match["fits"]),
        None if pattern is None else JavaReplacement(match["to"], pattern),
        bool(match["all"]),
        match["letters"] or "",
    )


def _applied(rule: KerberosRule, parts: list[str], default_realm: str) -> str | None:
    if rule.parts is None:
        name = parts[1] if parts[0] == default_realm else None
    elif rule.parts == len(parts) - 1:
        name = _formed(rule, parts)
    else:
        name = None
    if name is None:
        return None
    if "/" in name or "@" in name:
        raise NoUserError(f"a rule gives {name[:256]!r}, which is not a user name")
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
        match = _PART.match(form, position)
        assert match is not None, "it fits anything"
        position = match.end()
        pieces.append(match[1])
        if match[3] is not None:
            if not match[3] or int(match[3]) >= len(parts):
                raise NoUserError(f"{form} refers to a part that the principal does not have")
            pieces.append(parts[int(match[3])])
    return "".join(pieces)
