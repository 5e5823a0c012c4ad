"""JAAS lines, in which Kafka's configs name users, of the stock login modules; none is loaded.

    org.apache.kafka.common.security.plain.PlainLoginModule required
        username="admin" password="admin-secret" user_admin="admin-secret" user_alice="…";

Values are plain or quoted, by either quote, with Java's backslashes; `//` and `/* */` are comments.

A leaf.  Source: Kafka's JaasConfig, PlainLoginModule, ScramLoginModule.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

_FLAGS: Final = frozenset({"required", "requisite", "sufficient", "optional"})
_SECURITY: Final = "org.apache.kafka.common.security."
# Of each mechanism the class that stands for what is built in here.
LOGIN_MODULES: Final = {
    "PLAIN": f"{_SECURITY}plain.PlainLoginModule",
    "OAUTHBEARER": f"{_SECURITY}oauthbearer.OAuthBearerLoginModule",
    "GSSAPI": "com.sun.security.auth.module.Krb5LoginModule",
    "SCRAM-SHA-256": f"{_SECURITY}scram.ScramLoginModule",
    "SCRAM-SHA-512": f"{_SECURITY}scram.ScramLoginModule",
}
# Those for which a name and a password are enough.
PASSWORD_MECHANISMS: Final = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
_TOKEN: Final = re.compile(
    r"""\s+|//[^\n]*|/\*.*?\*/          # nothing
    |"((?:[^"\\]|\\.)*)"                # 1: quoted
    |'((?:[^'\\]|\\.)*)'                # 2: likewise
    |([=;])                             # 3
    |((?:(?!//|/\*)[^\s"'=;])+)         # 4: a word
    """,
    re.VERBOSE | re.DOTALL,
)
_ESCAPED: Final = re.compile(r"\\(.)", re.DOTALL)
_ESCAPES: Final = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f"}


def login_options(text: str, mechanism: str) -> dict[str, str]:
    """Return the options of the one login module that a JAAS line has.

    Args:
        text: The line. It has secrets: none is in what is raised.
        mechanism: The SASL mechanism that it is for, one of LOGIN_MODULES.

    Raises:
        ValueError: The text says why, as the end of a sentence.
    """
    tokens = list(_tokens(text))
    if not tokens or tokens[-1] != (False, ";"):
        raise ValueError("a JAAS line ends with a semicolon")
    words = tokens[:-1]
    if (False, ";") in words:
        raise ValueError("it has more than one login module")
    if len(words) < 2:
        raise ValueError("write <login module> required <options>;")
    (_, module), (_, flag), *rest = words
    if module != LOGIN_MODULES[mechanism]:
        raise ValueError(f"there is no login module {module} here, only {LOGIN_MODULES[mechanism]}")
    if flag.lower() not in _FLAGS:
        raise ValueError(f"behind {module} stands required, requisite, sufficient or optional")
    if len(rest) % 3 or any(rest[place] != (False, "=") for place in range(1, len(rest), 3)):
        raise ValueError('its options are written name="value"')
    return {rest[place][1]: rest[place + 2][1] for place in range(0, len(rest), 3)}


def _tokens(text: str) -> Iterator[tuple[bool, str]]:
    """Yield whether it is quoted, and the text, of each word and sign."""
    position = 0
    while position < len(text):
        found = _TOKEN.match(text, position)
        if found is None:
            raise ValueError(
                "it has a quote that does not end, or a character that is out of place"
            )
        position = found.end()
        quoted, also_quoted, sign, word = found.groups()
        quoted = also_quoted if quoted is None else quoted
        if quoted is not None:
            yield True, _ESCAPED.sub(lambda found: _ESCAPES.get(found[1], found[1]), quoted)
        elif sign or word:
            yield False, sign or word
