"""Replacement texts in Java's syntax: `$1`, `${name}`, a backslash as the escape.

Source: java.util.regex.Matcher.appendReplacement.
"""

from __future__ import annotations

import re
from typing import Final

_REFERENCE: Final = re.compile(r"(?s)\\(.)|\$(?:([0-9]+)|\{([a-zA-Z][a-zA-Z0-9]*)\})|([\\$])")


class JavaReplacement:
    """A parsed replacement for a pattern's matches."""

    __slots__ = ("_pattern", "_pieces")

    def __init__(self, text: str, pattern: re.Pattern[str]) -> None:
        """Parse the text; raise ValueError (the end of a sentence) if it is invalid."""
        self._pattern = pattern
        pieces: list[str | int] = []
        position = 0
        for match in _REFERENCE.finditer(text):
            pieces.append(text[position : match.start()])
            position = match.end()
            escaped, digits, name, alone = match.groups()
            if alone:
                raise ValueError(f"{text}: {alone} must be escaped or followed by a group")
            if escaped is not None:
                pieces.append(escaped)
            elif name is not None:
                if name not in pattern.groupindex:
                    raise ValueError(f"{text}: the pattern has no group {name}")
                pieces.append(pattern.groupindex[name])
            else:
                pieces.extend(_group(digits, pattern))
        self._pieces = tuple(piece for piece in (*pieces, text[position:]) if piece != "")

    def replace(self, text: str, *, only_first: bool = False) -> str:
        """Replace the pattern's matches.

        After an empty match, Java continues at the next character, but Python's `sub` looks for a
        longer match at the same position.
        """
        pieces: list[str] = []
        copied_end = begin = 0
        while begin <= len(text) and (match := self._pattern.search(text, begin)) is not None:
            pieces += text[copied_end : match.start()], self._filled(match)
            copied_end = match.end()
            begin = max(copied_end, match.start() + 1)
            if only_first:
                break
        return "".join((*pieces, text[copied_end:]))

    def _filled(self, match: re.Match[str]) -> str:
        return "".join(
            piece if isinstance(piece, str) else match[piece] or "" for piece in self._pieces
        )


def _group(digits: str, pattern: re.Pattern[str]) -> tuple[int, str]:
    """Return the longest number prefix that is a group, and the remaining digits."""
    length = 1
    while length < len(digits) and int(digits[: length + 1]) <= pattern.groups:
        length += 1
    if int(digits[:length]) > pattern.groups:
        raise ValueError(f"the pattern has no group {digits[:length]}")
    return int(digits[:length]), digits[length:]
