"""The filters of a search.

`may_match` sees the decompressed records of a batch as bytes. It is true if one of them could
match, and rejects most batches with one search for bytes, before their records are decoded.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

from wirebroker.codecs.json_text import parse_json
from wirebroker.console.records.json_path import JsonCondition, parse_json_path

if TYPE_CHECKING:
    from wirebroker.codecs.records.record import Record
    from wirebroker.console.records.queries import SearchQuery

# Names that JSON writes as they are, unless it escapes any character.
_PLAIN: Final = re.compile(r"[A-Za-z0-9 _.:@+-]+")
_ESCAPE: Final = rb"\u"
_EXPONENT: Final = re.compile(rb"[0-9][eE][-+0-9]")
# Larger integers may be equal to a number with other digits.
_EXACT: Final = 1 << 53
# Text is folded in pieces: a character takes up to 12 bytes meanwhile.
_FOLDED_BYTES: Final = 1 << 20
# Values above these limits do not match: parsing takes too long, and up to 100 bytes per element.
_MOST_JSON_BYTES: Final = 4 << 20
_MOST_JSON_ELEMENTS: Final = 200_000


class TextFilter(NamedTuple):
    """A text as UTF-8; without regard to case if `is_folded`, where it is in lower case."""

    data: bytes
    is_folded: bool

    def may_match(self, payload: bytes) -> bool:
        """Return whether the text may be in bytes."""
        if not self.is_folded:
            return self.data in payload
        return not self.data.isascii() or self.data in payload.lower()

    def is_in(self, field: bytes | None) -> bool:
        """Return whether a field has the text."""
        if field is None:
            return False
        if not self.is_folded:
            return self.data in field
        if self.data.isascii():
            return self.data in field.lower()
        overlap = 4 * len(self.data)
        return any(
            self.data in _folded(field[start : start + _FOLDED_BYTES + overlap])
            for start in range(0, len(field), _FOLDED_BYTES)
        )


def _folded(data: bytes) -> bytes:
    return data.decode("utf-8", "replace").casefold().encode()


class RecordFilter(NamedTuple):
    """Filters that must all hold; None if not given.

    Attributes:
        where: Where `text` is searched: any, key, value or header.
        header_name: Exact.
        json_literals: Bytes that are in each JSON value that meets the condition, unless the value
            has escapes, or with `has_number` numbers with exponents.
    """

    text: TextFilter | None
    where: str
    header_name: str | None
    header_value: TextFilter | None
    condition: JsonCondition | None
    json_literals: tuple[bytes, ...]
    has_number: bool

    def may_match(self, payload: bytes) -> bool:
        """Return whether records of a batch may match."""
        if self.text is not None and not self.text.may_match(payload):
            return False
        if self.header_value is not None and not self.header_value.may_match(payload):
            return False
        if self.header_name is not None and self.header_name.encode() not in payload:
            return False
        return self._may_be_json(payload)

    def _may_be_json(self, data: bytes) -> bool:
        if all(literal in data for literal in self.json_literals):
            return True
        return _ESCAPE in data or (self.has_number and _EXPONENT.search(data) is not None)

    def matches(self, record: Record) -> bool:
        """Return whether a record matches."""
        if self.text is not None and not self._has_text(record, self.text):
            return False
        has_header_filter = self.header_name is not None or self.header_value is not None
        if has_header_filter and not (record.headers and self._has_header(record)):
            return False
        return self.condition is None or self._meets(record.value, self.condition)

    def _has_text(self, record: Record, text: TextFilter) -> bool:
        if self.where in {"any", "value"} and text.is_in(record.value):
            return True
        if self.where in {"any", "key"} and text.is_in(record.key):
            return True
        return self.where in {"any", "header"} and any(
            text.is_in(value) or text.is_in(name.encode("utf-8", "surrogateescape"))
            for name, value in record.headers
        )

    def _has_header(self, record: Record) -> bool:
        return any(
            (self.header_name is None or name == self.header_name)
            and (self.header_value is None or self.header_value.is_in(value))
            for name, value in record.headers
        )

    def _meets(self, value: bytes | None, condition: JsonCondition) -> bool:
        if value is None or len(value) > _MOST_JSON_BYTES or not self._may_be_json(value):
            return False
        if len(value) > _MOST_JSON_ELEMENTS and _elements_of(value) > _MOST_JSON_ELEMENTS:
            return False
        try:
            document = parse_json(value)
        except ValueError:
            return False
        return condition.holds(document)


def _elements_of(value: bytes) -> int:
    """Return at least the number of elements of a JSON document."""
    return sum(value.count(mark) for mark in (b",", b"[", b"{"))


def filter_of(query: SearchQuery) -> RecordFilter | None:
    """Return the filters of a search, or None if all records match.

    Raises:
        ValueError: The JSONPath cannot be used.
    """
    if not (query.text or query.header_name or query.header_value or query.jsonpath):
        return None
    condition = parse_json_path(query.jsonpath) if query.jsonpath else None
    digits = None if condition is None else _digits_of(condition)
    return RecordFilter(
        _text_filter(query.text, is_folded=not query.is_case_sensitive),
        query.where,
        query.header_name or None,
        _text_filter(query.header_value, is_folded=not query.is_case_sensitive),
        condition,
        () if condition is None else _literals(condition, digits),
        digits is not None,
    )


def _text_filter(text: str, *, is_folded: bool) -> TextFilter | None:
    if not text:
        return None
    data = (text.casefold() if is_folded else text).encode("utf-8", "surrogatepass")
    return TextFilter(data, is_folded)


def _digits_of(condition: JsonCondition) -> str | None:
    """Return the digits that a value equal to an integer contains, such as 42 or 42.0."""
    literal = condition.literal
    if condition.compare != "==" or not isinstance(literal, int) or isinstance(literal, bool):
        return None
    return str(abs(literal)) if abs(literal) < _EXACT else None


def _literals(condition: JsonCondition, digits: str | None) -> tuple[bytes, ...]:
    texts = condition.required_names()
    if condition.compare in {"==", "contains"} and isinstance(condition.literal, str):
        texts.append(condition.literal)
    if digits is not None:
        texts.append(digits)
    return tuple(text.encode() for text in texts if _PLAIN.fullmatch(text))
