"""Differences between expected and stored records, as text."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import SequenceMatcher
from typing import TYPE_CHECKING, Any, Final, TypeAlias, cast

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from wirebroker.testing.clients.topic_record import TopicRecord

Expected: TypeAlias = "str | bytes | Mapping[str, Any] | None"

_FIELDS: Final = ("partition", "offset", "timestamp", "key", "value", "headers")


def as_fields(expected: Expected) -> dict[str, Any]:
    """Return the fields to compare, text as bytes.

    Raises:
        ValueError: A record has no such field.
    """
    if not isinstance(expected, Mapping):
        return {"value": _content(expected)}
    unknown = expected.keys() - set(_FIELDS)
    if unknown:
        raise ValueError(f"a record has no {', '.join(sorted(unknown))}; it has {_FIELDS}")
    fields = {name: _content(value) for name, value in expected.items()}
    if "headers" in fields:
        headers = fields["headers"]
        pairs: Iterable[Any] = (
            cast("Mapping[str, Any]", headers).items() if isinstance(headers, Mapping) else headers
        )
        fields["headers"] = tuple((name, _content(value)) for name, value in pairs)
    return fields


def difference(
    expected: Sequence[dict[str, Any]], records: Sequence[TopicRecord], *, any_order: bool
) -> str | None:
    """Return the differences from results of `as_fields`; None if there are none."""
    if any_order:
        missing, surplus = _unmatched(expected, records)
        if not missing and not surplus:
            return None
        lines: list[str] = [f"- missing   {_text(fields)}" for fields in missing]
        lines += [f"+ surplus   {_record_text(record)}" for record in surplus]
        return "\n".join(lines)
    if len(expected) == len(records) and all(map(_fits, expected, records)):
        return None
    # Pair lines by the index of an expectation that fits.
    numbers = [_number(expected, record) for record in records]
    expected_numbers = [expected.index(fields) for fields in expected]
    lines = []
    matcher = SequenceMatcher(None, expected_numbers, numbers, autojunk=False)
    for kind, begin, end, first, last in matcher.get_opcodes():
        if kind == "equal":
            lines += [f"            {_record_text(record)}" for record in records[first:last]]
        else:
            lines += [f"- expected  {_text(fields)}" for fields in expected[begin:end]]
            lines += [f"+ stored    {_record_text(record)}" for record in records[first:last]]
    return "\n".join(lines)


def _unmatched(
    expected: Sequence[dict[str, Any]], records: Sequence[TopicRecord]
) -> tuple[list[dict[str, Any]], list[TopicRecord]]:
    surplus = list(records)
    missing: list[dict[str, Any]] = []
    # The most specific expectation first: {"key": …, "value": …} before a value alone.
    for fields in sorted(expected, key=len, reverse=True):
        match = next((record for record in surplus if _fits(fields, record)), None)
        if match is None:
            missing.append(fields)
        else:
            surplus.remove(match)
    return missing, surplus


def _number(expected: Sequence[dict[str, Any]], record: TopicRecord) -> int:
    for number, fields in enumerate(expected):
        if _fits(fields, record):
            return number
    return -1


def _fits(expected: dict[str, Any], record: TopicRecord) -> bool:
    return all(getattr(record, name) == value for name, value in expected.items())


def _text(fields: dict[str, Any]) -> str:
    return " ".join(f"{name}={value!r}" for name, value in fields.items())


def _record_text(record: TopicRecord) -> str:
    position = f"{record.topic}-{record.partition}@{record.offset}"
    key = "" if record.key is None else f" key={record.key!r}"
    headers = f" headers={record.headers!r}" if record.headers else ""
    return f"value={record.value!r}{key}{headers} ({position})"


def _content(value: Any) -> Any:
    return value.encode() if isinstance(value, str) else value
