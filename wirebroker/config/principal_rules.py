r"""ssl.principal.mapping.rules: from the name in a client's certificate to that of a user.

    RULE:^CN=(.*?),OU=ServiceUsers.*$/$1/L,DEFAULT

The first rule whose pattern fits the whole name gives the user's, with the pattern's groups in it;
`L` and `U` make it small or capital letters, DEFAULT is the name as it is. If none fits, the client
is refused.

A leaf.  Source: Kafka's SslPrincipalMapper.
"""

from __future__ import annotations

import re
from functools import partial
from typing import Final, NamedTuple

_RULE: Final = re.compile(
    r"\s*(?:(?P<default>DEFAULT)|RULE:(?P<pattern>(?:\\.|[^\\/])*)/(?P<replacement>(?:\\.|[^\\/])*)/"
    r"(?P<letters>[LU]?))\s*(?:,|$)"
)
_GROUP: Final = re.compile(r"\$(\d+)|\\(.)")


class PrincipalRule(NamedTuple):
    """One rule; without a pattern it is DEFAULT.

    Attributes:
        pattern: Has to fit the whole name.
        replacement: In Java's form: `$1` is a group.
        letters: "L", "U", or "" for no change.
    """

    pattern: re.Pattern[str] | None = None
    replacement: str = ""
    letters: str = ""


DEFAULT_RULES: Final = (PrincipalRule(),)


def principal_rules(text: str) -> tuple[PrincipalRule, ...]:
    """Read rules.

    Raises:
        ValueError: The text says why, as the end of a sentence.
    """
    rules: list[PrincipalRule] = []
    position = 0
    while position < len(text.rstrip()):
        found = _RULE.match(text, position)
        if found is None:
            raise ValueError("write RULE:pattern/replacement/ with L, U or nothing, or DEFAULT")
        position = found.end()
        if found["default"]:
            rules.append(PrincipalRule())
            continue
        try:
            pattern = re.compile(found["pattern"].replace("\\/", "/"))
        except re.error as error:
            raise ValueError(f"{found['pattern']} is no pattern: {error}") from None
        for group in _GROUP.finditer(found["replacement"]):
            if group[1] and int(group[1]) > pattern.groups:
                raise ValueError(f"{found['pattern']} has no group {group[1]}")
        rules.append(PrincipalRule(pattern, found["replacement"], found["letters"]))
    return tuple(rules) or DEFAULT_RULES


def principal_name(rules: tuple[PrincipalRule, ...], subject: str) -> str | None:
    """Return the name of the user to whom a certificate belongs; None if no rule fits."""
    for pattern, replacement, letters in rules:
        if pattern is None:
            return subject
        found = pattern.fullmatch(subject)
        if found is None:
            continue
        name = _GROUP.sub(partial(_filled, found), replacement)
        if letters:
            return name.lower() if letters == "L" else name.upper()
        return name
    return None


def _filled(found: re.Match[str], place: re.Match[str]) -> str:
    """Return what stands for `$1`, or for an escaped character, in a replacement."""
    return (found[int(place[1])] or "") if place[1] else place[2]
