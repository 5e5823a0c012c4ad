"""ssl.principal.mapping.rules: map the subject of a client's certificate to a user.

    RULE:^CN=(.*?),OU=ServiceUsers.*$/$1/L,DEFAULT

The first rule whose pattern matches the whole subject applies: each match in it is replaced. A lazy
pattern such as `CN=(.*?)/$1/` can match less than the subject, and the rest remains. If no rule
matches, the client is refused.

Source: Kafka's SslPrincipalMapper.
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
# References to missing groups are text in Kafka if the pattern has other groups.
_GROUP: Final = re.compile(r"\$([1-9][0-9]*)")


class PrincipalRule(NamedTuple):
    """One rule; without a pattern it is DEFAULT.

    Attributes:
        letters: "L" (lower case), "U" (upper case), or "".
    """

    pattern: re.Pattern[str] | None = None
    replacement: JavaReplacement | None = None
    letters: str = ""


DEFAULT_RULES: Final = (PrincipalRule(),)


def principal_rules(text: str) -> tuple[PrincipalRule, ...]:
    """Parse rules; if there are none, no subject matches.

    Raises:
        ValueError: The text is the end of a sentence.
    """
    rules: list[PrincipalRule] = []
    position = 0
    text = text.strip()
    while position < len(text):
        match = _RULE.match(text, position)
        if match is None:
            raise ValueError(
                "write RULE:pattern/replacement/ followed by L, U or nothing, or DEFAULT"
            )
        position = match.end()
        if match["default"]:
            rules.append(PrincipalRule())
        elif match["pattern"] is not None:
            pattern = java_pattern(match["pattern"])
            replacement = _with_literal_groups(match["replacement"], pattern.groups)
            rules.append(
                PrincipalRule(pattern, JavaReplacement(replacement, pattern), match["letters"])
            )
    return tuple(rules)


def principal_name(rules: tuple[PrincipalRule, ...], subject: str) -> str | None:
    """Return the user name for a certificate's subject, or None if no rule matches."""
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

    def escaped(match: re.Match[str]) -> str:
        number = int(match[1])
        while number > groups and number >= 10:
            number //= 10
        return "\\" + match.group() if number > groups else match.group()

    return _GROUP.sub(escaped, replacement) if groups else replacement
