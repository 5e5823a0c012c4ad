r"""ssl.principal.mapping.rules: from the name in a client's certificate to that of a user.

    RULE:^CN=(.*?),OU=ServiceUsers.*$/$1/L,DEFAULT

The first rule whose pattern fits the whole name gives the user's: the name in which every place
that the pattern finds is replaced. That is all of it, or with a pattern as lazy as `CN=(.*?)/$1/`
less than that: the rest stays. `L` and `U` make it small or capital letters, DEFAULT is the name as
it is. If none fits, the client is refused.

A leaf.  Source: Kafka's SslPrincipalMapper.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from wirebroker.config.java.patterns import java_pattern
from wirebroker.config.java.replacements import JavaReplacement

_RULE: Final = re.compile(
    r"\s*(?:(?P<default>DEFAULT)|RULE:(?P<pattern>(?:\\.|[^\\/])*)/(?P<replacement>(?:\\.|[^\\/])*)/"
    r"(?P<letters>[LU]?)|)\s*(?:,|$)"
)
# A group that a pattern does not have: Kafka takes it for text if the pattern has others.
_GROUP: Final = re.compile(r"\$([1-9][0-9]*)")


class PrincipalRule(NamedTuple):
    """One rule; without a pattern it is DEFAULT.

    Attributes:
        pattern: Has to fit the whole name.
        replacement: What takes the place of each part of the name that the pattern finds.
        letters: "L", "U", or "" for no change.
    """

    pattern: re.Pattern[str] | None = None
    replacement: JavaReplacement | None = None
    letters: str = ""


DEFAULT_RULES: Final = (PrincipalRule(),)


def principal_rules(text: str) -> tuple[PrincipalRule, ...]:
    """Read rules; without any no name fits.

    Raises:
        ValueError: The text says why, as the end of a sentence.
    """
    rules: list[PrincipalRule] = []
    position = 0
    text = text.strip()
    while position < len(text):
        found = _RULE.match(text, position)
        if found is None:
            raise ValueError("write RULE:pattern/replacement/ with L, U or nothing, or DEFAULT")
        position = found.end()
        if found["default"]:
            rules.append(PrincipalRule())
        elif found["pattern"] is not None:
            pattern = java_pattern(found["pattern"])
            replacement = _with_literal_groups(found["replacement"], pattern.groups)
            rules.append(
                PrincipalRule(pattern, JavaReplacement(replacement, pattern), found["letters"])
            )
    return tuple(rules)


def principal_name(rules: tuple[PrincipalRule, ...], subject: str) -> str | None:
    """Return the name of the user to whom a certificate belongs; None if no rule fits."""
    for pattern, replacement, letters in rules:
        if pattern is None or replacement is None:
            return subject
        if pattern.fullmatch(subject) is None:
            continue
        name = replacement.replace(subject)
        if letters:
            return name.lower() if letters == "L" else name.upper()
        return name
    return None


def _with_literal_groups(replacement: str, groups: int) -> str:
    """Return a replacement in which groups that the pattern does not have are text."""

    def escaped(found: re.Match[str]) -> str:
        number = int(found[1])
        while number > groups and number >= 10:
            number //= 10
        return "\\" + found.group() if number > groups else found.group()

    return _GROUP.sub(escaped, replacement) if groups else replacement
