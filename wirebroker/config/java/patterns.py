r"""Regular expressions in Java's dialect, translated for Python's engine.

    java_pattern(r"CN=(?<name>\w+),OU=[a-z&&[^x]]+$")

In Java, `\d`, `\w` and `\s` are ASCII, `.` excludes all line ends, `$` also matches before a final
one, and character classes have unions and intersections.

Source: java.util.regex.Pattern of Java 17.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from wirebroker.config.java.classes import (
    BY_LETTER,
    BY_NAME,
    LINE_ENDS,
    caseless,
    complement,
    intersection,
    united,
    written,
)

if TYPE_CHECKING:
    from wirebroker.config.java.classes import Ranges

_CONTROLS: Final = {"t": 9, "n": 10, "r": 13, "f": 12, "a": 7, "e": 27}
_QUANTIFIER: Final = re.compile(r"(?:[?*+]|\{[0-9]+(?:,[0-9]*)?\})[?+]?")
_GROUP_NAME: Final = re.compile(r"\?<([a-zA-Z][a-zA-Z0-9]*)>")
_REFERENCE_NAME: Final = re.compile(r"<([a-zA-Z][a-zA-Z0-9]*)>")
_FLAGS: Final = re.compile(r"\?([a-zA-Z]*)(?:-([a-zA-Z]*))?([:)])")
_UNCHANGED_GROUPS: Final = ("?:", "?=", "?!", "?>", "?<=", "?<!")
_NO_LINE_END: Final = written(complement(LINE_ENDS))
_ANY: Final = r"[\s\S]"
_LINE_END: Final = f"(?>\\r\\n|{written(united([*LINE_ENDS, (0x0B, 0x0C)]))})"
_LAST_LINE_END: Final = (
    r"(?:(?=\r\n\Z)|(?=" + written(united([(13, 13), *LINE_ENDS[-2:]])) + r"\Z)|(?<!\r)(?=\n\Z)|\Z)"
)

_AS_IN_PYTHON: Final = {
    **{letter: f"\\{letter}" for letter in "AbB"},
    "z": r"\Z",
    "Z": _LAST_LINE_END,
    "R": _LINE_END,
}


def java_pattern(text: str) -> re.Pattern[str]:
    """Compile an expression.

    Raises:
        ValueError: It is invalid or has no translation; the text is the end of a sentence.
    """
    translation = _Translation(text)
    try:
        return re.compile(translation.whole(), re.ASCII)
    except (re.error, OverflowError) as error:
        raise ValueError(f"{text} is not a valid pattern: {error}") from None


class _Translation:
    def __init__(self, text: str) -> None:
        self._text = text
        self._position = 0
        self._groups = 0
        # The flag (?s).
        self._is_dot_all = False
        # The flag (?i), for ASCII letters.
        self._is_caseless = False

    def whole(self) -> str:
        translated = self._alternatives()
        if self._position < len(self._text):
            raise self._refused("a ) has no (")
        return translated

    def _refused(self, reason: str) -> ValueError:
        return ValueError(f"{self._text} is not a supported pattern: {reason}")

    def _peek(self, length: int = 1) -> str:
        return self._text[self._position : self._position + length]

    def _take(self, length: int = 1) -> str:
        characters = self._peek(length)
        if len(characters) < length:
            raise self._refused("it ends too early")
        self._position += length
        return characters

    def _takes(self, text: str) -> bool:
        if self._peek(len(text)) != text:
            return False
        self._position += len(text)
        return True

    def _match(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        match = pattern.match(self._text, self._position)
        if match is not None:
            self._position = match.end()
        return match

    def _alternatives(self) -> str:
        pieces: list[str] = []
        while self._position < len(self._text) and self._peek() != ")":
            if self._takes("|"):
                pieces.append("|")
            elif not self._takes_flags():
                pieces.append(self._item())
        return "".join(pieces)

    def _takes_flags(self) -> bool:
        """Consume (?i), which applies to the rest of its group, including other alternatives."""
        match = _FLAGS.match(self._text, self._position + 1) if self._peek(2) == "(?" else None
        if match is None or match[3] != ")":
            return False
        self._position = match.end()
        self._set_flags(match[1], match[2] or "")
        return True

    def _set_flags(self, on: str, off: str) -> None:
        if set(on + off) - {"i", "s"}:
            raise self._refused(f"the flags {on}{off} are not supported")
        if "s" in on + off:
            self._is_dot_all = "s" not in off
        if "i" in on + off:
            self._is_caseless = "i" not in off

    def _item(self) -> str:
        item = self._group() if self._takes("(") else self._single()
        quantifier = self._match(_QUANTIFIER)
        if quantifier is None:
            return item
        return (
            f"(?:{item}){quantifier.group()}"
            if not item.startswith("(")
            else item + quantifier.group()
        )

    def _group(self) -> str:
        flags = self._is_dot_all, self._is_caseless
        head = self._head()
        inner = self._alternatives()
        if not self._takes(")"):
            raise self._refused("a ( has no )")
        self._is_dot_all, self._is_caseless = flags
        return f"{head}{inner})"

    def _head(self) -> str:
        for group_start in _UNCHANGED_GROUPS:
            if self._takes(group_start):
                return f"({group_start}"
        name = self._match(_GROUP_NAME)
        if name is not None:
            self._groups += 1
            return f"(?P<{name[1]}>"
        flags = self._match(_FLAGS) if self._peek() == "?" else None
        if flags is not None:
            self._set_flags(flags[1], flags[2] or "")
            return "(?:"
        if self._peek() == "?":
            raise self._refused("a group begins with an unknown (?")
        self._groups += 1
        return "("

    def _single(self) -> str:
        character = self._take()
        if character == "\\":
            return self._escape()
        if character == "[":
            return written(self._class())
        if character == ".":
            return _ANY if self._is_dot_all else _NO_LINE_END
        if character == "^":
            return r"\A"
        if character == "$":
            return _LAST_LINE_END
        if character in "?*+{":
            raise self._refused(f"a {character} follows nothing")
        return self._literal(character)

    def _literal(self, character: str) -> str:
        if self._is_caseless and character.isascii() and character.isalpha():
            return f"[{character.lower()}{character.upper()}]"
        return re.escape(character)

    def _escape(self) -> str:
        letter = self._take()
        if letter in _AS_IN_PYTHON:
            return _AS_IN_PYTHON[letter]
        if letter == "Q":
            return self._quoted()
        if letter in "123456789":
            return self._reference(letter)
        if letter == "k":
            match = self._match(_REFERENCE_NAME)
            if match is None:
                raise self._refused(r"\k has no name")
            return self._same_as(f"(?P={match[1]})")
        return written(self._set_of(letter))

    def _quoted(self) -> str:
        end = self._text.find("\\E", self._position)
        stop = len(self._text) if end < 0 else end
        quoted = "".join(map(self._literal, self._text[self._position : stop]))
        self._position = stop if end < 0 else end + 2
        # A quantifier would apply to the last character only, in Java to the whole.
        if self._match(_QUANTIFIER):
            raise self._refused(r"a quantifier follows \E")
        return f"(?:{quoted})"

    def _reference(self, digits: str) -> str:
        while self._peek().isdecimal() and int(digits + self._peek()) <= self._groups:
            digits += self._take()
        if int(digits) > self._groups:
            raise self._refused(f"there is no group {digits} before \\{digits}")
        return self._same_as(f"\\{digits}")

    def _same_as(self, reference: str) -> str:
        return f"(?i:{reference})" if self._is_caseless else f"(?:{reference})"

    def _set_of(self, letter: str) -> Ranges:
        if letter.lower() in BY_LETTER:
            ranges = BY_LETTER[letter.lower()]
            return ranges if letter.islower() else complement(ranges)
        if letter in "pP":
            return self._property(is_negated=letter == "P")
        code = self._code_of(letter)
        return self._cased([(code, code)])

    def _cased(self, ranges: Ranges) -> Ranges:
        return caseless(ranges) if self._is_caseless else ranges

    def _property(self, *, is_negated: bool) -> Ranges:
        match = self._match(re.compile(r"\{(\w+)\}"))
        if match is None or match[1] not in BY_NAME:
            raise self._refused(r"\p must name one of " + ", ".join(BY_NAME))
        ranges = self._cased(BY_NAME[match[1]])
        return complement(ranges) if is_negated else ranges

    def _code_of(self, letter: str) -> int:
        if letter in _CONTROLS:
            return _CONTROLS[letter]
        if letter == "c":
            return ord(self._take()) ^ 64
        if letter == "0":
            return self._number(r"[0-3][0-7][0-7]|[0-7][0-7]?", 8)
        if letter == "u":
            return self._number(r"[0-9a-fA-F]{4}", 16)
        if letter == "x":
            return self._number(r"[0-9a-fA-F]{2}|\{[0-9a-fA-F]+\}", 16)
        if letter.isascii() and letter.isalnum():
            raise self._refused(f"\\{letter} is not supported")
        return ord(letter)

    def _number(self, pattern: str, base: int) -> int:
        match = self._match(re.compile(pattern))
        if match is None:
            raise self._refused("an escape lacks its digits")
        code = int(match.group().strip("{}"), base)
        if code > 0x10FFFF:
            raise self._refused(f"there is no character {code:x}")
        return code

    def _class(self) -> Ranges:
        is_negated = self._takes("^")
        ranges: Ranges | None = None
        while True:
            part, is_last = self._part(is_first=ranges is None)
            ranges = part if ranges is None else intersection(ranges, part)
            if is_last:
                return complement(ranges) if is_negated else ranges

    def _part(self, *, is_first: bool) -> tuple[Ranges, bool]:
        """Return the characters up to && or the closing ], and whether it was the ]."""
        ranges: Ranges = []
        is_empty = True
        while True:
            if self._takes("&&"):
                if is_empty:
                    raise self._refused("&& has nothing on one side")
                return united(ranges), False
            if self._peek() == "]" and not (is_first and is_empty):
                if is_empty:
                    raise self._refused("&& has nothing on one side")
                self._position += 1
                return united(ranges), True
            ranges += self._class() if self._takes("[") else self._range()
            is_empty = False

    def _range(self) -> Ranges:
        first = self._member()
        if len(first) > 1 or first[0][0] != first[0][1]:
            return first
        following = self._peek(2)
        if following[:1] != "-" or following[1:] in {"]", "[", ""}:
            return self._cased(first)
        self._position += 1
        last = self._member()
        if len(last) > 1 or last[0][0] != last[0][1] or last[0][0] < first[0][0]:
            raise self._refused("a range of characters has an invalid end")
        return self._cased([(first[0][0], last[0][0])])

    def _member(self) -> Ranges:
        """Return the characters of a letter or an escape, before (?i) is applied."""
        character = self._take()
        if character == "\\":
            letter = self._take()
            if letter in "QE":
                raise self._refused(r"\Q is not supported in a class")
            if letter.lower() in BY_LETTER or letter in "pP":
                return self._set_of(letter)
            character = chr(self._code_of(letter))
        return [(ord(character), ord(character))]
