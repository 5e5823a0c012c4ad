r"""The grammar of JAAS: login modules with options, in the value of a config.

    org.apache.kafka.common.security.plain.PlainLoginModule required user_alice="secret";

A word begins with a letter, `_` or `$` and may go on with digits, `.` and `-`; any other text needs
quotes, which end on their line. A quoted text has Java's escapes (`\n`, `\101`). `/`, `//` and
`/* */` begin comments.

A leaf.  Source: java.io.StreamTokenizer as Kafka's JaasConfig sets it up.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

_FLAGS: Final = ("required", "requisite", "sufficient", "optional")
_TOKEN: Final = re.compile(
    r"""
    (?P<nothing>[\x00-\x20]+|/\*.*?(?:\*/|\Z)|/[^\r\n]*)
    |"(?P<double>(?:[^"\\\r\n]|\\.)*)(?:"|(?=[\r\n])|\Z)
    |'(?P<single>(?:[^'\\\r\n]|\\.)*)(?:'|(?=[\r\n])|\Z)
    |(?P<word>[A-Za-z_$\xa0-\U0010ffff][A-Za-z_$\xa0-\U0010ffff0-9.\-]*)
    |(?P<sign>.)
    """,
    re.VERBOSE | re.DOTALL,
)
_ESCAPE: Final = re.compile(r"\\([0-3][0-7]{0,2}|[4-7][0-7]?|.)", re.DOTALL)
_ESCAPES: Final = {
    "a": "\a",
    "b": "\b",
    "f": "\f",
    "n": "\n",
    "r": "\r",
    "t": "\t",
    "v": "\v",
}


class LoginModule(NamedTuple):
    """A login module: the name of its class, and its options."""

    name: str
    options: Mapping[str, str]


def modules_of_line(text: str) -> list[LoginModule]:
    """Return the login modules in the value of a `sasl.jaas.config`.

    Raises:
        ValueError: The text says why, as the end of a sentence; it shows no value.
    """
    tokens = _Tokens(text)
    modules: list[LoginModule] = []
    while not tokens.is_at_end():
        modules.append(_module(tokens))
    return modules


def _module(tokens: _Tokens) -> LoginModule:
    name = tokens.value("<login module> required <options>;")
    flags = ", ".join(_FLAGS)
    if tokens.value(f"one of {flags}").lower() not in _FLAGS:
        raise ValueError(f"write one of {flags} after {name}")
    options: dict[str, str] = {}
    while not tokens.skip(";"):
        option = tokens.value('options as name="value"')
        tokens.expect("=")
        options[option] = tokens.value('options as name="value"')
    return LoginModule(name, options)


class _Tokens:
    """The tokens of a text, one of which is the next."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._next: re.Match[str] | None = None
        self._position = 0
        self._move()

    def is_at_end(self) -> bool:
        return self._next is None

    def value(self, wanted: str) -> str:
        """Take a word or a quoted text."""
        found = self._found()
        kind = found.lastgroup
        assert kind is not None, "each alternative of the pattern is a group"
        if kind == "sign":
            raise ValueError(f"write {wanted}, with values that are not words in double quotes")
        self._move()
        return found[kind] if kind == "word" else _ESCAPE.sub(_unescaped, found[kind])

    def skip(self, sign: str) -> bool:
        """Take a sign if it is the next token, and tell whether it was."""
        is_next = self._found()["sign"] == sign
        if is_next:
            self._move()
        return is_next

    def expect(self, sign: str) -> None:
        if not self.skip(sign):
            raise ValueError(f'{sign} is missing: write options as name="value"')

    def _found(self) -> re.Match[str]:
        if self._next is None:
            raise ValueError(
                "it ends too early: a semicolon ends a login module, a quote ends on its own line"
            )
        return self._next

    def _move(self) -> None:
        found = _TOKEN.match(self._text, self._position)
        while found is not None and found["nothing"] is not None:
            found = _TOKEN.match(self._text, found.end())
        self._next = found
        self._position = len(self._text) if found is None else found.end()


def _unescaped(found: re.Match[str]) -> str:
    escape = found[1]
    return chr(int(escape, 8)) if escape[0] in "01234567" else _ESCAPES.get(escape, escape)
