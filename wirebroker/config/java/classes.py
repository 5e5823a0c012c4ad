"""Character sets of Java's regular expressions, and their form in Python's.

Sets are ascending lists of disjoint, inclusive ranges of code points.

Source: java.util.regex.Pattern of Java 17.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterable

    Ranges: TypeAlias = list[tuple[int, int]]

_LAST: Final = 0x10FFFF


def _of(text: str) -> Ranges:
    return united((ord(character), ord(character)) for character in text)


def united(ranges: Iterable[tuple[int, int]]) -> Ranges:
    """Sort ranges and merge adjacent ones."""
    merged: Ranges = []
    for first, last in sorted(ranges):
        if merged and first <= merged[-1][1] + 1:
            merged[-1] = (merged[-1][0], max(merged[-1][1], last))
        else:
            merged.append((first, last))
    return merged


def complement(ranges: Ranges) -> Ranges:
    """Return all other characters."""
    inverse: Ranges = []
    begin = 0
    for first, last in ranges:
        if first > begin:
            inverse.append((begin, first - 1))
        begin = last + 1
    if begin <= _LAST:
        inverse.append((begin, _LAST))
    return inverse


def intersection(one: Ranges, other: Ranges) -> Ranges:
    """Return the common characters."""
    return complement(united([*complement(one), *complement(other)]))


def caseless(ranges: Ranges) -> Ranges:
    """Return the characters with the other case of ASCII letters."""
    letters = intersection(ranges, _ALPHA)
    return united([*ranges, *((first ^ 32, last ^ 32) for first, last in _split(letters))])


def _split(letters: Ranges) -> Ranges:
    return [*intersection(letters, _UPPER), *intersection(letters, _LOWER)]


LINE_ENDS: Final = _of("\n\r\x85\u2028\u2029")
_LOWER: Final = [(0x61, 0x7A)]
_UPPER: Final = [(0x41, 0x5A)]
_DIGIT: Final = [(0x30, 0x39)]
_ALPHA: Final = united([*_LOWER, *_UPPER])
_ALNUM: Final = united([*_ALPHA, *_DIGIT])
_PUNCT: Final = intersection([(0x21, 0x7E)], complement(_ALNUM))
_SPACE: Final = _of(" \t\n\x0b\f\r")

# A capital letter means the complement.
BY_LETTER: Final = {
    "d": _DIGIT,
    "w": united([*_ALNUM, *_of("_")]),
    "s": _SPACE,
    "h": united([*_of(" \t\xa0\u1680\u180e\u202f\u205f\u3000"), (0x2000, 0x200A)]),
    "v": united([*_of("\x0b\f"), *LINE_ENDS]),
}
# \p{…}: the ASCII names only.
BY_NAME: Final = {
    "Lower": _LOWER,
    "Upper": _UPPER,
    "ASCII": [(0, 0x7F)],
    "Alpha": _ALPHA,
    "Digit": _DIGIT,
    "Alnum": _ALNUM,
    "Punct": _PUNCT,
    "Graph": united([*_ALNUM, *_PUNCT]),
    "Print": [(0x20, 0x7E)],
    "Blank": _of(" \t"),
    "Cntrl": [(0, 0x1F), (0x7F, 0x7F)],
    "XDigit": united([*_DIGIT, (0x41, 0x46), (0x61, 0x66)]),
    "Space": _SPACE,
}


def written(ranges: Ranges) -> str:
    """Return a set in Python's syntax."""
    if not ranges:
        return r"[^\x00-\U0010ffff]"
    return "[" + "".join(f"{_escaped(first)}-{_escaped(last)}" for first, last in ranges) + "]"


def _escaped(character: int) -> str:
    return f"\\U{character:08x}"
