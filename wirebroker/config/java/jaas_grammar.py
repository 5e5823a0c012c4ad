r"""Grammar of JAAS: login modules with options, in a config's value and in a file of sections.

    KafkaServer {
        org.apache.kafka.common.security.plain.PlainLoginModule required user_alice="secret";
    };

A word begins with a letter, `_` or `$` and may contain digits, `.` and `-`; other text needs quotes
that end on the same line, with Java's escapes (`\n`, `\101`). `/`, `//` and `/* */` begin comments.
In a file, `*` is a letter, and values in single quotes are refused.

Source: java.io.StreamTokenizer as configured by Kafka's JaasConfig and the JDK's ConfigFile.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_FLAGS: Final = ("required", "requisite", "sufficient", "optional")
_PATTERN: Final = r"""
    (?P<nothing>[\x00-\x20]+|/\*.*?(?:\*/|\Z)|/[^\r\n]*)
    |"(?P<double>(?:[^"\\\r\n]|\\.)*)(?:"|(?=[\r\n])|\Z)
    |'(?P<single>(?:[^'\\\r\n]|\\.)*)(?:'|(?=[\r\n])|\Z)
    |(?P<word>[A-Za-z_$\xa0-\U0010ffffSTAR][A-Za-z_$\xa0-\U0010ffffSTAR0-9.\-]*)
    |(?P<sign>.)
"""
_OF_LINE: Final = re.compile(_PATTERN.replace("STAR", ""), re.VERBOSE | re.DOTALL)
_OF_FILE: Final = re.compile(_PATTERN.replace("STAR", "*"), re.VERBOSE | re.DOTALL)
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


@dataclass(slots=True, frozen=True)
class LoginModule:
    """A login module: its class name and options."""

    name: str
    options: Mapping[str, str] = field(repr=False)


def modules_of_line(text: str) -> list[LoginModule]:
    """Return the login modules of a `sasl.jaas.config` value.

    Raises:
        ValueError: The text is the end of a sentence, without values.
    """
    tokens = _Tokens(text, _OF_LINE)
    modules: list[LoginModule] = []
    while not tokens.is_at_end():
        modules.append(_module(tokens))
    return modules


def sections_of_file(
    text: str, expanded: Callable[[str], str]
) -> dict[str, tuple[LoginModule, ...]]:
    """Return the sections of a JAAS file; `expanded` replaces system properties in a value.

    Raises:
        ValueError: As modules_of_line, with the line number.
    """
    tokens = _Tokens(text, _OF_FILE)
    sections: dict[str, tuple[LoginModule, ...]] = {}
    while not tokens.is_at_end():
        try:
            name, modules = _section(tokens, expanded)
        except ValueError as error:
            raise ValueError(f"line {tokens.line()}: {error}") from None
        if name in sections:
            raise ValueError(f"it has two sections {name}")
        sections[name] = modules
    return sections


def _section(
    tokens: _Tokens, expanded: Callable[[str], str]
) -> tuple[str, tuple[LoginModule, ...]]:
    name = tokens.value("the name of a section", has_single_quotes=True)
    tokens.expect("{")
    modules: list[LoginModule] = []
    while not tokens.skip("}"):
        modules.append(_module(tokens, expanded))
    tokens.expect(";")
    return name, tuple(modules)


def _module(tokens: _Tokens, expanded: Callable[[str], str] | None = None) -> LoginModule:
    is_line = expanded is None
    name = tokens.value("the name of a login module", has_single_quotes=is_line)
    flags = ", ".join(_FLAGS)
    if tokens.value(f"one of {flags}", has_single_quotes=is_line).lower() not in _FLAGS:
        raise ValueError(f"write one of {flags} after {name}")
    options: dict[str, str] = {}
    while not tokens.skip(";"):
        option = tokens.value("the name of an option", has_single_quotes=is_line)
        tokens.expect("=")
        value = tokens.value("the value of an option", has_single_quotes=is_line)
        options[option] = value if expanded is None else expanded(value)
    return LoginModule(name, options)


class _Tokens:
    def __init__(self, text: str, pattern: re.Pattern[str]) -> None:
        self._text = text
        self._pattern = pattern
        self._next: re.Match[str] | None = None
        self._position = 0
        self._move()

    def is_at_end(self) -> bool:
        return self._next is None

    def line(self) -> int:
        end = len(self._text) if self._next is None else self._next.start()
        return len(re.findall(r"\r\n|\r|\n", self._text[:end])) + 1

    def value(self, expected: str, *, has_single_quotes: bool) -> str:
        match = self._current()
        kind = match.lastgroup
        assert kind is not None, "each alternative of the pattern is a group"
        if kind == "sign" or (kind == "single" and not has_single_quotes):
            raise ValueError(f"write {expected} (in double quotes unless it is a word)")
        self._move()
        return match[kind] if kind == "word" else _ESCAPE.sub(_unescaped, match[kind])

    def skip(self, sign: str) -> bool:
        is_next = self._current()["sign"] == sign
        if is_next:
            self._move()
        return is_next

    def expect(self, sign: str) -> None:
        if not self.skip(sign):
            raise ValueError(f"{sign} is missing")

    def _current(self) -> re.Match[str]:
        if self._next is None:
            raise ValueError(
                "it ends too early: end a login module with a semicolon, and quotes on the same "
                "line"
            )
        return self._next

    def _move(self) -> None:
        match = self._pattern.match(self._text, self._position)
        while match is not None and match["nothing"] is not None:
            match = self._pattern.match(self._text, match.end())
        self._next = match
        self._position = len(self._text) if match is None else match.end()


def _unescaped(match: re.Match[str]) -> str:
    escape = match[1]
    return chr(int(escape, 8)) if escape[0] in "01234567" else _ESCAPES.get(escape, escape)
